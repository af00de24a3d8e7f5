//! Telling planners which tools there are.

use std::sync::Arc;

use proto::tool::Registration;
use tokio::time::sleep;

use crate::keeper::AGAIN;
use crate::shared::Shared;
use crate::tools::Tools;

/// Offers at once, whenever the tools change, and again before the offer fades.
pub(crate) async fn keep(shared: Arc<Shared>, tools: Tools) {
    let mut changes = tools.changes();
    loop {
        let worker = shared.config.instance.clone();
        let registration = Registration { worker, tools: tools.contracts() };
        let pause = match shared.ports.registry.register(registration).await {
            Ok(()) => shared.config.offer_every,
            Err(error) => {
                tracing::warn!(%error, "tools are not on offer");
                AGAIN
            }
        };
        tokio::select! {
            () = changes.next() => {}
            () = sleep(pause) => {}
        }
    }
}

/// Takes the offer back.
pub(crate) async fn withdraw(shared: &Shared) {
    if let Err(error) = shared.ports.registry.unregister(&shared.config.instance).await {
        tracing::debug!(%error, "the offer was not taken back; it fades");
    }
}

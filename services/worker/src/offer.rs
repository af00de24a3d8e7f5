//! Telling planners which tools there are.

use std::sync::Arc;

use proto::tool::Registration;
use tokio::time::sleep;

use crate::keeper::AGAIN;
use crate::shared::Shared;
use crate::tools::Tools;

/// What this worker offers.
pub(crate) fn registration(shared: &Shared, tools: &Tools) -> Registration {
    let contracts = tools.iter().map(|tool| tool.contract.clone());
    Registration { worker: shared.config.instance.clone(), tools: contracts.collect() }
}

/// Offers at once and again before the offer fades.
pub(crate) async fn keep(shared: Arc<Shared>, registration: Registration) {
    loop {
        let pause = match shared.ports.registry.register(registration.clone()).await {
            Ok(()) => shared.config.offer_every,
            Err(error) => {
                tracing::warn!(%error, "tools are not on offer");
                AGAIN
            }
        };
        sleep(pause).await;
    }
}

/// Takes the offer back.
pub(crate) async fn withdraw(shared: &Shared) {
    if let Err(error) = shared.ports.registry.unregister(&shared.config.instance).await {
        tracing::debug!(%error, "the offer was not taken back; it fades");
    }
}

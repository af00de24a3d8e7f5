//! Cancel hints. One that is lost is found in working memory later.

use std::sync::Arc;

use ports::live::{Subscription, Topic};
use proto::live::Hint;
use tokio::time::sleep;

use crate::keeper::AGAIN;
use crate::shared::Shared;

/// Listens for ever; subscribes again when a subscription ends.
pub(crate) async fn listen(shared: Arc<Shared>) {
    loop {
        match shared.ports.live.subscribe(&Topic::AllControl).await {
            Ok(subscription) => hear(&shared, subscription).await,
            Err(error) => tracing::warn!(%error, "no subscription to cancel hints"),
        }
        sleep(AGAIN).await;
    }
}

async fn hear(shared: &Shared, mut subscription: Box<dyn Subscription>) {
    while let Some((thread, message)) = subscription.next().await {
        match serde_json::from_slice(&message) {
            Ok(Hint::CancelCall { tool_call_id }) => {
                shared.running.cancel(&(thread, tool_call_id));
            }
            Ok(Hint::StopTurn) => {}
            Err(error) => tracing::debug!(%error, "a hint that is none"),
        }
    }
}

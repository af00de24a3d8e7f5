//! A person's word for a thread that another process runs.

use std::path::PathBuf;

use async_trait::async_trait;
use ports::BusError;
use proto::ids::ThreadRef;
use proto::input::Decision;

use super::call::ask;
use super::wire::{Ask, Reply};
use crate::inputs::Inbox;

/// The process that holds a store, as an inbox.
pub(crate) struct DoorInbox {
    pub(crate) store: PathBuf,
}

#[async_trait]
impl Inbox for DoorInbox {
    async fn decide(&self, place: &ThreadRef, decision: Decision) -> Result<(), BusError> {
        let question = Ask::Decide { thread: place.thread, decision };
        match ask(&self.store, question).await {
            Ok(Some(Reply::Accepted(_))) => Ok(()),
            Ok(Some(Reply::Refused { why, .. })) => Err(BusError::Refused(why)),
            Ok(Some(Reply::Status(_) | Reply::Live(_) | Reply::Beat)) => {
                Err(BusError::Refused("an answer to another question".to_owned()))
            }
            Ok(None) => Err(BusError::Unavailable("the process that ran this is gone".to_owned())),
            Err(error) => Err(BusError::Unavailable(error.to_string())),
        }
    }
}

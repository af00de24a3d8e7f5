//! What the command line appends: messages, cancels, decisions.

use std::sync::Arc;

use async_trait::async_trait;
use ports::BusError;
use ports::append::{Landed, Patience, append_surely};
use ports::clock::Ids;
pub(crate) use ports::inputs::fresh_key;
use ports::inputs::input_append;
use ports::journal::Journal;
use proto::ids::{InputKey, Partition, Sequence, TenantId, ThreadId, ThreadRef};
use proto::input::{Decision, InputBody};

/// The tenant of a command line.
const TENANT: &str = "default";

/// The tenant of a command line.
pub(crate) fn tenant() -> TenantId {
    TenantId::new(TENANT).unwrap_or_else(|_| unreachable!("letters only"))
}

/// Where a thread of the command line lives.
pub(crate) fn place(thread: ThreadId) -> ThreadRef {
    ThreadRef { partition: Partition(0), tenant: tenant(), thread }
}

/// Where a thread of a deployment with several streams lives.
pub(crate) fn place_in(thread: ThreadId, partitions: u16) -> ThreadRef {
    ThreadRef { partition: Partition::of(thread, partitions), ..place(thread) }
}

/// Appends an input; the same key in the same thread is the same input.
pub(crate) async fn append(
    journal: &Arc<dyn Journal>,
    ids: &dyn Ids,
    place: &ThreadRef,
    key: InputKey,
    body: InputBody,
) -> Result<Sequence, BusError> {
    let append = input_append(ids, place, key, body, None);
    match append_surely(journal.as_ref(), &append, Patience::default()).await? {
        Landed::At(sequence) | Landed::Duplicate(sequence) => Ok(sequence),
        Landed::Lost { .. } => Err(BusError::Refused("an input has no fence".to_owned())),
    }
}

/// Where a person's word on a call goes.
#[async_trait]
pub(crate) trait Inbox: Send + Sync {
    /// Durable once it is answered.
    async fn decide(&self, place: &ThreadRef, decision: Decision) -> Result<(), BusError>;
}

/// The journal of a store that this process holds.
pub(crate) struct OwnInbox {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) ids: Arc<dyn Ids>,
}

#[async_trait]
impl Inbox for OwnInbox {
    async fn decide(&self, place: &ThreadRef, decision: Decision) -> Result<(), BusError> {
        let key = fresh_key(self.ids.as_ref());
        let body = InputBody::Decision(decision);
        append(&self.journal, self.ids.as_ref(), place, key, body).await.map(|_| ())
    }
}

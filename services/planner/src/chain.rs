//! Appends to a thread's fenced chain, and the one to a start subject that a planner may make.

use bytes::Bytes;
use ports::BusError;
use ports::append::{Landed, Patience, append_surely};
use ports::clock::Ids;
use ports::journal::{Append, Fence, Journal};
use proto::call::{Barred, Start, ToolCall};
use proto::envelope::Envelope;
use proto::fact::Fact;
use proto::ids::{Sequence, ThreadRef};
use proto::record::Record;
use proto::subject::{Leaf, Subject};

/// Where appends go and how.
pub(crate) struct Chain<'a> {
    pub(crate) journal: &'a dyn Journal,
    pub(crate) ids: &'a dyn Ids,
    pub(crate) patience: Patience,
    pub(crate) place: &'a ThreadRef,
}

impl Chain<'_> {
    /// Appends a fact behind `last`.
    pub(crate) async fn fact(&self, last: Sequence, fact: Fact) -> Result<Landed, BusError> {
        self.append(Leaf::Fact, Record::Fact(fact), Fence::Plan(last)).await
    }

    /// Appends a tool call behind `last`.
    pub(crate) async fn call(&self, last: Sequence, call: ToolCall) -> Result<Landed, BusError> {
        let leaf = Leaf::ToolCall(call.tool.clone());
        self.append(leaf, Record::ToolCall(call), Fence::Plan(last)).await
    }

    /// Bars a call whose start subject ends at `last`.
    pub(crate) async fn bar(&self, last: Sequence, barred: Barred) -> Result<Landed, BusError> {
        let leaf = Leaf::Start(barred.tool_call_id.clone());
        self.append(leaf, Record::Start(Start::Barred(barred)), Fence::Subject(last)).await
    }

    async fn append(&self, leaf: Leaf, body: Record, fence: Fence) -> Result<Landed, BusError> {
        let nonce = self.ids.nonce();
        let payload = Envelope::new(nonce.clone(), None, body).encode();
        let append = Append {
            subject: Subject::new(self.place.clone(), leaf),
            payload: Bytes::from(payload),
            nonce,
            fence,
            dedup: None,
        };
        append_surely(self.journal, &append, self.patience).await
    }
}

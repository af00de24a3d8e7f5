//! The one message schedule of a thread: it fires a tick record, and is replaced by the next one.

use async_nats::HeaderMap;
use bytes::Bytes;
use ports::BusError;
use ports::journal::{AppendError, Fence};
use proto::envelope::Envelope;
use proto::ids::{Nonce, ThreadRef};
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use proto::time::Timestamp;
use serde_json::json;

use crate::connect::NatsBus;
use crate::journal::{fence_headers, publish};
use crate::reads;

impl NatsBus {
    pub(crate) async fn write_schedule(
        &self,
        thread: &ThreadRef,
        at: Timestamp,
        fence: Fence,
    ) -> Result<(), AppendError> {
        let subject = Subject::new(thread.clone(), Leaf::Schedule);
        let target = Subject::new(thread.clone(), Leaf::Tick);
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Schedule", format!("@at {}", reads::rfc3339(at)));
        headers.insert("Nats-Schedule-Target", target.to_string());
        fence_headers(&mut headers, &subject, fence);
        let payload = Bytes::from(tick(at).encode());
        let written = publish(self, subject.to_string(), headers, payload).await?;
        self.recent.note(thread, written.sequence);
        Ok(())
    }

    pub(crate) async fn read_schedule(
        &self,
        thread: &ThreadRef,
    ) -> Result<Option<Timestamp>, BusError> {
        let subject = Subject::new(thread.clone(), Leaf::Schedule);
        let query = json!({ "last_by_subj": subject.to_string() });
        let found = reads::from_leader(self, thread.partition, &query).await?;
        let schedule = found.and_then(|found| found.header("Nats-Schedule"));
        Ok(schedule.and_then(|text| reads::timestamp(text.strip_prefix("@at ")?)))
    }
}

/// What the server appends when the schedule fires. Ticks carry no state, so their nonce may repeat.
fn tick(at: Timestamp) -> Envelope {
    let nonce = Nonce::new(format!("{:016x}", at.0)).unwrap_or_else(|_| zero());
    Envelope::new(nonce, None, Record::Tick)
}

fn zero() -> Nonce {
    Nonce::new("0000000000000000").unwrap_or_else(|_| unreachable!("sixteen hex digits"))
}

//! Ends of runs whose words the bus does not take in one record.

use std::sync::Arc;

use async_trait::async_trait;
use planner::Config;
use ports::BusError;
use ports::journal::{Append, AppendError, Appended, Fence, Journal, Stored};
use proto::envelope::Envelope;
use proto::fact::{Fact, Outcome};
use proto::ids::{Sequence, TenantId, ThreadRef};
use proto::model::Finish;
use proto::record::Record;
use proto::subject::Subject;
use proto::time::Timestamp;
use testkit::memory::BusHandle;
use testkit::model::{ScriptedModel, end, text};

use crate::world::{World, name};

/// What a record of an end may be long; those of turns may be longer.
const MOST: usize = 3_000;

/// A journal that takes no longer end of a run.
struct Narrow(Arc<BusHandle>);

#[async_trait]
impl Journal for Narrow {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let bytes = append.payload.len();
        let record = Envelope::decode(&append.payload).unwrap().body;
        if matches!(record, Record::Fact(Fact::RunFinished(_))) && bytes > MOST {
            return Err(AppendError::Bus(BusError::TooLarge { bytes, limit: MOST }));
        }
        self.0.append(append).await
    }

    async fn read(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        floor: Sequence,
    ) -> Result<Vec<Stored>, BusError> {
        self.0.read(thread, from, floor).await
    }

    async fn last(&self, subject: &Subject) -> Result<Option<Stored>, BusError> {
        self.0.last(subject).await
    }

    async fn schedule(
        &self,
        thread: &ThreadRef,
        at: Timestamp,
        fence: Fence,
    ) -> Result<(), AppendError> {
        self.0.schedule(thread, at, fence).await
    }

    async fn scheduled(&self, thread: &ThreadRef) -> Result<Option<Timestamp>, BusError> {
        self.0.scheduled(thread).await
    }

    async fn purge(&self, thread: &ThreadRef, up_to: Sequence) -> Result<(), BusError> {
        self.0.purge(thread, up_to).await
    }

    async fn threads(&self, tenant: &TenantId, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        self.0.threads(tenant, limit).await
    }

    async fn server_time(&self) -> Result<Timestamp, BusError> {
        self.0.server_time().await
    }
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_too_large_is_told_in_fewer_words() {
    let model =
        ScriptedModel::new(|_| Ok(vec![text("\u{e9}t\u{e9} ".repeat(2_000)), end(Finish::Stop)]));
    let mut world = World::new(model).await;
    world.planner_over(Config::new(name("planner-a")), 1, |inner| Arc::new(Narrow(inner)));
    world.message("k1", "check").await;
    let finished = world.until_finished().await;
    assert_eq!(finished.outcome, Outcome::Answered);
    assert!(finished.answer.starts_with("\u{e9}t\u{e9} "), "{}", finished.answer);
    assert!(
        finished.answer.ends_with("the bus takes no larger record ...]"),
        "{}",
        finished.answer
    );
    assert_eq!(world.trace(), "input started1.1 completed1 finished:Answer");
}

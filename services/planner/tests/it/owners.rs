//! Who owns a turn says so from the first moment on at which others may find its record.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use planner::Config;
use ports::BusError;
use ports::journal::{Append, AppendError, Appended, Fence, Journal, Stored};
use ports::live::{Live as _, OwnerAnswer};
use proto::envelope::Envelope;
use proto::fact::Fact;
use proto::ids::{Sequence, TenantId, ThreadRef};
use proto::live::HeldQuestion;
use proto::model::Finish;
use proto::record::Record;
use proto::subject::Subject;
use proto::time::Timestamp;
use testkit::memory::BusHandle;
use testkit::model::{ScriptedModel, end, text};
use tokio::sync::Mutex;

use crate::world::{World, name};

/// A journal in which a turn's record lies before whoever appended it hears of it: meanwhile another
/// planner, which has found the record, asks its owner.
struct Asked {
    inner: Arc<BusHandle>,
    stranger: BusHandle,
    answers: Arc<Mutex<Vec<OwnerAnswer>>>,
}

#[async_trait]
impl Journal for Asked {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        let envelope = Envelope::decode(&append.payload).unwrap();
        let thread = append.subject.thread.clone();
        let appended = self.inner.append(append).await?;
        if let Record::Fact(Fact::TurnStarted(turn)) = envelope.body {
            let question = HeldQuestion { thread, started: appended.sequence };
            let patience = Duration::from_secs(1);
            let answer = self.stranger.ask(&turn.owner, &question, patience).await.unwrap();
            self.answers.lock().await.push(answer);
        }
        Ok(appended)
    }

    async fn read(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        floor: Sequence,
    ) -> Result<Vec<Stored>, BusError> {
        self.inner.read(thread, from, floor).await
    }

    async fn last(&self, subject: &Subject) -> Result<Option<Stored>, BusError> {
        self.inner.last(subject).await
    }

    async fn schedule(
        &self,
        thread: &ThreadRef,
        at: Timestamp,
        fence: Fence,
    ) -> Result<(), AppendError> {
        self.inner.schedule(thread, at, fence).await
    }

    async fn scheduled(&self, thread: &ThreadRef) -> Result<Option<Timestamp>, BusError> {
        self.inner.scheduled(thread).await
    }

    async fn purge(&self, thread: &ThreadRef, up_to: Sequence) -> Result<(), BusError> {
        self.inner.purge(thread, up_to).await
    }

    async fn threads(&self, tenant: &TenantId, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        self.inner.threads(tenant, limit).await
    }

    async fn server_time(&self) -> Result<Timestamp, BusError> {
        self.inner.server_time().await
    }
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_does_not_know_yet_where_its_turn_lies_says_that_it_holds_it() {
    let model = ScriptedModel::new(|_| Ok(vec![text("All is well."), end(Finish::Stop)]));
    let mut world = World::new(model).await;
    let answers = Arc::<Mutex<Vec<OwnerAnswer>>>::default();
    let (stranger, told) = (world.bus.handle(&name("stranger")), Arc::clone(&answers));
    let journal = |inner| Arc::new(Asked { inner, stranger, answers: told });
    world.planner_over(Config::new(name("planner-a")), 1, journal);
    world.message("k1", "check").await;
    world.until_finished().await;
    assert_eq!(*answers.lock().await, [OwnerAnswer::Holding]);
}

//! Random histories: the file answers what a bus in memory answers.

use std::time::Duration;

use bus_sqlite::SqliteBus;
use ports::journal::{AppendError, Appended, Fence, Journal, Stored};
use ports::queues::{DeliveryToken, Queue, Queues};
use proptest::collection::vec;
use proptest::prelude::*;
use proto::ids::{InstanceId, Partition, Sequence, ToolCallId, ToolName};
use proto::subject::{Leaf, Subject};
use testkit::memory::MemoryBus;

use crate::world::{Place, append, thread};

#[derive(Clone, Copy, Debug)]
enum Expect {
    Nothing,
    Newest,
    Stale,
}

#[derive(Clone, Debug)]
enum Step {
    Append { thread: u64, leaf: Leaf, plan: bool, expect: Expect, id: Option<u8> },
    Purge { thread: u64, back: u64 },
    Pull { queue: Queue, ack: bool },
    Reopen,
}

fn leaf() -> impl Strategy<Value = Leaf> {
    prop_oneof![
        3 => Just(Leaf::In),
        3 => Just(Leaf::Fact),
        2 => "[ab]".prop_map(|name| Leaf::ToolCall(ToolName::new(name).unwrap())),
        2 => "start000[12]".prop_map(|id| Leaf::Start(ToolCallId::new(id).unwrap())),
        2 => Just(Leaf::Observation),
    ]
}

fn queue() -> impl Strategy<Value = Queue> {
    let part = Partition(0);
    prop_oneof![
        Just(Queue::Inbox(part)),
        Just(Queue::Progress(part)),
        Just(Queue::Tool(part, ToolName::new("a").unwrap())),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let expect = prop_oneof![
        2 => Just(Expect::Nothing),
        3 => Just(Expect::Newest),
        1 => Just(Expect::Stale)
    ];
    let id = prop_oneof![3 => Just(None), 1 => (0..3_u8).prop_map(Some)];
    prop_oneof![
        12 => (0..3_u64, leaf(), any::<bool>(), expect, id)
            .prop_map(|(thread, leaf, plan, expect, id)| Step::Append { thread, leaf, plan, expect, id }),
        2 => (0..3_u64, 0..6_u64).prop_map(|(thread, back)| Step::Purge { thread, back }),
        6 => (queue(), any::<bool>()).prop_map(|(queue, ack)| Step::Pull { queue, ack }),
        1 => Just(Step::Reopen),
    ]
}

/// What both answered to an append; of a refusal the sequence in the way.
fn answer(outcome: &Result<Appended, AppendError>) -> Result<Appended, Option<Sequence>> {
    match outcome {
        Ok(done) => Ok(*done),
        Err(AppendError::Fenced { last }) => Err(*last),
        Err(AppendError::NoAnswer(_) | AppendError::Bus(_)) => Err(None),
    }
}

fn without_time(records: Vec<Stored>) -> Vec<(Sequence, Subject, bytes::Bytes)> {
    records.into_iter().map(|s| (s.sequence, s.subject, s.payload)).collect()
}

struct Pair {
    place: Place,
    file: SqliteBus,
    model: testkit::memory::BusHandle,
    last: u64,
    held: Vec<(DeliveryToken, DeliveryToken)>,
}

impl Pair {
    fn new() -> Self {
        let place = Place::new();
        let file = place.open();
        let model = MemoryBus::default().handle(&InstanceId::new("a").unwrap());
        Self { place, file, model, last: 0, held: Vec::new() }
    }

    async fn run(&mut self, step: Step) {
        match step {
            Step::Append { thread, leaf, plan, expect, id } => {
                let fence = self.fence(thread, &leaf, plan, expect).await;
                let mut append = append(thread, leaf, format!("{}", self.last), fence);
                append.dedup = id.map(|id| format!("{thread}/{id}"));
                let file = answer(&self.file.append(append.clone()).await);
                let model = answer(&self.model.append(append).await);
                assert_eq!(file, model);
                self.last = file.map_or(self.last, |done| self.last.max(done.sequence.0));
            }
            Step::Purge { thread: n, back } => {
                let up_to = Sequence(self.last.saturating_sub(back));
                self.file.purge(&thread(n), up_to).await.unwrap();
                self.model.purge(&thread(n), up_to).await.unwrap();
            }
            Step::Pull { queue, ack } => self.pull(&queue, ack).await,
            Step::Reopen => self.reopen().await,
        }
        for n in 0..3 {
            self.compare(n).await;
        }
    }

    async fn fence(&self, n: u64, leaf: &Leaf, plan: bool, expect: Expect) -> Fence {
        let records = self.model.read(&thread(n), Sequence::NONE, Sequence::NONE).await.unwrap();
        let in_chain = |stored: &&Stored| {
            if plan { stored.subject.leaf.is_plan() } else { stored.subject.leaf == *leaf }
        };
        let newest = records.iter().rfind(in_chain).map_or(Sequence::NONE, |s| s.sequence);
        let fence = if plan { Fence::Plan } else { Fence::Subject };
        match expect {
            Expect::Nothing => Fence::None,
            Expect::Newest => fence(newest),
            Expect::Stale => fence(newest.next()),
        }
    }

    async fn pull(&mut self, queue: &Queue, ack: bool) {
        let file = self.file.pull(queue, 1, Duration::ZERO).await.unwrap().pop();
        let model = self.model.pull(queue, 1, Duration::ZERO).await.unwrap().pop();
        let seen = |d: &ports::queues::Delivery| (d.stored.sequence, d.stored.subject.clone());
        assert_eq!(file.as_ref().map(seen), model.as_ref().map(seen));
        let Some((file, model)) = file.zip(model) else { return };
        if ack {
            self.file.ack(&file.token).await.unwrap();
            self.model.ack(&model.token).await.unwrap();
        } else {
            self.held.push((file.token, model.token));
        }
    }

    /// What was held is free at once in the file; the model is told to give it back.
    async fn reopen(&mut self) {
        self.file.close().await.unwrap();
        self.file = self.place.open();
        for (_, model) in self.held.drain(..) {
            self.model.nak(&model, Duration::ZERO).await.unwrap();
        }
    }

    async fn compare(&self, n: u64) {
        let file = self.file.read(&thread(n), Sequence::NONE, Sequence(self.last)).await.unwrap();
        let model = self.model.read(&thread(n), Sequence::NONE, Sequence(self.last)).await.unwrap();
        assert_eq!(without_time(file), without_time(model));
        let fact = Subject::new(thread(n), Leaf::Fact);
        let file = self.file.last(&fact).await.unwrap().map(|stored| stored.sequence);
        let model = self.model.last(&fact).await.unwrap().map(|stored| stored.sequence);
        assert_eq!(file, model);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_file_answers_what_a_bus_in_memory_answers(steps in vec(step(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut pair = Pair::new();
            for step in steps {
                pair.run(step).await;
            }
        });
    }
}

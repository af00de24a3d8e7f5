//! A journal that loses its newest records.

use std::collections::BTreeSet;
use std::time::Duration;

use proto::ids::{Partition, ThreadRef};
use proto::input::{InputBody, Message};

use super::World;
use crate::processes::{Process, Role};

impl World {
    /// A server that comes back without its newest records was away: planners notice that.
    pub(super) fn lose_tail(&mut self) -> bool {
        let lost = self.bus.lose_tail(Partition(0), self.random.usize(1..16));
        let struck: BTreeSet<ThreadRef> =
            lost.iter().map(|stored| stored.subject.thread.clone()).collect();
        for thread in &struck {
            let left = self.bus.journal(thread);
            self.shared.state().judge.lost(thread, &lost, &left);
        }
        for stored in &lost {
            self.shared.tell(|| format!("LOST {}", crate::story::of(stored)));
        }
        let planners = self.processes.iter().filter(|process| process.role() == Role::Planner);
        for name in planners.filter_map(Process::name) {
            self.bus.cut_off(name, Duration::from_secs(1));
        }
        self.struck.extend(struck);
        !lost.is_empty()
    }

    /// Whoever waits for a thread that lost records asks again in the end.
    pub(super) async fn ask_again(&mut self) {
        for thread in std::mem::take(&mut self.struck) {
            let words = format!("again {}", self.numbers);
            let key = format!("a-{}", self.numbers);
            self.numbers += 1;
            self.send(thread, &key, InputBody::Message(Message::text(words))).await;
        }
    }
}

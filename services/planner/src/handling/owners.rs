//! Turns that somebody works on: whose they are, and how they are stopped.

use std::time::Duration;

use planner_core::Thread;
use planner_core::view::Owner;
use ports::live::OwnerAnswer;
use proto::ids::InstanceId;
use proto::live::{HeldQuestion, Hint};

use super::{Look, Verdict, bus_failed, open_turn};
use crate::sweep::hint;

/// How long the owner of a turn in another process has to stop it by itself.
const STOP_PATIENCE: Duration = Duration::from_millis(150);

impl Look<'_> {
    /// Whether a turn that somebody is working on has to be stopped first, by its owner.
    pub(super) async fn stop_open_turn(&mut self, thread: &Thread) -> bool {
        let Some(open) = open_turn(thread).filter(|_| thread.is_stopping()) else { return false };
        if self.shared.running.is_running(&self.place, open.sequence) {
            self.shared.running.nudge(&self.place);
            return !std::mem::replace(&mut self.stop_hinted, true);
        }
        if open.started.owner == self.shared.config.instance || self.stop_hinted {
            return false;
        }
        self.stop_hinted = true;
        hint(self.shared.ports.live.as_ref(), &self.place, &Hint::StopTurn).await;
        true
    }

    pub(super) async fn wait_for_stop(&self, thread: &Thread) {
        let mine = open_turn(thread)
            .is_some_and(|open| self.shared.running.is_running(&self.place, open.sequence));
        if mine {
            let patience = STOP_PATIENCE.saturating_mul(10);
            self.shared.running.until_idle(&self.place, patience).await;
        } else {
            tokio::time::sleep(STOP_PATIENCE).await;
        }
    }

    pub(super) fn owner_of(&mut self, thread: &Thread) -> Owner {
        let Some(open) = open_turn(thread) else { return Owner::Unasked };
        if self.shared.running.is_running(&self.place, open.sequence) {
            return Owner::Working;
        }
        if self.owner.0 == open.sequence { self.owner.1 } else { Owner::Unasked }
    }

    pub(super) async fn ask(&mut self, thread: &Thread, owner: &InstanceId) -> Option<Verdict> {
        let open = open_turn(thread)?;
        let question = HeldQuestion { thread: self.place.clone(), started: open.sequence };
        let patience = self.shared.config.ask_patience;
        let answer = self.shared.ports.live.ask(owner, &question, patience).await;
        let state = match answer {
            Ok(OwnerAnswer::Holding) => Owner::Working,
            Ok(OwnerAnswer::NotHolding | OwnerAnswer::NoResponder | OwnerAnswer::Silent) => {
                tracing::info!(thread = %self.place, %owner, ?answer, "taking the turn over");
                self.shared.config.metrics.takeovers.inc();
                Owner::Gone
            }
            Err(error) => return Some(bus_failed(&error)),
        };
        self.owner = (open.sequence, state);
        None
    }
}

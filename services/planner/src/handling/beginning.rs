//! Facts that are appended, and what belongs to one that begins a turn.

use planner_core::Thread;
use ports::BusError;
use proto::fact::Fact;

use super::Look;
use crate::carry::{self, Carried};
use crate::memory::recalling::{self, Brought, bring};

impl Look<'_> {
    /// Appends a fact; a turn that it begins is ours to ask the model for.
    pub(super) async fn append(
        &mut self,
        thread: &Thread,
        fact: Fact,
    ) -> Result<Carried, BusError> {
        let begins = matches!(fact, Fact::TurnStarted(_));
        let Brought { fact, missing } = Box::pin(bring(self.shared, thread, fact)).await;
        let carried = carry::fact(self.shared, thread, fact).await?;
        if let (true, Carried::Landed(sequence)) = (begins, &carried) {
            self.begun = Some(*sequence);
            if let Some(because) = missing {
                Box::pin(recalling::tell(self.shared, thread, *sequence, because)).await;
            }
        }
        Ok(carried)
    }

    /// A delivery that is older than an ack wait may long be somebody else's, even acknowledged: a
    /// process that stood still cannot tell. A turn that is held by such a one would be watched by
    /// nobody if this process died, so a tick is armed for its end before it begins. A fence that
    /// does not hold refuses the turn as well.
    pub(super) async fn insure(&self, thread: &Thread, fact: &Fact) -> Result<(), BusError> {
        let Fact::TurnStarted(turn) = fact else { return Ok(()) };
        let age = self.shared.clock.now(thread.head.at).since(self.stored_at);
        if self.again || age >= self.shared.ports.queues.ack_wait() {
            carry::arm(self.shared, thread, turn.deadline).await?;
        }
        Ok(())
    }
}

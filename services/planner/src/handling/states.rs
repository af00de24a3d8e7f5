//! States in the place of records: of a tail that was lost, and of records that are old.

use planner_core::Thread;

use super::{Look, Verdict, bus_failed};
use crate::carry::{self, Carried};
use crate::load::Kept;

impl Look<'_> {
    /// Whether the journal has lost its tail and what was known of it is on its way back.
    pub(super) async fn restore(
        &mut self,
        thread: &Thread,
        kept: &mut Kept,
    ) -> Result<bool, Verdict> {
        let Some(lost) = kept.lost.take().filter(|lost| lost.chain == thread.plan_last) else {
            return Ok(false);
        };
        let now = self.shared.clock.now(thread.head.at);
        match carry::restore(self.shared, thread, &lost, now).await {
            Ok(Carried::Landed(sequence)) => {
                self.shared.config.metrics.folds.restored.inc();
                tracing::warn!(thread = %self.place, %sequence, "what the journal lost is restored");
                kept.thread = None;
                self.moved(sequence);
            }
            Ok(Carried::Lost(sequence)) => {
                kept.lost = Some(lost);
                self.note_lost(sequence).await?;
            }
            Err(error) => {
                kept.lost = Some(lost);
                return Err(bus_failed(&error));
            }
        }
        Ok(true)
    }

    /// Whether the thread is kept as a state before its delivery is let go.
    pub(super) fn is_worth_a_checkpoint(&self, thread: &Thread) -> bool {
        let Some(runs) = self.shared.config.keep_runs else { return false };
        let span = self.shared.config.spans.schedule_to_start;
        // One that purges nothing would only put the next purge off.
        let purges = || thread.purgeable(self.shared.clock.now(thread.head.at), span).is_some();
        thread.is_worth_a_checkpoint(runs) && (thread.checkpoint.is_none() || purges())
    }
}

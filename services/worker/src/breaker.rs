//! What a worker knows of its tool's breaker without asking working memory for each call.

use std::time::Duration;

use ports::working_memory::Sample;
use tokio::sync::watch;
use tokio::time::Instant;

/// How old this knowledge may be. The samples of a busy tool are many, and successes never open a
/// breaker: a failure that happens here is told at once and ends it, one elsewhere is noticed after it.
const FRESH: Duration = Duration::from_millis(250);
/// Outcomes that wait to be told, at most.
const WAITING: usize = 256;

/// Between two looks for good outcomes that no later one has told.
pub(crate) const TELL_EVERY: Duration = Duration::from_secs(1);

/// A breaker that was seen closed, and good outcomes that working memory has not been told.
#[derive(Debug, Default)]
pub(crate) struct BreakerView(watch::Sender<State>);

#[derive(Debug, Default)]
struct State {
    closed: Option<Instant>,
    untold: Vec<Sample>,
}

impl BreakerView {
    /// Whether it may be taken to be closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.borrow().is_closed()
    }

    /// Judged closed by samples that were asked for at `asked`.
    pub(crate) fn see_closed(&self, asked: Instant) {
        self.0.send_modify(|state| state.closed = Some(asked));
    }

    /// The tool failed.
    pub(crate) fn forget(&self) {
        self.0.send_modify(|state| state.closed = None);
    }

    /// Counts an outcome; answers with those that have to be told now. Only a good one of a breaker
    /// that is seen closed may wait: one of a probe has to close it.
    pub(crate) fn count(&self, sample: Sample) -> Vec<Sample> {
        let mut due = Vec::new();
        self.0.send_modify(|state| {
            state.untold.push(sample);
            if !sample.ok || !state.is_closed() || state.untold.len() >= WAITING {
                due = std::mem::take(&mut state.untold);
            }
        });
        due
    }

    /// Outcomes that were not told yet.
    pub(crate) fn untold(&self) -> Vec<Sample> {
        let mut untold = Vec::new();
        self.0.send_modify(|state| untold = std::mem::take(&mut state.untold));
        untold
    }
}

impl State {
    fn is_closed(&self) -> bool {
        self.closed.is_some_and(|at| at.elapsed() < FRESH)
    }
}

#[cfg(test)]
mod tests {
    use proto::time::Timestamp;

    use super::*;

    const fn sample(at: i64, ok: bool) -> Sample {
        Sample { at: Timestamp(at), ok }
    }

    #[tokio::test(start_paused = true)]
    async fn good_outcomes_are_told_together_and_a_bad_one_at_once() {
        let view = BreakerView::default();
        assert_eq!(
            view.count(sample(0, true)),
            [sample(0, true)],
            "nobody knows that it is closed"
        );
        view.see_closed(Instant::now());
        assert_eq!(view.count(sample(1, true)), []);
        assert_eq!(view.count(sample(2, false)), [sample(1, true), sample(2, false)]);
        assert_eq!(view.count(sample(3, true)), []);
        tokio::time::advance(FRESH).await;
        assert_eq!(view.count(sample(4, true)), [sample(3, true), sample(4, true)]);
        assert_eq!(view.untold(), []);
    }

    #[tokio::test(start_paused = true)]
    async fn closed_is_believed_for_a_while_and_until_the_tool_fails() {
        let view = BreakerView::default();
        assert!(!view.is_closed());
        view.see_closed(Instant::now());
        assert!(view.is_closed());
        view.forget();
        assert!(!view.is_closed());
        view.see_closed(Instant::now());
        tokio::time::advance(FRESH).await;
        assert!(!view.is_closed());
    }
}

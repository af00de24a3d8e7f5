//! What may still come to threads whose runs have ended: results that are kept as late, and the state
//! that stands for older records. Everything else would alter the run.

use planner_core::Thread;
use proto::fact::Fact;
use proto::ids::{Sequence, ThreadRef};
use proto::record::{Placed, Record};

use super::client::Client;
use super::judge::history;
use crate::failure::Failure;
use crate::follow::fold;

/// How far the journals of ended runs had come.
pub(crate) struct Ends(Vec<(ThreadRef, Sequence)>);

impl Ends {
    /// As they are at this moment.
    pub(crate) async fn of(client: &Client, places: &[ThreadRef]) -> Result<Self, Failure> {
        let mut ends = Vec::new();
        for place in places {
            let thread = fold(client.journal(), place).await?;
            // A run that has not ended is counted as lost, whatever comes to it.
            let is_over = thread.is_at_rest() && thread.runs > 0;
            ends.extend(is_over.then(|| (place.clone(), thread.head.sequence)));
        }
        Ok(Self(ends))
    }

    /// What has come since then and alters a run.
    pub(crate) async fn altered(&self, client: &Client) -> Result<Vec<String>, Failure> {
        let mut altered = Vec::new();
        for (place, end) in &self.0 {
            let history = history(client.journal().as_ref(), place).await?;
            let thread = place.thread;
            altered.extend(altering(&history, *end).iter().map(|what| format!("{thread}: {what}")));
        }
        Ok(altered)
    }

    /// Results that are kept as late.
    pub(crate) async fn late(&self, client: &Client) -> Result<u32, Failure> {
        let mut late = 0_u32;
        for (place, _) in &self.0 {
            let thread: Thread = fold(client.journal(), place).await?;
            late = late.saturating_add(thread.late);
        }
        Ok(late)
    }
}

/// What lies behind the end of a run and alters it.
pub(super) fn altering(history: &[Placed], end: Sequence) -> Vec<String> {
    let since = history.iter().filter(|placed| placed.sequence > end && alters(placed));
    let told = since.map(|placed| {
        format!("{} at {} after the run had ended", placed.record.kind(), placed.sequence)
    });
    told.collect()
}

fn alters(placed: &Placed) -> bool {
    match &placed.record {
        Record::Fact(Fact::Checkpoint(_)) | Record::Observation(_) | Record::Tick => false,
        Record::Fact(_) | Record::Input(_) | Record::ToolCall(_) | Record::Start(_) => true,
    }
}

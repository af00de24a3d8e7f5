//! Journals of threads at rest, held against the named invariants. It costs a read of the whole, so it
//! is done for one thread at a time, takes a small share of the time, and is left out for threads that
//! end meanwhile.

use ports::BusError;
use proto::envelope::Envelope;
use proto::ids::{Sequence, ThreadRef};
use proto::record::Placed;
use tokio::time::Instant;

use crate::planner::Shared;

/// The longest journal that is read for this.
const LONGEST: usize = 10_000;

/// How much longer it rests after a judgement than that took: judging takes a twentieth of the time.
const REST: u32 = 19;

/// Judges a thread's journal, if journals are judged and it is time for one.
pub(crate) async fn judge(shared: &Shared, place: &ThreadRef) {
    if !shared.config.judges {
        return;
    }
    let began = Instant::now();
    let Ok(mut next) = shared.judging.try_lock() else { return };
    if next.is_some_and(|next| began < next) {
        return;
    }
    if let Err(error) = judge_now(shared, place).await {
        tracing::debug!(%error, "a journal was not judged");
    }
    *next = began.elapsed().checked_mul(REST).and_then(|rest| Instant::now().checked_add(rest));
}

async fn judge_now(shared: &Shared, place: &ThreadRef) -> Result<(), BusError> {
    let records = shared.ports.journal.read(place, Sequence::NONE, Sequence::NONE).await?;
    if records.len() > LONGEST {
        return Ok(());
    }
    // A record that nobody can decode is parked; the rules are about the others.
    let placed = records.into_iter().filter_map(|stored| {
        let envelope = Envelope::decode(&stored.payload).ok()?;
        let (sequence, at) = (stored.sequence, stored.at);
        Some(Placed { sequence, at, nonce: envelope.nonce, record: envelope.body })
    });
    let history: Vec<Placed> = placed.collect();
    // The bus may have lost records while this process was not there to see it.
    let violations = invariants::check_left(&history, false);
    for violation in &violations {
        tracing::error!(thread = %place, %violation, "a journal breaks an invariant");
    }
    shared.config.metrics.judged(&violations);
    Ok(())
}

//! Journals of threads at rest, held against the named invariants. It costs one read, so it is done
//! for one thread at a time and left out for those that end meanwhile.

use proto::envelope::Envelope;
use proto::ids::{Sequence, ThreadRef};
use proto::record::Placed;

use crate::planner::Shared;

/// The longest journal that is read for this.
const LONGEST: usize = 10_000;

/// Judges a thread's journal, if journals are judged and none is at the moment.
pub(crate) async fn judge(shared: &Shared, place: &ThreadRef) {
    if !shared.config.judges {
        return;
    }
    let Ok(_one) = shared.judging.try_acquire() else { return };
    let records = shared.ports.journal.read(place, Sequence::NONE, Sequence::NONE).await;
    let records = match records {
        Ok(records) if records.len() <= LONGEST => records,
        Ok(_) => return,
        Err(error) => {
            tracing::debug!(%error, "a journal was not judged");
            return;
        }
    };
    // A record that nobody can decode is parked; the rules are about the others.
    let placed = records.into_iter().filter_map(|stored| {
        let envelope = Envelope::decode(&stored.payload).ok()?;
        let (sequence, at) = (stored.sequence, stored.at);
        Some(Placed { sequence, at, nonce: envelope.nonce, record: envelope.body })
    });
    let history: Vec<Placed> = placed.collect();
    let violations = invariants::check(&history);
    for violation in &violations {
        tracing::error!(thread = %place, %violation, "a journal breaks an invariant");
    }
    shared.config.metrics.judged(&violations);
}

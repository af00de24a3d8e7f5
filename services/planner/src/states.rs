//! Kept states that a thread needs no more: named by records that are purged and by no others.
//!
//! A state goes one checkpoint later than the records that name it: somebody may have read those just
//! before they were purged, and fold from the state. Until then the checkpoint that purged them names
//! it as replaced, so that a planner which dies in between leaves it to the next one.

use std::collections::BTreeMap;

use ports::journal::Stored;
use proto::envelope::Envelope;
use proto::fact::Fact;
use proto::ids::{ArtifactId, Sequence};
use proto::observation::ArtifactRef;
use proto::record::Record;

/// States of one checkpoint, at most; a thread that has more loses the others with its erasure.
const MOST: usize = 64;

/// What becomes of a thread's kept states when its records up to one are purged.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct States {
    /// Only records that are purged now name them.
    pub(crate) replaced: Vec<ArtifactRef>,
    /// An earlier checkpoint has replaced them.
    pub(crate) old: Vec<ArtifactRef>,
}

impl States {
    /// By the thread's records, of which those up to `up_to` are purged.
    pub(crate) fn of(records: &[Stored], up_to: Sequence) -> Self {
        let (mut purged, mut left, mut old) = (Names::new(), Names::new(), Names::new());
        for stored in records {
            let Ok(envelope) = Envelope::decode(&stored.payload) else { continue };
            let Record::Fact(fact) = envelope.body else { continue };
            let names = if stored.sequence <= up_to { &mut purged } else { &mut left };
            match fact {
                Fact::Checkpoint(checkpoint) => {
                    add(names, [checkpoint.state]);
                    add(&mut old, checkpoint.replaces);
                }
                Fact::Restored(restored) => add(names, [restored.state]),
                Fact::TurnStarted(_)
                | Fact::TurnCompleted(_)
                | Fact::TurnSealed(_)
                | Fact::CallClosed { .. }
                | Fact::ApprovalAsked(_)
                | Fact::RunFinished(_)
                | Fact::Parked { .. } => {}
            }
        }
        purged.retain(|id, _| !left.contains_key(id));
        old.retain(|id, _| !left.contains_key(id) && !purged.contains_key(id));
        Self { replaced: some(purged), old: some(old) }
    }
}

type Names = BTreeMap<ArtifactId, u64>;

fn add(names: &mut Names, states: impl IntoIterator<Item = ArtifactRef>) {
    names.extend(states.into_iter().map(|state| (state.id, state.bytes)));
}

fn some(names: Names) -> Vec<ArtifactRef> {
    names.into_iter().take(MOST).map(|(id, bytes)| ArtifactRef { id, bytes }).collect()
}

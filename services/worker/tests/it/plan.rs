//! Faults in the order in which a test wants them.

use std::sync::Arc;

use proto::ids::InstanceId;
use proto::subject::Leaf;
use testkit::memory::faults::{Fault, Faults, Op, OpKind};
use tokio::sync::watch;

/// Which operation, and what happens to it.
#[derive(Clone, Debug)]
struct Planned {
    process: &'static str,
    wanted: Wanted,
    fault: Fault,
}

#[derive(Clone, Debug)]
enum Wanted {
    /// Each operation of a kind.
    Kind(OpKind),
    /// The first operation of a kind.
    First(OpKind),
    /// The first append to a start subject.
    Start,
    /// Each append to a start subject.
    Starts,
    /// The first append of an observation.
    Observation,
    /// The operation with this number, from 0, of those that a worker may do on a call.
    Number(usize),
}

#[derive(Debug, Default)]
struct State {
    planned: Vec<Planned>,
    count: usize,
    fired: usize,
}

/// Fires each planned fault once; those for a kind for ever.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    state: Arc<watch::Sender<State>>,
}

impl Plan {
    pub(crate) fn none() -> Self {
        Self { state: Arc::new(watch::Sender::new(State::default())) }
    }

    fn and(self, process: &'static str, wanted: Wanted, fault: Fault) -> Self {
        self.state.send_modify(|state| state.planned.push(Planned { process, wanted, fault }));
        self
    }

    pub(crate) fn always(self, process: &'static str, kind: OpKind, fault: Fault) -> Self {
        self.and(process, Wanted::Kind(kind), fault)
    }

    pub(crate) fn first(self, process: &'static str, kind: OpKind, fault: Fault) -> Self {
        self.and(process, Wanted::First(kind), fault)
    }

    pub(crate) fn on_start(self, process: &'static str, fault: Fault) -> Self {
        self.and(process, Wanted::Start, fault)
    }

    pub(crate) fn on_starts(self, process: &'static str, fault: Fault) -> Self {
        self.and(process, Wanted::Starts, fault)
    }

    pub(crate) fn on_observation(self, process: &'static str, fault: Fault) -> Self {
        self.and(process, Wanted::Observation, fault)
    }

    pub(crate) fn on_number(self, process: &'static str, number: usize, fault: Fault) -> Self {
        self.and(process, Wanted::Number(number), fault)
    }

    /// How many faults fired.
    pub(crate) fn fired(&self) -> usize {
        self.state.borrow().fired
    }
}

/// Operations that belong to the work on a call.
fn is_step(kind: OpKind) -> bool {
    matches!(
        kind,
        OpKind::Append
            | OpKind::Read
            | OpKind::Last
            | OpKind::Ack
            | OpKind::Nak
            | OpKind::Artifact
            | OpKind::Recall
            | OpKind::Remember
    )
}

impl Faults for Plan {
    fn on(&self, process: &InstanceId, op: &Op<'_>) -> Fault {
        let mut fault = Fault::None;
        self.state.send_modify(|state| {
            let of_process = |planned: &Planned| planned.process == process.as_str();
            let number = state.count;
            if is_step(op.kind) && state.planned.iter().any(of_process) {
                state.count += 1;
            }
            let is_meant = |planned: &Planned| {
                of_process(planned)
                    && match planned.wanted {
                        Wanted::Kind(kind) | Wanted::First(kind) => kind == op.kind,
                        Wanted::Start | Wanted::Starts => {
                            op.kind == OpKind::Append && matches!(op.leaf, Some(Leaf::Start(_)))
                        }
                        Wanted::Observation => {
                            op.kind == OpKind::Append && matches!(op.leaf, Some(Leaf::Observation))
                        }
                        Wanted::Number(wanted) => is_step(op.kind) && wanted == number,
                    }
            };
            let Some(at) = state.planned.iter().position(is_meant) else { return };
            fault = state.planned[at].fault;
            state.fired += 1;
            if !matches!(state.planned[at].wanted, Wanted::Kind(_) | Wanted::Starts) {
                state.planned.remove(at);
            }
        });
        fault
    }
}

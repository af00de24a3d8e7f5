//! What all parts of a world share: chance, the ledger, the judge, the log.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::time::Duration;

use proto::fact::ApprovalAsked;
use proto::ids::{InstanceId, ThreadRef, ToolCallId};
use testkit::memory::MemoryBus;
use tokio::sync::mpsc::UnboundedSender;

use crate::fault_kind::FaultKind;
use crate::judge::Judge;
use crate::lock::{Lock, Locked};
use crate::tools::Ledger;

/// What the world's own task has to hear of.
#[derive(Debug)]
pub enum Note {
    /// A process died by a fault.
    Crashed(InstanceId),
    /// A process ended by itself.
    Ended(InstanceId),
    /// A person is asked.
    Asked(ThreadRef, ApprovalAsked),
    /// A rule is broken.
    Violated(Violation),
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its name.
    pub rule: String,
    /// What was found.
    pub why: String,
}

impl Violation {
    /// A violation.
    pub fn new(rule: impl Display, why: impl Into<String>) -> Self {
        Self { rule: rule.to_string(), why: why.into() }
    }
}

/// The state behind the lock.
pub struct State {
    /// Chance of everything that happens at an operation.
    pub random: fastrand::Rng,
    /// Whether faults happen at this time.
    pub chaos: bool,
    /// The kinds that this world has.
    pub kinds: BTreeSet<FaultKind>,
    /// The chance of a fault per operation.
    pub rate: f64,
    /// How many of each kind happened.
    pub counts: BTreeMap<FaultKind, u64>,
    /// Faults left before this world has had enough.
    pub left: u32,
    /// What the tools did.
    pub ledger: Ledger,
    /// What the journal says.
    pub judge: Judge,
    /// The bus; absent before the start and after the end, as it refers back to this.
    pub bus: Option<MemoryBus>,
    /// Operations at one moment.
    pub rush: (Duration, u32),
    /// The story so far, when somebody wants to read it.
    pub log: Vec<String>,
}

/// Shared by all processes of a world.
pub struct Shared {
    state: Lock<State>,
    notes: UnboundedSender<Note>,
    /// Whether the story is written down.
    pub traced: bool,
}

impl Shared {
    /// A world in which nothing has happened.
    pub fn new(state: State, notes: UnboundedSender<Note>, traced: bool) -> Self {
        Self { state: Lock::new(state), notes, traced }
    }

    /// The state. Never held over an await or a call of the bus.
    pub fn state(&self) -> Locked<'_, State> {
        self.state.lock()
    }

    /// Tells the world's task; after its end nobody listens.
    pub fn note(&self, note: Note) {
        self.notes.send(note).unwrap_or_default();
    }

    /// Tells of broken rules.
    pub fn violated(&self, found: impl IntoIterator<Item = Violation>) {
        for violation in found {
            self.note(Note::Violated(violation));
        }
    }

    /// The bus.
    pub fn bus(&self) -> Option<MemoryBus> {
        self.state().bus.clone()
    }

    /// Counts a fault.
    pub fn count(&self, kind: FaultKind, what: impl Display) {
        *self.state().counts.entry(kind).or_default() += 1;
        self.tell(|| format!("FAULT {} {what}", kind.name()));
    }

    /// Writes a line of the story, if somebody wants to read it.
    pub fn tell(&self, line: impl FnOnce() -> String) {
        if self.traced {
            let at = self.bus().map_or(0, |bus| bus.elapsed().as_millis());
            let line = format!("{at:>7} {}", line());
            self.state().log.push(line);
        }
    }

    /// An attempt begins its effect.
    pub fn began(&self, thread: &ThreadRef, call: &proto::call::ToolCall, attempt: u32) {
        let Some(bus) = self.bus() else { return };
        let now = bus.now();
        self.tell(|| format!("EFFECT {} {} attempt {attempt}", call.tool, call.tool_call_id));
        let found = {
            let mut state = self.state();
            state.ledger.began(&call.tool_call_id, now);
            let effects = state.ledger.of(&call.tool_call_id);
            state.judge.began(thread, call, attempt, &effects, now)
        };
        self.violated(found);
    }

    /// The effect of an attempt is there.
    pub fn landed(&self, call: &proto::call::ToolCall) {
        let Some(bus) = self.bus() else { return };
        let (id, now) = (&call.tool_call_id, bus.now());
        self.tell(|| format!("LANDED {id}"));
        let found = {
            let mut state = self.state();
            state.ledger.landed(id, now);
            Judge::landed(call, &state.ledger.of(id))
        };
        self.violated(found);
    }

    /// Whether an effect of the call is there.
    pub fn has_landed(&self, id: &ToolCallId) -> bool {
        !self.state().ledger.of(id).landed.is_empty()
    }
}

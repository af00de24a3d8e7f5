//! A thread as its journal has it: the fold, and what clients ask for beyond it.

use std::collections::BTreeMap;

use axum::http::StatusCode;
use planner_core::Thread;
use proto::envelope::DecodeError;
use proto::error_code::ErrorCode;
use proto::event::{Event, ThreadEvent, events_of};
use proto::ids::{InputKey, Nonce, Sequence, ThreadId, ThreadRef};
use proto::input::InputBody;
use proto::record::{Placed, Record};
use proto::subject::Leaf;

use crate::gateway::App;
use crate::problem::Problem;

/// An input that was accepted.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) sequence: Sequence,
    pub(crate) nonce: Nonce,
    pub(crate) body: InputBody,
}

/// A thread, read from its first record on.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) thread: Thread,
    /// The first input of each key.
    pub(crate) inputs: BTreeMap<InputKey, Taken>,
    /// The last record of the thread's inputs.
    pub(crate) last_input: Sequence,
    /// How each run ended.
    pub(crate) ends: BTreeMap<u32, ThreadEvent>,
}

impl Reading {
    /// Reads what there is, at least up to `floor`.
    pub(crate) async fn load(
        app: &App,
        place: &ThreadRef,
        floor: Sequence,
    ) -> Result<Self, Problem> {
        let mut reading = Self {
            thread: Thread::new(place.clone()),
            inputs: BTreeMap::new(),
            last_input: Sequence::NONE,
            ends: BTreeMap::new(),
        };
        for stored in app.ports.journal.read(place, Sequence::NONE, floor).await? {
            if stored.subject.leaf == Leaf::In {
                reading.last_input = stored.sequence;
            }
            match stored.placed() {
                Ok(placed) => reading.take(&stored.subject.leaf, &placed),
                Err(DecodeError::Malformed(why)) => {
                    let leaf = &stored.subject.leaf;
                    reading.thread.apply_poison(leaf, stored.sequence, stored.at, why);
                }
                Err(error @ DecodeError::TooNew { .. }) => return Err(too_new(&error)),
            }
        }
        Ok(reading)
    }

    /// The same for a thread that has to be there.
    pub(crate) async fn find(app: &App, place: &ThreadRef) -> Result<Self, Problem> {
        let reading = Self::load(app, place, Sequence::NONE).await?;
        if reading.is_empty() { Err(no_thread(place.thread)) } else { Ok(reading) }
    }

    /// Whether nothing was ever said in the thread.
    pub(crate) fn is_empty(&self) -> bool {
        self.thread.head.sequence == Sequence::NONE
    }

    fn take(&mut self, leaf: &Leaf, placed: &Placed) {
        match &placed.record {
            Record::Input(input) => {
                let (sequence, nonce) = (placed.sequence, placed.nonce.clone());
                let taken = Taken { sequence, nonce, body: input.body.clone() };
                self.inputs.entry(input.key.clone()).or_insert(taken);
            }
            Record::Fact(_) => self.note_end(placed),
            Record::ToolCall(_) | Record::Start(_) | Record::Observation(_) | Record::Tick => {}
        }
        self.thread.apply(leaf, placed);
    }

    fn note_end(&mut self, placed: &Placed) {
        for told in events_of(self.thread.place.thread, placed) {
            if let Event::RunFinished { run, .. } = &told.event {
                self.ends.entry(*run).or_insert(told);
            }
        }
    }
}

pub(crate) fn no_thread(thread: ThreadId) -> Problem {
    let fix = "Begin one with POST /v1/threads, or name its agent with the first input.";
    Problem::not_found(format!("there is no thread {thread}"), fix)
}

pub(crate) fn too_new(error: &DecodeError) -> Problem {
    let fix = "Upgrade the gateway: newer planners or workers write to this bus.";
    let status = StatusCode::SERVICE_UNAVAILABLE;
    Problem::new(status, ErrorCode::TooNew, error.to_string(), fix)
}

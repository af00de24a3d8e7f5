//! A thread's records as readers outside are told them: phases, each input once, late results
//! marked, and live text only of the turn that is open.

use proto::event::{Event, ThreadEvent, events_of};
use proto::fact::Fact;
use proto::ids::{Sequence, ThreadRef};
use proto::live::{LiveText, LiveWord};
use proto::notice::{LiveNotice, Notice};
use proto::observation::Observation;
use proto::record::{Placed, Record};
use proto::subject::Leaf;
use proto::time::Timestamp;

use crate::phase::{Entered, Phases};
use crate::thread::{Rank, Thread};

/// Folds a thread's records, from the first one on, and tells what each means.
#[derive(Clone, Debug)]
pub struct Teller {
    thread: Thread,
    phases: Phases,
}

impl Teller {
    /// Before the first record.
    pub fn new(place: ThreadRef) -> Self {
        Self { thread: Thread::new(place), phases: Phases::default() }
    }

    /// The thread as far as it was told.
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// The thread as far as it was told, for its own sake.
    pub fn into_thread(self) -> Thread {
        self.thread
    }

    /// The events of the next record: the phases it led to, then what it tells itself, so that the
    /// end of a run comes last.
    pub fn record(&mut self, leaf: &Leaf, placed: &Placed) -> Vec<ThreadEvent> {
        let rank = rank(&self.thread, placed);
        self.thread.apply(leaf, placed);
        let mut told = self.phases_after(placed);
        if rank == Rank::Known {
            return told;
        }
        let mut own = events_of(self.thread.place.thread, placed);
        for told in &mut own {
            if let (Rank::Late, Event::Observation { late, .. }) = (rank, &mut told.event) {
                *late = true;
            }
        }
        told.append(&mut own);
        told
    }

    /// The next record cannot be read. A planner parks it, and that is told.
    pub fn poison(&mut self, leaf: &Leaf, sequence: Sequence, at: Timestamp, why: String) {
        self.thread.apply_poison(leaf, sequence, at, why);
    }

    /// The events of what is said beside the journal: none if it belongs to a turn that is over, or
    /// to a start that was given up, because the journal has told the whole.
    pub fn word(&mut self, word: LiveWord) -> Vec<ThreadEvent> {
        let (thread, sequence) = (self.thread.place.thread, word.started());
        let open = self.thread.run.as_ref().and_then(|run| run.open.as_ref());
        if open.is_none_or(|open| open.sequence != sequence) {
            return Vec::new();
        }
        let draft = open.is_some_and(|open| open.started.draft);
        let events = match word {
            LiveWord::Text(LiveText { turn, offset, channel, delta, .. }) => {
                let entered = self.phases.after_word().map(phase_event);
                let delta = Event::Delta { turn, channel, offset, delta, draft };
                entered.into_iter().chain([delta]).collect()
            }
            LiveWord::Notice(notice) => vec![notice_event(notice)],
        };
        let live = |event| ThreadEvent { thread, sequence, at: None, event };
        events.into_iter().map(live).collect()
    }

    fn phases_after(&mut self, placed: &Placed) -> Vec<ThreadEvent> {
        let ended = matches!(&placed.record, Record::Fact(Fact::RunFinished(_)));
        let (thread, sequence, at) = (self.thread.place.thread, placed.sequence, Some(placed.at));
        let entered = self.phases.after_record(&self.thread, ended).into_iter();
        let placed_here = |event| ThreadEvent { thread, sequence, at, event };
        entered.map(phase_event).map(placed_here).collect()
    }
}

fn notice_event(LiveNotice { turn, notice, .. }: LiveNotice) -> Event {
    match notice {
        Notice::DeadlinePassed { deadline, next } => {
            Event::DeadlinePassed { deadline, next, turn: Some(turn), tool_call_id: None }
        }
        Notice::Waiting { because, at_most_ms } => Event::Waiting { turn, because, at_most_ms },
        Notice::WithoutMemory { because } => Event::WithoutMemory { turn, because },
    }
}

fn phase_event((phase, waiting_for): Entered) -> Event {
    Event::Phase { phase, waiting_for }
}

/// What a record is that is about to be folded: the same key is the same input, and of two answers
/// to a call the first counts; a planner's that came second was never more than a try, and what was
/// decided from records that are gone tells nothing.
fn rank(thread: &Thread, placed: &Placed) -> Rank {
    let of = |observation: &Observation| {
        let call = thread.calls.get(&observation.tool_call_id);
        call.map_or(Rank::First, |call| call.rank(observation))
    };
    match &placed.record {
        Record::Input(input) if thread.keys.contains(&input.key) => Rank::Known,
        Record::Observation(observation) => of(observation),
        Record::Fact(_) if thread.is_void(placed) => Rank::Known,
        Record::Fact(Fact::CallClosed { observation }) if of(observation) != Rank::First => {
            Rank::Known
        }
        Record::Input(_)
        | Record::Fact(_)
        | Record::ToolCall(_)
        | Record::Start(_)
        | Record::Tick => Rank::First,
    }
}

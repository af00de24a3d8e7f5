//! A thread as it happens: its journal in order, with the text that streams in between.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use planner_core::Thread;
use planner_core::phase::{Entered, Phases};
use planner_core::thread::Rank;
use ports::BusError;
use ports::journal::{Journal, Stored};
use ports::live::{Live, Subscription, Topic};
use proto::envelope::{DecodeError, Envelope};
use proto::event::{Event, ThreadEvent, events_of};
use proto::fact::Fact;
use proto::ids::{Sequence, ThreadRef};
use proto::live::LiveText;
use proto::observation::Observation;
use proto::record::{Placed, Record};

/// Between two looks at the journal.
const LOOK_EVERY: Duration = Duration::from_millis(30);

/// One event, and the thread as it was then.
pub(crate) type Told<'a> = (&'a ThreadEvent, &'a Thread);

/// Reads a thread forward.
pub(crate) struct Follower {
    journal: Arc<dyn Journal>,
    live: Option<Box<dyn Subscription>>,
    thread: Thread,
    phases: Phases,
}

impl Follower {
    /// From the thread's first record on, without live text.
    pub(crate) fn new(journal: Arc<dyn Journal>, place: ThreadRef) -> Self {
        Self { journal, live: None, thread: Thread::new(place), phases: Phases::default() }
    }

    /// With live text from this moment on.
    pub(crate) async fn with_live(mut self, live: &dyn Live) -> Result<Self, BusError> {
        let topic = Topic::Text(self.thread.place.clone());
        self.live = Some(live.subscribe(&topic).await?);
        Ok(self)
    }

    /// With live text that comes from elsewhere.
    pub(crate) fn with_pieces(mut self, live: Box<dyn Subscription>) -> Self {
        self.live = Some(live);
        self
    }

    /// The thread as far as it was read.
    pub(crate) fn thread(&self) -> &Thread {
        &self.thread
    }

    /// Reads what the journal has and tells each event.
    pub(crate) async fn look(
        &mut self,
        tell: &mut (dyn FnMut(Told<'_>) + Send),
    ) -> Result<(), BusError> {
        let from = self.thread.head.sequence.next();
        let place = self.thread.place.clone();
        for stored in self.journal.read(&place, from, Sequence::NONE).await? {
            self.take(&stored, tell)?;
        }
        Ok(())
    }

    /// Waits for a moment, or for live text, and tells what is new.
    pub(crate) async fn next(
        &mut self,
        tell: &mut (dyn FnMut(Told<'_>) + Send),
    ) -> Result<(), BusError> {
        let Some(bytes) = self.piece().await else { return self.look(tell).await };
        let Ok(piece) = serde_json::from_slice::<LiveText>(&bytes) else { return Ok(()) };
        if piece.started > self.thread.head.sequence {
            self.look(tell).await?;
        }
        self.tell_piece(piece, tell);
        Ok(())
    }

    /// Live text, or nothing for a moment.
    async fn piece(&mut self) -> Option<Bytes> {
        let Some(live) = &mut self.live else {
            tokio::time::sleep(LOOK_EVERY).await;
            return None;
        };
        match tokio::time::timeout(LOOK_EVERY, live.next()).await {
            Ok(Some((_, bytes))) => Some(bytes),
            Ok(None) => {
                self.live = None;
                None
            }
            Err(_) => None,
        }
    }

    /// A piece of a turn that is over, or of a start that was given up, is dropped: the journal has
    /// told the whole.
    fn tell_piece(&mut self, piece: LiveText, tell: &mut (dyn FnMut(Told<'_>) + Send)) {
        let open = self.thread.run.as_ref().and_then(|run| run.open.as_ref());
        if open.is_none_or(|open| open.sequence != piece.started) {
            return;
        }
        let LiveText { started, turn, offset, channel, delta } = piece;
        let delta = Event::Delta { turn, channel, offset, delta };
        let entered = self.phases.after_word().map(phase_event);
        for event in entered.into_iter().chain([delta]) {
            let thread = self.thread.place.thread;
            let event = ThreadEvent { thread, sequence: started, at: None, event };
            tell((&event, &self.thread));
        }
    }

    /// The phases that a record led to, then what it tells itself: the end of a run comes last.
    fn events(&mut self, placed: &Placed) -> Vec<ThreadEvent> {
        let ended = matches!(&placed.record, Record::Fact(Fact::RunFinished(_)));
        let (thread, sequence, at) = (self.thread.place.thread, placed.sequence, Some(placed.at));
        let entered = self.phases.after_record(&self.thread, ended).into_iter();
        let placed_here = |event| ThreadEvent { thread, sequence, at, event };
        let phases = entered.map(phase_event).map(placed_here);
        phases.chain(events_of(thread, placed)).collect()
    }

    fn take(
        &mut self,
        stored: &Stored,
        tell: &mut (dyn FnMut(Told<'_>) + Send),
    ) -> Result<(), BusError> {
        let placed = match decode(stored) {
            Ok(placed) => placed,
            Err(DecodeError::Malformed(why)) => {
                self.thread.apply_poison(&stored.subject.leaf, stored.sequence, stored.at, why);
                return Ok(());
            }
            Err(error @ DecodeError::TooNew { .. }) => {
                return Err(BusError::Refused(error.to_string()));
            }
        };
        let rank = rank(&self.thread, &placed);
        self.thread.apply(&stored.subject.leaf, &placed);
        if rank == Rank::Known {
            return Ok(());
        }
        for mut event in self.events(&placed) {
            if let (Rank::Late, Event::Observation { late, .. }) = (rank, &mut event.event) {
                *late = true;
            }
            tell((&event, &self.thread));
        }
        Ok(())
    }
}

fn phase_event((phase, waiting_for): Entered) -> Event {
    Event::Phase { phase, waiting_for }
}

/// The record in stored bytes.
pub(crate) fn decode(stored: &Stored) -> Result<Placed, DecodeError> {
    let envelope = Envelope::decode(&stored.payload)?;
    Ok(Placed {
        sequence: stored.sequence,
        at: stored.at,
        nonce: envelope.nonce,
        record: envelope.body,
    })
}

/// What a record is that is about to be folded: the same key is the same input, and of two answers
/// to a call the first counts; a planner's that came second was never more than a try.
fn rank(thread: &Thread, placed: &Placed) -> Rank {
    let of = |observation: &Observation| {
        thread
            .calls
            .get(&observation.tool_call_id)
            .map_or(Rank::First, |call| call.rank(observation))
    };
    match &placed.record {
        Record::Input(input) if thread.keys.contains(&input.key) => Rank::Known,
        Record::Observation(observation) => of(observation),
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

/// The thread as its journal has it now.
pub(crate) async fn fold(
    journal: &Arc<dyn Journal>,
    place: &ThreadRef,
) -> Result<Thread, BusError> {
    let mut follower = Follower::new(Arc::clone(journal), place.clone());
    follower.look(&mut |_| {}).await?;
    Ok(follower.thread)
}

/// The same, with the end of its newest run that is over.
pub(crate) async fn fold_to_end(
    journal: &Arc<dyn Journal>,
    place: &ThreadRef,
) -> Result<(Thread, Option<Event>), BusError> {
    let mut follower = Follower::new(Arc::clone(journal), place.clone());
    let mut finished = None;
    let mut take = |(event, _): Told<'_>| {
        if matches!(event.event, Event::RunFinished { .. }) {
            finished = Some(event.event.clone());
        }
    };
    follower.look(&mut take).await?;
    Ok((follower.thread, finished))
}

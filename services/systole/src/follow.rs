//! A thread as it happens: its journal in order, with the text that streams in between.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use planner_core::Thread;
use ports::BusError;
use ports::journal::{Journal, Stored};
use ports::live::{Live, Subscription, Topic};
use proto::envelope::{DecodeError, Envelope};
use proto::event::{Event, ThreadEvent, events_of};
use proto::ids::{Sequence, ThreadRef};
use proto::live::LiveText;
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
}

impl Follower {
    /// From the thread's first record on, without live text.
    pub(crate) fn new(journal: Arc<dyn Journal>, place: ThreadRef) -> Self {
        Self { journal, live: None, thread: Thread::new(place) }
    }

    /// With live text from this moment on.
    pub(crate) async fn with_live(mut self, live: &dyn Live) -> Result<Self, BusError> {
        let topic = Topic::Text(self.thread.place.clone());
        self.live = Some(live.subscribe(&topic).await?);
        Ok(self)
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
    fn tell_piece(&self, piece: LiveText, tell: &mut (dyn FnMut(Told<'_>) + Send)) {
        let open = self.thread.run.as_ref().and_then(|run| run.open.as_ref());
        if open.is_none_or(|open| open.sequence != piece.started) {
            return;
        }
        let LiveText { started, turn, offset, channel, delta } = piece;
        let event = Event::Delta { turn, channel, offset, delta };
        let thread = self.thread.place.thread;
        let event = ThreadEvent { thread, sequence: started, at: None, event };
        tell((&event, &self.thread));
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
        let repeated = is_repeated_input(&self.thread, &placed);
        self.thread.apply(&stored.subject.leaf, &placed);
        if repeated {
            return Ok(());
        }
        for event in events_of(self.thread.place.thread, &placed) {
            tell((&event, &self.thread));
        }
        Ok(())
    }
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

/// The same key is the same input: the first one was told.
fn is_repeated_input(thread: &Thread, placed: &Placed) -> bool {
    match &placed.record {
        Record::Input(input) => thread.keys.contains(&input.key),
        Record::Fact(_)
        | Record::ToolCall(_)
        | Record::Start(_)
        | Record::Observation(_)
        | Record::Tick => false,
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

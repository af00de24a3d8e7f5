//! A thread as it happens: its journal in order, with the text that streams in between.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use planner_core::Thread;
use planner_core::telling::Teller;
use ports::BusError;
use ports::journal::{Journal, Stored};
use ports::live::{Live, Subscription, Topic};
use proto::envelope::DecodeError;
use proto::event::{Event, ThreadEvent};
use proto::ids::{Sequence, ThreadRef};
use proto::live::LiveWord;

/// Between two looks at the journal.
const LOOK_EVERY: Duration = Duration::from_millis(30);

/// One event, and the thread as it was then.
pub(crate) type Told<'a> = (&'a ThreadEvent, &'a Thread);

/// Reads a thread forward.
pub(crate) struct Follower {
    journal: Arc<dyn Journal>,
    live: Option<Box<dyn Subscription>>,
    teller: Teller,
}

impl Follower {
    /// From the thread's first record on, without live text.
    pub(crate) fn new(journal: Arc<dyn Journal>, place: ThreadRef) -> Self {
        Self { journal, live: None, teller: Teller::new(place) }
    }

    /// With live text from this moment on.
    pub(crate) async fn with_live(mut self, live: &dyn Live) -> Result<Self, BusError> {
        let topic = Topic::Text(self.thread().place.clone());
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
        self.teller.thread()
    }

    /// Reads what the journal has and tells each event.
    pub(crate) async fn look(
        &mut self,
        tell: &mut (dyn FnMut(Told<'_>) + Send),
    ) -> Result<(), BusError> {
        let from = self.thread().head.sequence.next();
        let place = self.thread().place.clone();
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
        let Ok(word) = serde_json::from_slice::<LiveWord>(&bytes) else { return Ok(()) };
        if word.started() > self.thread().head.sequence {
            self.look(tell).await?;
        }
        let told = self.teller.word(word);
        self.tell(&told, tell);
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

    fn tell(&self, events: &[ThreadEvent], tell: &mut (dyn FnMut(Told<'_>) + Send)) {
        for event in events {
            tell((event, self.thread()));
        }
    }

    fn take(
        &mut self,
        stored: &Stored,
        tell: &mut (dyn FnMut(Told<'_>) + Send),
    ) -> Result<(), BusError> {
        let leaf = &stored.subject.leaf;
        match stored.placed() {
            Ok(placed) => {
                let told = self.teller.record(leaf, &placed);
                self.tell(&told, tell);
                Ok(())
            }
            Err(DecodeError::Malformed(why)) => {
                self.teller.poison(leaf, stored.sequence, stored.at, why);
                Ok(())
            }
            Err(error @ DecodeError::TooNew { .. }) => Err(BusError::Refused(error.to_string())),
        }
    }
}

/// The thread as its journal has it now.
pub(crate) async fn fold(
    journal: &Arc<dyn Journal>,
    place: &ThreadRef,
) -> Result<Thread, BusError> {
    let mut follower = Follower::new(Arc::clone(journal), place.clone());
    follower.look(&mut |_| {}).await?;
    Ok(follower.teller.into_thread())
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
    Ok((follower.teller.into_thread(), finished))
}

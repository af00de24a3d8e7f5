//! One reader of a thread.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use planner_core::telling::Teller;
use ports::BusError;
use ports::journal::Stored;
use ports::live::{Subscription, Topic};
use ports::working_memory::TurnText;
use proto::envelope::{DecodeError, Envelope};
use proto::event::{Event, ThreadEvent};
use proto::ids::{Nonce, Sequence, ThreadRef};
use proto::live::{Channel, LiveWord};
use serde_json::json;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use super::frame;
use super::id::EventId;
use super::spoken::{Missed, Spoken};
use crate::gateway::App;
use crate::metrics::Metrics;
use crate::problem::Problem;
use crate::reading::{no_thread, too_new};

/// Between two looks at a thread in which something happens, and at most between two others.
const SOON: Duration = Duration::from_millis(20);
const LATER: Duration = Duration::from_millis(320);
/// How long the bus may be away before the reader is told and let go.
const BUS_AWAY: Duration = Duration::from_secs(30);

/// The last record that was read.
#[derive(Clone, Debug)]
struct Head {
    sequence: Sequence,
    /// Absent when it could not be read.
    nonce: Option<Nonce>,
}

/// Reads a thread forward for one client.
pub(crate) struct Reader {
    app: App,
    place: ThreadRef,
    teller: Teller,
    spoken: Spoken,
    head: Option<Head>,
    live: Option<Box<dyn Subscription>>,
    /// Records that were read and not told yet.
    records: VecDeque<Stored>,
    /// Up to here the client knows.
    known: Sequence,
    frames: VecDeque<Bytes>,
    /// Until the next look; and when it is, whatever else happens meanwhile.
    pause: Duration,
    look_at: Instant,
    said: Instant,
    away_since: Option<Instant>,
    over: bool,
    _seat: Seat,
}

/// A place among the readers; counted as long as it is taken.
pub(crate) struct Seat {
    metrics: Metrics,
    _permit: OwnedSemaphorePermit,
}

impl Seat {
    pub(crate) fn take(metrics: Metrics, permit: OwnedSemaphorePermit) -> Self {
        metrics.readers.inc();
        Self { metrics, _permit: permit }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.metrics.readers.dec();
    }
}

impl Reader {
    /// Begins behind the record that `last` names, else at the first one.
    pub(crate) async fn open(
        app: App,
        place: ThreadRef,
        last: Option<EventId>,
        seat: Seat,
    ) -> Result<Self, Problem> {
        // Heard from now on, read afterwards: nothing falls in between.
        let live = app.ports.live.subscribe(&Topic::Text(place.clone())).await?;
        let floor = Sequence::NONE;
        let records = app.ports.journal.read(&place, Sequence::NONE, floor).await?;
        if records.is_empty() {
            return Err(no_thread(place.thread));
        }
        let mut reader = Self {
            teller: Teller::new(place.clone()),
            app,
            place,
            spoken: Spoken::default(),
            head: None,
            live: Some(live),
            records: records.into(),
            known: Sequence::NONE,
            frames: VecDeque::from([frame::hello()]),
            pause: SOON,
            look_at: Instant::now() + SOON,
            said: Instant::now(),
            away_since: None,
            over: false,
            _seat: seat,
        };
        reader.resume(last).await?;
        Ok(reader)
    }

    async fn resume(&mut self, last: Option<EventId>) -> Result<(), Problem> {
        let Some(last) = last else { return Ok(()) };
        if self.records.back().is_none_or(|newest| newest.sequence < last.sequence) {
            // A replica may be behind; asked for the client's own record it is not.
            let journal = &self.app.ports.journal;
            self.records = journal.read(&self.place, Sequence::NONE, last.sequence).await?.into();
        }
        let is_there = |stored: &Stored| last.names(stored.sequence, nonce(stored).as_ref());
        if self.records.iter().any(is_there) {
            self.known = last.sequence;
        } else {
            self.app.metrics.resets.inc();
            self.frames.push_back(frame::reset("the record that was read last is not there"));
        }
        Ok(())
    }

    /// The next bytes; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.frames.pop_front() {
                self.said = Instant::now();
                return Some(frame);
            }
            if self.over {
                return None;
            }
            match self.records.pop_front() {
                Some(stored) => self.tell(&stored),
                None => self.wait().await,
            }
        }
    }

    /// Waits for live text, for the next look, or for the end.
    async fn wait(&mut self) {
        let quiet = self.app.settings.keep_alive.saturating_sub(self.said.elapsed());
        tokio::select! {
            biased;
            () = self.app.shutdown.draining() => {
                self.frames.push_back(frame::farewell());
                self.over = true;
            }
            () = tokio::time::sleep_until(self.look_at) => self.look().await,
            piece = next_piece(&mut self.live) => self.hear(&piece).await,
            () = tokio::time::sleep(quiet) => self.frames.push_back(frame::still_here()),
        }
    }

    /// Reads what the journal has from the last record on. That one is read again: another in its
    /// place means that the journal has lost its tail.
    async fn look(&mut self) {
        self.pause = self.pause.saturating_mul(2).min(LATER);
        let from = self.head.as_ref().map_or(Sequence::NONE, |head| head.sequence);
        match self.app.ports.journal.read(&self.place, from, from).await {
            Ok(records) => self.found(records.into()),
            Err(error) => self.away(error),
        }
        self.look_at = Instant::now() + self.pause;
    }

    /// Something happens: the next look is soon.
    fn wake(&mut self) {
        self.pause = SOON;
        self.look_at = self.look_at.min(Instant::now() + SOON);
    }

    fn found(&mut self, mut records: VecDeque<Stored>) {
        self.away_since = None;
        if let Some(head) = &self.head {
            let same =
                |stored: &Stored| stored.sequence == head.sequence && nonce(stored) == head.nonce;
            if !records.front().is_some_and(same) {
                return self.lost();
            }
            records.pop_front();
        }
        if !records.is_empty() {
            self.pause = SOON;
        }
        self.records = records;
    }

    fn lost(&mut self) {
        tracing::warn!(thread = %self.place, "records that were read are gone: told from the start");
        self.app.metrics.resets.inc();
        self.frames.push_back(frame::reset("the journal lost its newest records"));
        (self.head, self.known) = (None, Sequence::NONE);
        (self.teller, self.spoken) = (Teller::new(self.place.clone()), Spoken::default());
        self.pause = SOON;
    }

    fn away(&mut self, error: BusError) {
        let since = *self.away_since.get_or_insert_with(Instant::now);
        if !error.is_transient() || since.elapsed() > BUS_AWAY {
            self.fail(&error.into());
        }
    }

    fn fail(&mut self, problem: &Problem) {
        self.frames.push_back(frame::failed(problem));
        self.over = true;
    }

    fn tell(&mut self, stored: &Stored) {
        self.head = Some(Head { sequence: stored.sequence, nonce: nonce(stored) });
        let leaf = &stored.subject.leaf;
        let placed = match stored.placed() {
            Ok(placed) => placed,
            Err(DecodeError::Malformed(why)) => {
                return self.teller.poison(leaf, stored.sequence, stored.at, why);
            }
            Err(error @ DecodeError::TooNew { .. }) => return self.fail(&too_new(&error)),
        };
        let told = self.teller.record(leaf, &placed);
        if placed.sequence <= self.known {
            return;
        }
        let id = EventId::new(placed.sequence, &placed.nonce);
        let last = told.len().saturating_sub(1);
        for (index, event) in told.iter().enumerate() {
            self.frames.push_back(frame::event(event, (index == last).then_some(&id)));
        }
    }

    async fn hear(&mut self, piece: &Bytes) {
        let Ok(word) = serde_json::from_slice::<LiveWord>(piece) else { return };
        self.wake();
        if self.head.as_ref().is_none_or(|head| head.sequence < word.started()) {
            // Its turn comes first.
            self.look().await;
            while let Some(stored) = self.records.pop_front() {
                self.tell(&stored);
            }
        }
        for told in self.teller.word(word) {
            if let Some(missed) = self.spoken.missed(&told) {
                self.catch_up(&told, missed).await;
            }
            let told = self.spoken.take(told);
            self.frames.extend(told.map(|told| frame::event(&told, None)));
        }
    }

    /// Tells text that was said before this reader came, or that it was too slow for, as far as
    /// somebody kept it; and what nobody kept.
    async fn catch_up(&mut self, told: &ThreadEvent, missed: Missed) {
        let kept = match self.app.ports.working.turn_text(&self.place).await {
            Ok(kept) => kept.filter(|kept| kept.started == told.sequence),
            Err(error) => {
                tracing::debug!(%error, "working memory has no text of a turn");
                None
            }
        };
        if let Some(told) = kept.and_then(|kept| kept_piece(&kept, told, missed)) {
            let taken = self.spoken.take(told);
            self.frames.extend(taken.map(|told| frame::event(&told, None)));
        }
        if let Some(Missed { channel, from, to }) = self.spoken.missed(told) {
            let missed = json!({
                "type": "lagged", "sequence": told.sequence, "channel": channel,
                "from": from, "to": to,
            });
            self.app.metrics.lagged.inc();
            self.frames.push_back(frame::lagged(&missed));
        }
    }
}

fn nonce(stored: &Stored) -> Option<Nonce> {
    Envelope::nonce_of(&stored.payload)
}

/// The next live text; for ever pending once there is none.
async fn next_piece(live: &mut Option<Box<dyn Subscription>>) -> Bytes {
    if let Some(subscription) = live {
        if let Some((_, piece)) = subscription.next().await {
            return piece;
        }
        *live = None;
    }
    std::future::pending().await
}

/// What was kept of the text that was missed, as a piece.
fn kept_piece(kept: &TurnText, told: &ThreadEvent, missed: Missed) -> Option<ThreadEvent> {
    let Event::Delta { turn, draft, .. } = &told.event else { return None };
    let text = match missed.channel {
        Channel::Text => &kept.text,
        Channel::Reasoning => &kept.reasoning,
    };
    let (from, to) = (usize::try_from(missed.from).ok()?, usize::try_from(missed.to).ok()?);
    let delta = text.get(from..to.min(text.len()))?.to_owned();
    let (turn, draft, channel, offset) = (*turn, *draft, missed.channel, missed.from);
    let event = Event::Delta { turn, channel, offset, delta, draft };
    (to > from).then(|| ThreadEvent { event, ..told.clone() })
}

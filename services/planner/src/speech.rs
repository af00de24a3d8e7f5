//! Live text: the first of a turn to readers at once, then in pieces of up to 20 ms; and to working
//! memory now and then, for whoever may have to seal the turn.

use std::time::Duration;

use bytes::Bytes;
use ports::live::{Live, Topic};
use ports::working_memory::{TurnText, WorkingMemory};
use proto::ids::{Sequence, ThreadRef};
use proto::live::{Channel, LiveText};
use proto::notice::{LiveNotice, Notice};
use tokio::time::Instant;

/// How long a piece waits for more. Readers do not see so short a wait, and a model that says fifty
/// words a second costs half as many messages.
const PIECE: Duration = Duration::from_millis(20);
/// How long text may be unknown to working memory.
const KEEP: Duration = Duration::from_millis(250);
/// Longest share of the time that writing the text may take, as a divisor.
const SHARE: u32 = 10;

/// The voice of one turn.
pub(crate) struct Speech<'a> {
    live: &'a dyn Live,
    working: &'a dyn WorkingMemory,
    place: &'a ThreadRef,
    started: Sequence,
    turn: u32,
    piece: Option<LiveText>,
    /// When the waiting piece goes out.
    due: Instant,
    has_spoken: bool,
    kept: Instant,
    keep_after: Duration,
    /// How much of text and reasoning working memory knows; without a word nothing is to be known.
    known: (usize, usize),
}

impl<'a> Speech<'a> {
    pub(crate) fn new(
        live: &'a dyn Live,
        working: &'a dyn WorkingMemory,
        place: &'a ThreadRef,
        started: Sequence,
        turn: u32,
    ) -> Self {
        let kept = Instant::now();
        Self {
            live,
            working,
            place,
            started,
            turn,
            piece: None,
            due: kept,
            has_spoken: false,
            kept,
            keep_after: KEEP,
            known: (0, 0),
        }
    }

    /// Adds text that begins at `offset`; says what cannot wait.
    pub(crate) async fn add(&mut self, channel: Channel, offset: usize, delta: &str) {
        if self.piece.as_ref().is_some_and(|piece| piece.channel != channel) {
            self.flush().await;
        }
        if let Some(piece) = &mut self.piece {
            piece.delta.push_str(delta);
        } else {
            let now = Instant::now();
            let wait = if self.has_spoken { PIECE } else { Duration::ZERO };
            self.due = now.checked_add(wait).unwrap_or(now);
            self.piece = Some(LiveText {
                started: self.started,
                turn: self.turn,
                offset: u64::try_from(offset).unwrap_or(u64::MAX),
                channel,
                delta: delta.to_owned(),
            });
        }
        if self.due().is_some_and(|due| due <= Instant::now()) {
            self.flush().await;
        }
    }

    /// When the waiting piece has to go out.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.piece.is_some().then_some(self.due)
    }

    /// Says the waiting piece.
    pub(crate) async fn flush(&mut self) {
        let Some(piece) = self.piece.take() else { return };
        self.has_spoken = true;
        self.publish(serde_json::to_vec(&piece).unwrap_or_default()).await;
    }

    /// Says what delays the reply, behind what was said before.
    pub(crate) async fn notice(&mut self, notice: Notice) {
        self.flush().await;
        let notice = LiveNotice { started: self.started, turn: self.turn, notice };
        self.publish(serde_json::to_vec(&notice).unwrap_or_default()).await;
    }

    async fn publish(&self, message: Vec<u8>) {
        let topic = Topic::Text(self.place.clone());
        if let Err(error) = self.live.publish(&topic, Bytes::from(message)).await {
            tracing::debug!(%error, "live text was not published");
        }
    }

    /// Lets working memory know the words so far, if it has not heard for a while.
    pub(crate) async fn keep(&mut self, words: (&str, &str)) {
        if self.kept.elapsed() >= self.keep_after {
            self.keep_now(words).await;
        }
    }

    /// The reply is asked for again: what is known of the first one counts for nothing.
    pub(crate) fn begin_anew(&mut self) {
        self.known = (usize::MAX, usize::MAX);
    }

    /// Lets working memory know the words so far. All of them are written each time, so the longer
    /// that takes, the more rarely it is done. What is known already is not written again: words only
    /// grow, until they begin anew.
    pub(crate) async fn keep_now(&mut self, words: (&str, &str)) {
        let lengths = (words.0.len(), words.1.len());
        if lengths == self.known {
            return;
        }
        let began = Instant::now();
        let (text, reasoning) = (words.0.to_owned(), words.1.to_owned());
        let text = TurnText { started: self.started, text, reasoning };
        match self.working.keep_turn_text(self.place, text).await {
            Ok(()) => self.known = lengths,
            Err(error) => tracing::debug!(%error, "the text of the turn was not kept"),
        }
        self.kept = Instant::now();
        self.keep_after = began.elapsed().saturating_mul(SHARE).max(KEEP);
    }
}

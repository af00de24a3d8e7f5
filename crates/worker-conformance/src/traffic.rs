//! What is said on the bus beside the stream: deliveries, and what workers answer to them.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// One word of a worker about a delivery: `+ACK`, `-NAK …`, `+WPI`, `+TERM`.
#[derive(Clone, Debug)]
pub(crate) struct Word {
    /// The place of the record in its stream.
    pub(crate) stream: String,
    pub(crate) sequence: u64,
    pub(crate) said: String,
    pub(crate) at: Instant,
}

/// One delivery.
#[derive(Clone, Debug)]
pub(crate) struct Handed {
    pub(crate) stream: String,
    pub(crate) sequence: u64,
    pub(crate) reply: String,
}

/// Everything that was heard.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    words: watch::Sender<Vec<Word>>,
    handed: watch::Sender<Vec<Handed>>,
}

impl Traffic {
    /// Notes what was published to a delivery's reply subject.
    pub(crate) fn heard(&self, subject: &str, said: &[u8]) {
        let Some((stream, sequence)) = parse(subject) else { return };
        let said = String::from_utf8_lossy(said).into_owned();
        let word = Word { stream, sequence, said, at: Instant::now() };
        self.words.send_modify(|words| words.push(word));
    }

    /// Notes a delivery.
    pub(crate) fn handed(&self, reply: &str) {
        let Some((stream, sequence)) = parse(reply) else { return };
        let handed = Handed { stream, sequence, reply: reply.to_owned() };
        self.handed.send_modify(|all| all.push(handed));
    }

    /// What was said about one record.
    pub(crate) fn words(&self, stream: &str, sequence: u64) -> Vec<Word> {
        let of = |word: &&Word| word.stream == stream && word.sequence == sequence;
        self.words.borrow().iter().filter(of).cloned().collect()
    }

    /// The deliveries of one record.
    pub(crate) fn deliveries(&self, stream: &str, sequence: u64) -> Vec<Handed> {
        let of = |handed: &&Handed| handed.stream == stream && handed.sequence == sequence;
        self.handed.borrow().iter().filter(of).cloned().collect()
    }
}

/// Stream and sequence of `$JS.ACK.<stream>.<consumer>.<count>.<sequence>…`, or of
/// the longer form with domain and account.
fn parse(subject: &str) -> Option<(String, u64)> {
    let parts: Vec<&str> = subject.strip_prefix("$JS.ACK.")?.split('.').collect();
    let at: usize = if parts.len() >= 9 { 2 } else { 0 };
    let number = |index: usize| parts.get(at.checked_add(index)?)?.parse().ok();
    Some(((*parts.get(at)?).to_owned(), number(3)?))
}

/// How long a delivery was given back for; nothing if the word is no nak.
pub(crate) fn delay(said: &str) -> Option<Duration> {
    let rest = said.strip_prefix("-NAK")?.trim();
    let delay = serde_json::from_str::<serde_json::Value>(rest).ok();
    let nanos = delay.and_then(|delay| delay.get("delay")?.as_u64()).unwrap_or(0);
    Some(Duration::from_nanos(nanos))
}

//! The one safe way to append: an unanswered append is repeated identically until it is known to
//! have landed or to be impossible.

use std::time::Duration;

use proto::envelope::Envelope;
use proto::ids::{Nonce, Sequence};

use crate::journal::{Append, AppendError, Fence, Journal};
use crate::{BusError, journal};

/// What became of an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landed {
    /// It lies there, once.
    At(Sequence),
    /// A record with the same deduplication id was there before.
    Duplicate(Sequence),
    /// Somebody else was first; nothing of ours was or will be written.
    Lost {
        /// The record in the way, when the bus named it.
        last: Option<Sequence>,
    },
}

/// How often and how patiently an unanswered append is repeated.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Repetitions after the first try.
    pub repeats: u32,
    /// Pause before each.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { repeats: 20, pause: Duration::from_millis(100) }
    }
}

/// Appends, repeating the identical append while no answer comes.
///
/// With a fence at most one copy can land, so a refusal after an unanswered try is looked into: if
/// our nonce stands in the journal, the append was ours. Without a fence only appends with a
/// deduplication id may be repeated; others answer `NoAnswer` as an error.
pub async fn append_surely(
    journal: &dyn Journal,
    append: &Append,
    patience: Patience,
) -> Result<Landed, BusError> {
    let may_repeat = append.fence != Fence::None || append.dedup.is_some();
    let mut unanswered = false;
    let mut left = patience.repeats;
    loop {
        match journal.append(append.clone()).await {
            Ok(done) if done.duplicate => return Ok(Landed::Duplicate(done.sequence)),
            Ok(done) => return Ok(Landed::At(done.sequence)),
            Err(AppendError::Fenced { last }) if !unanswered => return Ok(Landed::Lost { last }),
            Err(AppendError::Fenced { last }) => match find_ours(journal, append, last).await? {
                Found::Ours(sequence) => return Ok(Landed::At(sequence)),
                Found::Others => return Ok(Landed::Lost { last }),
                Found::Unclear if left == 0 => return Err(no_answer("refused without a number")),
                Found::Unclear => {}
            },
            Err(AppendError::NoAnswer(why)) if left == 0 || !may_repeat => {
                return Err(no_answer(&why));
            }
            Err(AppendError::NoAnswer(_)) => unanswered = true,
            Err(AppendError::Bus(error)) if left == 0 || !error.is_transient() => {
                return Err(error);
            }
            Err(AppendError::Bus(_)) => {}
        }
        left = left.saturating_sub(1);
        tokio::time::sleep(patience.pause).await;
    }
}

fn no_answer(why: &str) -> BusError {
    BusError::Unavailable(format!("append unanswered: {why}"))
}

enum Found {
    Ours(Sequence),
    Others,
    Unclear,
}

/// Looks for our nonce among the records up to the one that refused us.
async fn find_ours(
    journal: &dyn Journal,
    append: &Append,
    last: Option<Sequence>,
) -> Result<Found, BusError> {
    let expected = match append.fence {
        Fence::Subject(expected) | Fence::Plan(expected) => expected,
        Fence::None => Sequence::NONE,
    };
    if let Fence::Subject(_) = append.fence {
        return Ok(match journal.last(&append.subject).await? {
            Some(stored) if has_nonce(&stored, &append.nonce) => Found::Ours(stored.sequence),
            Some(_) => Found::Others,
            None => Found::Unclear,
        });
    }
    let Some(last) = last else { return Ok(Found::Unclear) };
    let records = journal.read(&append.subject.thread, expected.next(), last).await?;
    let ours = records.iter().find(|stored| has_nonce(stored, &append.nonce));
    Ok(ours.map_or(Found::Others, |stored| Found::Ours(stored.sequence)))
}

fn has_nonce(stored: &journal::Stored, nonce: &Nonce) -> bool {
    Envelope::nonce_of(&stored.payload).as_ref() == Some(nonce)
}

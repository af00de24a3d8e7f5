//! How far a reader has heard the turn that is open.

use proto::event::{Event, ThreadEvent};
use proto::ids::Sequence;
use proto::live::Channel;

/// Bytes heard of each channel of one turn.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Spoken {
    started: Sequence,
    text: u64,
    reasoning: u64,
}

/// Live text that was missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missed {
    pub(crate) channel: Channel,
    pub(crate) from: u64,
    pub(crate) to: u64,
}

impl Spoken {
    fn heard(&mut self, started: Sequence, channel: Channel) -> &mut u64 {
        if self.started != started {
            *self = Self { started, ..Self::default() };
        }
        match channel {
            Channel::Text => &mut self.text,
            Channel::Reasoning => &mut self.reasoning,
        }
    }

    /// What lies between the text that was heard and this piece.
    pub(crate) fn missed(&mut self, told: &ThreadEvent) -> Option<Missed> {
        let Event::Delta { channel, offset, .. } = &told.event else { return None };
        let heard = *self.heard(told.sequence, *channel);
        (heard < *offset).then_some(Missed { channel: *channel, from: heard, to: *offset })
    }

    /// Takes a piece; cuts off what was heard before. `None` if all of it was.
    pub(crate) fn take(&mut self, mut told: ThreadEvent) -> Option<ThreadEvent> {
        let sequence = told.sequence;
        if let Event::Delta { channel, offset, delta, .. } = &mut told.event {
            let heard = self.heard(sequence, *channel);
            let end = offset.saturating_add(u64::try_from(delta.len()).unwrap_or(u64::MAX));
            if end <= *heard {
                return None;
            }
            let known = usize::try_from(heard.saturating_sub(*offset)).unwrap_or(usize::MAX);
            if known > 0 {
                *delta = delta.get(known..)?.to_owned();
                *offset = *heard;
            }
            *heard = end;
        }
        Some(told)
    }
}

#[cfg(test)]
mod tests {
    use proto::ids::ThreadId;

    use super::*;

    fn piece(started: u64, offset: u64, delta: &str) -> ThreadEvent {
        let (channel, delta) = (Channel::Text, delta.to_owned());
        ThreadEvent {
            thread: ThreadId::from_parts(1, 1),
            sequence: Sequence(started),
            at: None,
            event: Event::Delta { turn: 1, channel, offset, delta, draft: false },
        }
    }

    #[test]
    fn text_is_heard_once() {
        let mut spoken = Spoken::default();
        assert_eq!(spoken.take(piece(3, 0, "abc")), Some(piece(3, 0, "abc")));
        assert_eq!(spoken.take(piece(3, 0, "abc")), None);
        assert_eq!(spoken.take(piece(3, 1, "bcd")), Some(piece(3, 3, "d")));
        assert_eq!(spoken.take(piece(3, 4, "e")), Some(piece(3, 4, "e")));
        // Inside a letter nothing can be cut: the record has the whole.
        let mut spoken = Spoken::default();
        spoken.take(piece(3, 0, "a"));
        assert_eq!(spoken.take(piece(3, 0, "é")), None);
    }

    #[test]
    fn what_was_not_heard_is_known() {
        let mut spoken = Spoken::default();
        let missed = Missed { channel: Channel::Text, from: 0, to: 2 };
        assert_eq!(spoken.missed(&piece(3, 2, "c")), Some(missed));
        spoken.take(piece(3, 2, "c"));
        assert_eq!(spoken.missed(&piece(3, 3, "d")), None);
        // The next start begins anew.
        assert_eq!(spoken.missed(&piece(5, 0, "a")), None);
        assert_eq!(spoken.missed(&piece(7, 1, "a")), Some(Missed { to: 1, ..missed }));
    }
}

//! The reply of one turn while it streams: live pieces first, the journal's text in the end, each
//! word shown once.

use proto::ids::Sequence;
use proto::live::Channel;

use super::text::{Wrapper, clean};

/// What is shown of the reply in progress.
#[derive(Debug)]
pub(crate) struct Reply {
    /// Its `turn_started`.
    pub(crate) started: Sequence,
    text: Part,
    reasoning: Part,
    open: Option<(Channel, Wrapper)>,
    width: Option<usize>,
}

/// How much of a channel was taken, and the line break it may still owe.
#[derive(Debug, Default)]
struct Part {
    taken: usize,
}

/// A line with the channel it belongs to.
pub(crate) type Line = (Channel, String);

impl Reply {
    pub(crate) fn new(started: Sequence, width: Option<usize>) -> Self {
        let (text, reasoning) = (Part::default(), Part::default());
        Self { started, text, reasoning, open: None, width }
    }

    /// Takes a live piece; returns the lines that are complete.
    pub(crate) fn piece(&mut self, channel: Channel, offset: u64, delta: &str) -> Vec<Line> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let fresh = self.part(channel).take(offset, delta).to_owned();
        self.show(channel, &fresh)
    }

    /// Takes the whole text of a channel; returns what was not shown yet.
    pub(crate) fn whole(&mut self, channel: Channel, text: &str) -> Vec<Line> {
        let fresh = self.part(channel).take(0, text).to_owned();
        self.show(channel, &fresh)
    }

    /// Ends the line that is still growing.
    pub(crate) fn finish(&mut self) -> Vec<Line> {
        let Some((channel, mut wrapper)) = self.open.take() else { return Vec::new() };
        wrapper.finish().map(|line| (channel, line)).into_iter().collect()
    }

    /// The line that is still growing.
    pub(crate) fn growing(&self) -> Option<(Channel, &str)> {
        let (channel, wrapper) = self.open.as_ref()?;
        Some((*channel, wrapper.growing())).filter(|(_, text)| !text.trim().is_empty())
    }

    fn part(&mut self, channel: Channel) -> &mut Part {
        match channel {
            Channel::Text => &mut self.text,
            Channel::Reasoning => &mut self.reasoning,
        }
    }

    fn show(&mut self, channel: Channel, fresh: &str) -> Vec<Line> {
        if fresh.is_empty() {
            return Vec::new();
        }
        let mut lines = Vec::new();
        if self.open.as_ref().is_some_and(|(open, _)| *open != channel) {
            lines.extend(self.finish());
        }
        let width = self.width;
        let (_, wrapper) = self.open.get_or_insert_with(|| (channel, Wrapper::new(width)));
        lines.extend(wrapper.push(&clean(fresh)).into_iter().map(|line| (channel, line)));
        lines
    }
}

impl Part {
    /// The part of a piece at `offset` that is new. A piece behind a gap is left out: the journal
    /// tells the whole in the end.
    fn take<'t>(&mut self, offset: usize, piece: &'t str) -> &'t str {
        let Some(known) = self.taken.checked_sub(offset) else { return "" };
        let fresh = piece.get(known..).unwrap_or_default();
        self.taken = self.taken.saturating_add(fresh.len());
        fresh
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(line: &str) -> Line {
        (Channel::Text, line.to_owned())
    }

    #[test]
    fn each_word_is_shown_once_whatever_comes_doubled_or_not_at_all() {
        let mut reply = Reply::new(Sequence(3), None);
        assert_eq!(reply.piece(Channel::Text, 0, "one\ntw"), [text("one")]);
        assert_eq!(reply.piece(Channel::Text, 4, "two\n"), [text("two")]);
        assert_eq!(reply.piece(Channel::Text, 14, "four\n"), []);
        assert_eq!(reply.whole(Channel::Text, "one\ntwo\nthree\nfour"), [text("three")]);
        assert_eq!(reply.growing(), Some((Channel::Text, "four")));
        assert_eq!(reply.finish(), [text("four")]);
        assert_eq!(reply.finish(), []);
    }

    #[test]
    fn another_channel_ends_the_line() {
        let mut reply = Reply::new(Sequence(3), Some(20));
        assert_eq!(reply.piece(Channel::Reasoning, 0, "hm"), []);
        assert_eq!(reply.piece(Channel::Text, 0, "so"), [(Channel::Reasoning, "hm".to_owned())]);
        assert_eq!(reply.finish(), [text("so")]);
    }
}

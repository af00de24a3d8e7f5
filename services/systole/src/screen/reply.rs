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

/// What of a channel was taken.
#[derive(Debug, Default)]
struct Part {
    taken: String,
}

/// What a piece changes.
#[derive(Debug, PartialEq, Eq)]
enum Taken {
    /// This much more.
    More(String),
    /// The reply began anew, and this is all of it so far.
    Anew(String),
}

/// Says so where a reply began anew: what was shown of the first cannot be taken back.
const ANEW: &str = "(the stream broke, the reply begins anew)";

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
        let taken = self.part(channel).take(offset, delta);
        self.show_taken(channel, taken)
    }

    /// Takes the whole text of a channel; returns what was not shown yet.
    pub(crate) fn whole(&mut self, channel: Channel, text: &str) -> Vec<Line> {
        let taken = self.part(channel).take_whole(text);
        self.show_taken(channel, taken)
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

    fn show_taken(&mut self, channel: Channel, taken: Taken) -> Vec<Line> {
        match taken {
            Taken::More(text) => self.show(channel, &text),
            Taken::Anew(text) => {
                let mut lines = self.finish();
                lines.push((Channel::Reasoning, ANEW.to_owned()));
                lines.extend(self.show(channel, &text));
                lines
            }
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
    /// What a piece at `offset` brings. A piece behind a gap is left out: the journal tells the whole
    /// in the end. One that says something else where something was said begins anew.
    fn take(&mut self, offset: usize, piece: &str) -> Taken {
        let Some(known) = self.taken.get(offset..) else { return Taken::More(String::new()) };
        if known.starts_with(piece) {
            return Taken::More(String::new());
        }
        if let Some(fresh) = piece.strip_prefix(known) {
            self.taken.push_str(fresh);
            return Taken::More(fresh.to_owned());
        }
        self.taken.truncate(offset);
        self.taken.push_str(piece);
        Taken::Anew(self.taken.clone())
    }

    /// What the whole brings that was not taken.
    fn take_whole(&mut self, text: &str) -> Taken {
        let taken = match text.strip_prefix(self.taken.as_str()) {
            Some(fresh) => Taken::More(fresh.to_owned()),
            None => Taken::Anew(text.to_owned()),
        };
        text.clone_into(&mut self.taken);
        taken
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
    fn a_reply_that_begins_anew_is_shown_whole_and_never_mixed() {
        let anew = (Channel::Reasoning, ANEW.to_owned());
        let mut reply = Reply::new(Sequence(3), None);
        assert_eq!(reply.piece(Channel::Text, 0, "I begin\nand th"), [text("I begin")]);
        // The first piece of the second try may look like the first one's.
        assert_eq!(reply.piece(Channel::Text, 0, "I "), []);
        let lines = reply.piece(Channel::Text, 2, "think\nnot");
        assert_eq!(lines, [text("and th"), anew.clone(), text("I think")]);
        assert_eq!(reply.whole(Channel::Text, "I think\nnot\n"), [text("not")]);

        let mut reply = Reply::new(Sequence(3), None);
        assert_eq!(reply.piece(Channel::Text, 0, "some words"), []);
        let lines = reply.whole(Channel::Text, "some\n");
        assert_eq!(lines, [text("some words"), anew, text("some")]);
    }

    #[test]
    fn another_channel_ends_the_line() {
        let mut reply = Reply::new(Sequence(3), Some(20));
        assert_eq!(reply.piece(Channel::Reasoning, 0, "hm"), []);
        assert_eq!(reply.piece(Channel::Text, 0, "so"), [(Channel::Reasoning, "hm".to_owned())]);
        assert_eq!(reply.finish(), [text("so")]);
    }
}

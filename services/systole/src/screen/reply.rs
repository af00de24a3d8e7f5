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
    /// Thoughts that wait for what follows, where nothing that was shown can be drawn anew.
    held: Option<String>,
    has_lines: bool,
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
        Self { started, text, reasoning, open: None, held: None, has_lines: false, width }
    }

    /// The same, but thoughts are shown only when something follows them: they may be the answer.
    #[must_use]
    pub(crate) fn holding(self) -> Self {
        Self { held: Some(String::new()), ..self }
    }

    /// Takes a live piece; returns the lines that are complete.
    pub(crate) fn piece(&mut self, channel: Channel, offset: u64, delta: &str) -> Vec<Line> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        let taken = self.part(channel).take(offset, delta);
        self.show_taken(channel, taken)
    }

    /// Takes the whole of what was thought and said; returns what was not shown yet.
    pub(crate) fn whole(&mut self, reasoning: &str, text: &str) -> Vec<Line> {
        if let Some(fresh) = self.answer_thought(reasoning, text) {
            return self.rest_of_answer(reasoning, &fresh);
        }
        let mut lines = self.whole_of(Channel::Reasoning, reasoning);
        lines.extend(self.release());
        lines.extend(self.whole_of(Channel::Text, text));
        lines
    }

    /// Shows the thoughts that were held back.
    fn release(&mut self) -> Vec<Line> {
        match self.held.take() {
            Some(thoughts) => self.show(Channel::Reasoning, &thoughts),
            None => Vec::new(),
        }
    }

    /// Ends the line that is still growing.
    pub(crate) fn finish(&mut self) -> Vec<Line> {
        let mut lines = self.release();
        if let Some((channel, mut wrapper)) = self.open.take() {
            lines.extend(wrapper.finish().map(|line| (channel, line)));
        }
        lines
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

    fn whole_of(&mut self, channel: Channel, text: &str) -> Vec<Line> {
        let taken = self.part(channel).take_whole(text);
        self.show_taken(channel, taken)
    }

    /// Whether the text came as a thought, as the answer of a reply that is one object does; with
    /// what of it did not come.
    fn answer_thought(&self, reasoning: &str, text: &str) -> Option<String> {
        let heard = self.reasoning.taken.strip_prefix(reasoning)?.trim_start();
        let is_silent = self.text.taken.is_empty() && !heard.is_empty();
        let fresh = is_silent.then(|| text.trim_start().strip_prefix(heard)).flatten()?;
        Some(fresh.to_owned())
    }

    /// Shows an answer as one as far as that is still possible, and never twice.
    fn rest_of_answer(&mut self, reasoning: &str, fresh: &str) -> Vec<Line> {
        if self.held.is_some() {
            self.held = Some(reasoning.to_owned());
            let heard = self.reasoning.taken.get(reasoning.len()..).unwrap_or_default();
            let answer = format!("{}{fresh}", heard.trim_start());
            return self.show(Channel::Text, &answer);
        }
        if let Some((channel, _)) = self.open.as_mut().filter(|_| reasoning.is_empty())
            && !self.has_lines
        {
            *channel = Channel::Text;
        }
        let channel = self.open.as_ref().map_or(Channel::Reasoning, |(channel, _)| *channel);
        self.show(channel, fresh)
    }

    fn show_taken(&mut self, channel: Channel, taken: Taken) -> Vec<Line> {
        match (taken, &mut self.held) {
            (Taken::Anew(text), Some(held)) if channel == Channel::Reasoning => {
                *held = text;
                Vec::new()
            }
            (taken, _) => self.show_now(channel, taken),
        }
    }

    fn show_now(&mut self, channel: Channel, taken: Taken) -> Vec<Line> {
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
        if let Some(held) = self.held.as_mut().filter(|_| channel == Channel::Reasoning) {
            held.push_str(fresh);
            return Vec::new();
        }
        let mut lines = self.release();
        if self.open.as_ref().is_some_and(|(open, _)| *open != channel) {
            lines.extend(self.finish());
        }
        let width = self.width;
        let (_, wrapper) = self.open.get_or_insert_with(|| (channel, Wrapper::new(width)));
        lines.extend(wrapper.push(&clean(fresh)).into_iter().map(|line| (channel, line)));
        self.has_lines |= !lines.is_empty();
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
        assert_eq!(reply.whole("", "one\ntwo\nthree\nfour"), [text("three")]);
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
        assert_eq!(reply.whole("", "I think\nnot\n"), [text("not")]);

        let mut reply = Reply::new(Sequence(3), None);
        assert_eq!(reply.piece(Channel::Text, 0, "some words"), []);
        let lines = reply.whole("", "some\n");
        assert_eq!(lines, [text("some words"), anew, text("some")]);
    }

    #[test]
    fn an_answer_that_came_as_a_thought_is_shown_once() {
        let thought = |line: &str| (Channel::Reasoning, line.to_owned());
        // Nothing was shown yet: it is the answer.
        let mut reply = Reply::new(Sequence(3), Some(20));
        assert_eq!(reply.piece(Channel::Reasoning, 0, "All is"), []);
        assert_eq!(reply.whole("", "All is well."), []);
        assert_eq!(reply.finish(), [text("All is well.")]);
        // Some of it was shown as a thought: the rest is too.
        let mut reply = Reply::new(Sequence(3), Some(20));
        assert_eq!(reply.piece(Channel::Reasoning, 0, "All\nis"), [thought("All")]);
        assert_eq!(reply.whole("", "All\nis well."), []);
        assert_eq!(reply.finish(), [thought("is well.")]);
        // Thoughts are held back until it is known what they are.
        let mut reply = Reply::new(Sequence(3), None).holding();
        assert_eq!(reply.piece(Channel::Reasoning, 0, "Hm.\nAll\nis"), []);
        let shown = [thought("Hm."), text("All")];
        assert_eq!(reply.whole("Hm.", "All\nis well."), shown);
        assert_eq!(reply.finish(), [text("is well.")]);
    }

    #[test]
    fn held_thoughts_come_before_what_follows_them() {
        let thought = |line: &str| (Channel::Reasoning, line.to_owned());
        let mut reply = Reply::new(Sequence(3), None).holding();
        assert_eq!(reply.piece(Channel::Reasoning, 0, "hm\n"), []);
        assert_eq!(reply.piece(Channel::Reasoning, 0, "no\n"), []);
        assert_eq!(reply.piece(Channel::Text, 0, "so\n"), [thought("no"), text("so")]);
        assert_eq!(reply.piece(Channel::Reasoning, 3, "well\n"), [thought("well")]);
        let mut reply = Reply::new(Sequence(3), None).holding();
        assert_eq!(reply.piece(Channel::Reasoning, 0, "hm"), []);
        assert_eq!(reply.finish(), [thought("hm")]);
    }

    #[test]
    fn another_channel_ends_the_line() {
        let mut reply = Reply::new(Sequence(3), Some(20));
        assert_eq!(reply.piece(Channel::Reasoning, 0, "hm"), []);
        assert_eq!(reply.piece(Channel::Text, 0, "so"), [(Channel::Reasoning, "hm".to_owned())]);
        assert_eq!(reply.finish(), [text("so")]);
    }
}

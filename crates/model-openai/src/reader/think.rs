//! Splits a thought off the start of the text. Tags anywhere else are text.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";
/// Blanks held back before and inside a thought.
const BLANKS: usize = 256;

/// Where the thought of a reply begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Think {
    /// With an opening tag, if at all.
    #[default]
    Tagged,
    /// At the first character: the opening tag was part of the prompt.
    Prefilled,
}

/// A part of the content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Said.
    Text(String),
    /// Thought.
    Thought(String),
}

impl Part {
    /// The same as text.
    pub(crate) fn into_text(self) -> Self {
        match self {
            Self::Text(text) | Self::Thought(text) => Self::Text(text),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    /// Inside, before the first visible character.
    Opened,
    Inside,
    /// Behind the closing tag, before the first visible character.
    Closed,
    Outside,
}

/// The split of one reply.
#[derive(Clone, Debug)]
pub(crate) struct ThinkSplit {
    state: State,
    held: String,
    is_prefilled: bool,
}

impl ThinkSplit {
    pub(crate) fn new(think: Think) -> Self {
        let is_prefilled = think == Think::Prefilled;
        let state = if is_prefilled { State::Opened } else { State::Start };
        Self { state, held: String::new(), is_prefilled }
    }

    /// Takes a piece of content.
    pub(crate) fn push(&mut self, text: &str) -> Vec<Part> {
        let mut parts = Vec::new();
        if self.state == State::Outside {
            parts.push(Part::Text(text.to_owned()));
            return parts;
        }
        self.held.push_str(text);
        while self.step(&mut parts) {}
        parts
    }

    /// The reply is over: what was held back.
    pub(crate) fn finish(&mut self) -> Vec<Part> {
        let held = std::mem::take(&mut self.held);
        let part = match self.state {
            State::Start | State::Outside | State::Closed => Part::Text(held),
            State::Opened | State::Inside => Part::Thought(held.trim_end().to_owned()),
        };
        let is_empty = matches!(&part, Part::Text(text) | Part::Thought(text) if text.is_empty());
        if is_empty { Vec::new() } else { vec![part] }
    }

    /// Whether the reply ended inside a thought that no tag had opened: then it was no thought.
    pub(crate) fn was_no_thought(&self) -> bool {
        self.is_prefilled && matches!(self.state, State::Opened | State::Inside)
    }

    /// One transition; false when more text is needed.
    fn step(&mut self, parts: &mut Vec<Part>) -> bool {
        match self.state {
            State::Start => self.start(parts),
            State::Opened | State::Closed => {
                self.held = self.held.trim_start().to_owned();
                if self.held.is_empty() {
                    return false;
                }
                let is_opened = self.state == State::Opened;
                self.state = if is_opened { State::Inside } else { State::Outside };
                true
            }
            State::Inside => self.inside(parts),
            State::Outside => {
                let text = std::mem::take(&mut self.held);
                if !text.is_empty() {
                    parts.push(Part::Text(text));
                }
                false
            }
        }
    }

    fn start(&mut self, parts: &mut Vec<Part>) -> bool {
        let visible = self.held.trim_start();
        if let Some(rest) = visible.strip_prefix(OPEN) {
            self.held = rest.to_owned();
            self.state = State::Opened;
            return true;
        }
        if OPEN.starts_with(visible) && self.held.len() < BLANKS {
            return false;
        }
        parts.push(Part::Text(std::mem::take(&mut self.held)));
        self.state = State::Outside;
        false
    }

    fn inside(&mut self, parts: &mut Vec<Part>) -> bool {
        if let Some((thought, rest)) = self.held.split_once(CLOSE) {
            let thought = thought.trim_end().to_owned();
            self.held = rest.to_owned();
            self.state = State::Closed;
            if !thought.is_empty() {
                parts.push(Part::Thought(thought));
            }
            return true;
        }
        let keep = held_back(&self.held, CLOSE);
        let ready = self.held.len().saturating_sub(keep);
        let visible = self.held.get(..ready).map_or(0, |head| head.trim_end().len());
        let ready = if ready.saturating_sub(visible) > BLANKS { ready } else { visible };
        let rest = self.held.split_off(ready);
        let thought = std::mem::replace(&mut self.held, rest);
        if !thought.is_empty() {
            parts.push(Part::Thought(thought));
        }
        false
    }
}

/// How many bytes at the end of `text` could be the start of `mark`.
pub(crate) fn held_back(text: &str, mark: &str) -> usize {
    let most = mark.len().saturating_sub(1).min(text.len());
    let fits = |length: &usize| {
        text.get(text.len().saturating_sub(*length)..).is_some_and(|end| mark.starts_with(end))
    };
    (1..=most).rev().find(fits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text and the thought of pieces, cut anywhere.
    fn split(think: Think, pieces: &[&str]) -> (String, String) {
        let mut split = ThinkSplit::new(think);
        let mut parts: Vec<Part> = pieces.iter().flat_map(|piece| split.push(piece)).collect();
        parts.extend(split.finish());
        let mut said = (String::new(), String::new());
        for part in parts {
            match part {
                Part::Text(text) => said.0.push_str(&text),
                Part::Thought(thought) => said.1.push_str(&thought),
            }
        }
        said
    }

    fn pair(text: &str, thought: &str) -> (String, String) {
        (text.to_owned(), thought.to_owned())
    }

    #[test]
    fn a_thought_at_the_start_is_split_off_wherever_the_pieces_are_cut() {
        let whole = "\n<think>\nfirst  this </think>\n\nThen that. ";
        let expected = pair("Then that. ", "first  this");
        for at in 0..=whole.len() {
            let (head, tail) = whole.split_at(at);
            assert_eq!(split(Think::Tagged, &[head, tail]), expected, "cut at {at}");
        }
    }

    #[test]
    fn tags_elsewhere_are_text() {
        for text in ["Write `<think>x</think>`.", "plan</think>answer", "<thin", "<b>x</b>"] {
            assert_eq!(split(Think::Tagged, &[text]), pair(text, ""), "{text}");
        }
    }

    #[test]
    fn a_prefilled_thought_needs_only_its_closing_tag() {
        assert_eq!(split(Think::Prefilled, &["plan</th", "ink>answer"]), pair("answer", "plan"));
    }
}

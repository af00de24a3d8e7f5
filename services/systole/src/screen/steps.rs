//! A thought in its four steps, each apart.

use planner_core::steps::{Steps, read};

use super::style::{Palette, Tone};
use super::text::{clean, wrap};

/// Columns of a step's name.
const NAME: usize = 10;

/// The steps of a reply, and what of it is no step. A model that shows no thoughts writes them in
/// front of its calls.
pub(super) struct Apart {
    steps: Steps,
    /// What was thought besides.
    thought: String,
    /// What was said besides.
    pub(super) text: String,
}

impl Apart {
    /// Takes a reply apart, if it has the steps.
    pub(super) fn of(reasoning: &str, text: &str, has_calls: bool) -> Option<Self> {
        if let Some(steps) = read(reasoning) {
            let thought = steps.before.clone();
            return Some(Self { steps, thought, text: text.to_owned() });
        }
        let steps = has_calls.then(|| read(text)).flatten()?;
        let text = steps.before.clone();
        Some(Self { steps, thought: reasoning.to_owned(), text })
    }

    /// A line or more for each step, in the width that there is.
    pub(super) fn lines(&self, width: usize, palette: Palette) -> Vec<String> {
        let Steps { done, why, missing, choice, plan, .. } = &self.steps;
        let verdict = match done {
            Some(true) => "yes",
            Some(false) => "no",
            None => "",
        };
        let parts = [verdict, why.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let done = parts.join(": ");
        let named =
            [("1 done", &done), ("2 missing", missing), ("3 tool", choice), ("4 calls", plan)];
        let told = named.into_iter().filter(|(_, words)| !words.is_empty());
        let steps = told.flat_map(|(name, words)| step(name, words, width, palette));
        let thought = wrap(&clean(&self.thought), width).into_iter();
        let thought = thought.map(|line| palette.paint(Tone::Faint, &format!("┆ {line}")));
        thought.chain(steps).collect()
    }
}

fn step(name: &str, words: &str, width: usize, palette: Palette) -> Vec<String> {
    let lines = wrap(&clean(words), width.saturating_sub(NAME + 2).max(20));
    let names = std::iter::once(name).chain(std::iter::repeat(""));
    let line = |(name, line): (&str, String)| {
        let name = palette.paint(Tone::Strong, &format!("{name:<NAME$}"));
        format!("{} {name}{}", palette.paint(Tone::Faint, "┆"), palette.paint(Tone::Faint, &line))
    };
    names.zip(lines).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const THOUGHT: &str = "Hm.\n1. Goal check: no, it answers 503\n2. Missing information: the log\n\
                           3. Tool choice: read_log {\"lines\": 20}\n4. Action plan: read_log";

    fn shown(apart: &Apart) -> String {
        apart.lines(60, Palette::new(false)).join("\n")
    }

    #[test]
    fn the_steps_of_a_thought_stand_apart() {
        let apart = Apart::of(THOUGHT, "I look.", true).unwrap();
        let lines = "┆ Hm.\n┆ 1 done    no: it answers 503\n┆ 2 missing the log\n\
                     ┆ 3 tool    read_log {\"lines\": 20}\n┆ 4 calls   read_log";
        assert_eq!((shown(&apart).as_str(), apart.text.as_str()), (lines, "I look."));
    }

    #[test]
    fn words_in_front_of_calls_may_be_steps_and_an_answer_is_none() {
        let apart = Apart::of("", THOUGHT, true).unwrap();
        assert!(shown(&apart).contains("2 missing the log"));
        assert_eq!(apart.text, "Hm.");
        assert!(Apart::of("", THOUGHT, false).is_none());
        assert!(Apart::of("no steps", "none", true).is_none());
    }
}

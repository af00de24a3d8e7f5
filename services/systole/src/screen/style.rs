//! Colours, and none when they are off.

use anstyle::{AnsiColor, Style};

/// What text means; the palette knows how that looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it is.
    Plain,
    /// Thoughts, details, hints.
    Faint,
    /// Headings, names.
    Strong,
    /// Went well.
    Good,
    /// Went wrong.
    Bad,
    /// Needs attention, or is under way.
    Warm,
}

/// Colours of parts.
const PARTS: [AnsiColor; 6] = [
    AnsiColor::Cyan,
    AnsiColor::Green,
    AnsiColor::Yellow,
    AnsiColor::Magenta,
    AnsiColor::Blue,
    AnsiColor::BrightRed,
];

/// How tones look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    colours: bool,
}

impl Palette {
    pub(crate) fn new(colours: bool) -> Self {
        Self { colours }
    }

    /// A part of a larger text, in one of a few colours; neighbours differ.
    pub(crate) fn part(self, number: usize, text: &str) -> String {
        let colour = PARTS.get(number.checked_rem(PARTS.len()).unwrap_or(0));
        let Some(colour) = colour.filter(|_| self.colours && !text.is_empty()) else {
            return text.to_owned();
        };
        let style = colour.on_default();
        // Each line for itself, so that a pager shows them all.
        let lines = text.split('\n').map(|line| match line {
            "" => String::new(),
            line => format!("{}{line}{}", style.render(), style.render_reset()),
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    /// The text in its tone.
    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        if !self.colours || tone == Tone::Plain || text.is_empty() {
            return text.to_owned();
        }
        let style = match tone {
            Tone::Plain => Style::new(),
            Tone::Faint => Style::new().dimmed(),
            Tone::Strong => Style::new().bold(),
            Tone::Good => AnsiColor::Green.on_default(),
            Tone::Bad => AnsiColor::Red.on_default().bold(),
            Tone::Warm => AnsiColor::Yellow.on_default(),
        };
        format!("{}{text}{}", style.render(), style.render_reset())
    }
}

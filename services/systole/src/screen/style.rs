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

/// How tones look.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Palette {
    colours: bool,
}

impl Palette {
    pub(crate) fn new(colours: bool) -> Self {
        Self { colours }
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

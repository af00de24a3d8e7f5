//! A rehearsal file: rules, checked.

use definitions::problem::{Problem, Report};
use definitions::yaml;

use crate::condition::Condition;
use crate::reader;
use crate::template::{Shape, Template};

/// How fast a reply comes. Everything at once when nothing is said.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pace {
    /// Pieces a second; no pause between them when absent.
    pub tokens_per_second: Option<f64>,
    /// The pause before the first piece, in milliseconds.
    pub first_token_ms: u64,
}

/// A failure that is played instead of, or in the middle of, a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fail {
    /// An HTTP status in place of a reply.
    Status {
        /// The status.
        status: u16,
        /// The `Retry-After` header, in seconds.
        retry_after: Option<u64>,
    },
    /// The connection breaks after that many pieces.
    CutAfter(usize),
}

/// Why a rehearsed reply ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finish {
    /// It said all.
    Stop,
    /// It called tools.
    ToolCalls,
    /// It ran into its limit.
    Length,
}

/// What happens when a rule fits.
#[derive(Clone, Debug)]
pub struct Rule {
    /// The line of the file it begins at.
    pub line: u32,
    /// When it fits.
    pub when: Condition,
    /// What the model says.
    pub say: Option<Template>,
    /// What it thinks.
    pub reasoning: Option<Template>,
    /// What it calls.
    pub calls: Vec<CallRule>,
    /// How sure it is, in the contract protocol.
    pub confidence: Option<f64>,
    /// Why it ends; from its calls when absent.
    pub finish: Option<Finish>,
    /// How fast it comes; as the file says when absent.
    pub pace: Option<Pace>,
    /// What goes wrong.
    pub fail: Option<Fail>,
    /// How many requests with the same messages fail before one succeeds; all when absent.
    pub fail_times: Option<u64>,
}

/// One call of a reply.
#[derive(Clone, Debug)]
pub struct CallRule {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Vec<(String, Shape)>,
}

/// A rehearsal.
#[derive(Clone, Debug)]
pub struct Script {
    /// The file as the user named it.
    pub file: String,
    /// Rules, in the order they are tried; never empty.
    pub rules: Vec<Rule>,
    /// How fast replies come unless a rule says otherwise.
    pub pace: Pace,
    /// Every tool that it names, in the order of the file.
    pub mentions: Vec<Mention>,
}

/// A tool that a rehearsal names, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// The tool.
    pub tool: String,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
    /// Such as `rules[0].calls[0].tool`.
    pub field: String,
    /// The arguments that a call gives it; none for a condition.
    pub arguments: Option<Vec<ArgumentPlace>>,
}

/// An argument of a call, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentPlace {
    /// Its name.
    pub name: String,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
}

impl Script {
    /// Reads a rehearsal; everything that is wrong with it is told at once.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Problem>> {
        let root = yaml::read(file, text)?;
        let mut report = Report::new(file);
        let script = reader::script(file, &root, &mut report);
        report.finish(script)
    }
}

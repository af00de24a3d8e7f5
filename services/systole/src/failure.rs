//! How the program ends: exit codes, and failures that say what to do.

use std::fmt;

use definitions::problem::Problem;
use ports::BusError;
use proto::error_code::ErrorCode;
use proto::fact::Outcome;

/// The exit codes; `docs/cli.md` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Answered, or done.
    Done,
    /// The run failed, or something else did.
    Failed,
    /// The command line, a file or an id is wrong.
    BadInput,
    /// The run was stopped by a limit or a cancel.
    Stopped,
    /// Interrupted; the run is saved and can go on.
    Interrupted,
    /// The store is locked, damaged, full or newer than this program.
    Store,
    /// Interrupted twice: left at once.
    Abandoned,
}

impl Exit {
    /// The number the shell sees.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::BadInput => 2,
            Self::Stopped => 3,
            Self::Interrupted => 4,
            Self::Store => 5,
            Self::Abandoned => 130,
        }
    }
}

impl From<Outcome> for Exit {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Answered => Self::Done,
            Outcome::Failed => Self::Failed,
            Outcome::Stopped => Self::Stopped,
        }
    }
}

/// Why a command cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// How the program ends.
    pub(crate) exit: Exit,
    /// The stable code.
    pub(crate) code: ErrorCode,
    /// What happened and what to do, one thought a line.
    pub(crate) lines: Vec<String>,
}

impl Failure {
    /// What was asked makes no sense.
    pub(crate) fn input(text: impl Into<String>) -> Self {
        Self { exit: Exit::BadInput, code: ErrorCode::InvalidInput, lines: vec![text.into()] }
    }

    /// Settings are wrong or contradict each other.
    pub(crate) fn settings(lines: Vec<String>) -> Self {
        Self { exit: Exit::BadInput, code: ErrorCode::InvalidSettings, lines }
    }

    /// There is no such thing.
    pub(crate) fn not_found(text: impl Into<String>) -> Self {
        Self { exit: Exit::BadInput, code: ErrorCode::NotFound, lines: vec![text.into()] }
    }

    /// Files break their rules.
    pub(crate) fn files(code: ErrorCode, problems: &[Problem]) -> Self {
        let lines = problems.iter().map(ToString::to_string).collect();
        Self { exit: Exit::BadInput, code, lines }
    }

    /// A server of tools does not answer, or does not have what the manifest names.
    pub(crate) fn server(text: impl Into<String>) -> Self {
        let text: String = text.into();
        let lines = text.lines().map(str::to_owned).collect();
        Self { exit: Exit::Failed, code: ErrorCode::ToolNotStarted, lines }
    }

    /// Something that should work does not.
    pub(crate) fn other(doing: &str, error: impl fmt::Display) -> Self {
        let lines = vec![format!("{doing}: {error}")];
        Self { exit: Exit::Failed, code: ErrorCode::Internal, lines }
    }

    /// The same with one more thought.
    #[must_use]
    pub(crate) fn and(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }
}

impl From<BusError> for Failure {
    fn from(error: BusError) -> Self {
        let advice = match &error {
            BusError::Locked(_) => {
                "One process runs on a store at a time. Wait for it or stop it, or choose another file \
                 with --store. `systole show` and `systole cancel` work meanwhile."
            }
            BusError::Corrupt(_) => {
                "Nothing was repaired. Copy what is left of the file before anything else; then restore \
                 a backup, or move it away and start anew."
            }
            BusError::Full(_) => {
                "What was accepted before is kept. Make room and run the same command again: it goes on."
            }
            BusError::Unavailable(_) => "Run the same command again: what was accepted is kept.",
            BusError::TooLarge { .. } => "Send a shorter text.",
            BusError::Refused(_) => {
                "Check the path and its permissions, or choose another with --store."
            }
        };
        let lines = vec![error.to_string(), advice.to_owned()];
        Self { exit: Exit::Store, code: error.code(), lines }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.lines.join("\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_what_the_documentation_says() {
        let all = [
            Exit::Done,
            Exit::Failed,
            Exit::BadInput,
            Exit::Stopped,
            Exit::Interrupted,
            Exit::Store,
            Exit::Abandoned,
        ];
        assert_eq!(all.map(Exit::code), [0, 1, 2, 3, 4, 5, 130]);
        let page = include_str!("../../../docs/cli.md");
        for code in all.map(Exit::code) {
            assert!(page.contains(&format!("| {code} |")), "{code} is in the page");
        }
    }

    #[test]
    fn a_locked_store_says_who_holds_it_and_what_to_do() {
        let failure = Failure::from(BusError::Locked("a.db is in use by process 7".to_owned()));
        assert_eq!(failure.exit, Exit::Store);
        let text = failure.to_string();
        assert!(text.contains("process 7") && text.contains("--store"), "{text}");
    }
}

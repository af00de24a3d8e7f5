//! What worker, guard and stage say to each other.

use std::io::{self, Read};
use std::time::Duration;

/// Releases an attempt: how long it may run, and what the tool reads on its standard input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Release {
    /// From the release on.
    pub(crate) limit: Duration,
    /// All of the standard input.
    pub(crate) input: Vec<u8>,
}

impl Release {
    /// Two little-endian numbers, milliseconds and length, then the input.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let limit = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        let length = u64::try_from(self.input.len()).unwrap_or(u64::MAX);
        let mut bytes = limit.to_le_bytes().to_vec();
        bytes.extend(length.to_le_bytes());
        bytes.extend(&self.input);
        bytes
    }

    /// Reads one; a release that is cut short is none.
    pub(crate) fn read(from: &mut impl Read) -> io::Result<Self> {
        let limit = Duration::from_millis(read_number(from)?);
        let length = read_number(from)?;
        let mut input = Vec::new();
        let read = from.take(length).read_to_end(&mut input)?;
        if u64::try_from(read).is_ok_and(|read| read == length) {
            Ok(Self { limit, input })
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }
}

fn read_number(from: &mut impl Read) -> io::Result<u64> {
    let mut bytes = [0; 8];
    from.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// What a guard tells its worker, one per line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The stage waits for its release; this is its process group.
    Ready(i32),
    /// The tool could not be started: nothing happened.
    Refused {
        /// Why.
        why: String,
        /// Whether another try may succeed.
        retryable: bool,
    },
    /// The tool ended by itself, with this exit code.
    Exited(i32),
    /// The tool ended by this signal.
    Killed(i32),
}

impl Report {
    /// A refusal because of an error of the operating system.
    pub(crate) fn refused(what: &str, error: &io::Error) -> Self {
        Self::Refused { why: format!("{what}: {error}"), retryable: may_pass(error.kind()) }
    }

    /// As a line, with its end.
    pub(crate) fn line(&self) -> String {
        match self {
            Self::Ready(group) => format!("ready {group}\n"),
            Self::Refused { why, retryable } => {
                let word = if *retryable { "busy" } else { "refused" };
                format!("{word} {}\n", why.replace(['\n', '\r'], " "))
            }
            Self::Exited(code) => format!("exited {code}\n"),
            Self::Killed(signal) => format!("killed {signal}\n"),
        }
    }

    /// From a line without its end.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        match word {
            "ready" => rest.parse().ok().map(Self::Ready),
            "refused" => Some(Self::Refused { why: rest.to_owned(), retryable: false }),
            "busy" => Some(Self::Refused { why: rest.to_owned(), retryable: true }),
            "exited" => rest.parse().ok().map(Self::Exited),
            "killed" => rest.parse().ok().map(Self::Killed),
            _ => None,
        }
    }
}

/// Whether a failure to start comes from a shortage that may pass.
fn may_pass(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{ExecutableFileBusy, Interrupted, OutOfMemory, ResourceBusy, WouldBlock};
    [ExecutableFileBusy, Interrupted, OutOfMemory, ResourceBusy, WouldBlock].contains(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_survives_its_line() {
        let reports = [
            Report::Ready(7),
            Report::Refused { why: "no such file".to_owned(), retryable: false },
            Report::Refused { why: "text file busy".to_owned(), retryable: true },
            Report::Exited(75),
            Report::Killed(9),
        ];
        for report in reports {
            assert_eq!(Report::parse(report.line().trim_end()), Some(report));
        }
    }

    #[test]
    fn a_refusal_stays_on_one_line() {
        let report = Report::Refused { why: "a\nexited 0".to_owned(), retryable: false };
        assert_eq!(report.line(), "refused a exited 0\n");
    }

    #[test]
    fn what_no_guard_says_is_no_report() {
        for line in ["", "ready", "ready x", "gone 1"] {
            assert_eq!(Report::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_release_survives_its_bytes_and_a_cut_one_is_an_error() {
        let release = Release { limit: Duration::from_millis(1500), input: b"{}".to_vec() };
        let bytes = release.encode();
        assert_eq!(Release::read(&mut bytes.as_slice()).unwrap(), release);
        for length in 0..bytes.len() {
            assert!(Release::read(&mut &bytes[..length]).is_err(), "{length}");
        }
    }
}

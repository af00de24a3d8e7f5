//! The `expand` builtin: more of a result that was shown in part.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use ports::artifacts::Artifacts;
use proto::error_code::ErrorCode;
use proto::ids::{ArtifactId, ThreadRef};
use proto::observation::Receipt;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::{Ended, Executor, Job, NotStarted, Output, Prepared};

const PAGE: usize = 4000;
const LONGEST_PAGE: usize = 40_000;
/// A line that is found is shown so far.
const LINE_SHOWN: usize = 300;

/// Pages what is stored of a thread.
pub(super) struct ExpandTool {
    artifacts: Option<Arc<dyn Artifacts>>,
}

impl ExpandTool {
    pub(super) fn new(artifacts: Option<Arc<dyn Artifacts>>) -> Self {
        Self { artifacts }
    }
}

#[async_trait]
impl Executor for ExpandTool {
    async fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>, NotStarted> {
        let ask = ask(&job.call.arguments).map_err(|why| NotStarted { why, retryable: false })?;
        let Some(artifacts) = self.artifacts.clone() else {
            let why = "this worker has no store for full results".to_owned();
            return Err(NotStarted { why, retryable: false });
        };
        Ok(Box::new(Ready { artifacts, thread: job.thread.clone(), ask }))
    }
}

/// What is asked for.
struct Ask {
    artifact: ArtifactId,
    from: usize,
    bytes: usize,
    search: Option<String>,
}

fn ask(arguments: &Map<String, Value>) -> Result<Ask, String> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let artifact = ArtifactId::new(text("artifact").unwrap_or_default()).map_err(|_bad| {
        "argument `artifact` is no artifact id: copy the 64 digits from the earlier result"
            .to_owned()
    })?;
    let bytes = number(arguments, "bytes", PAGE)?;
    Ok(Ask {
        artifact,
        from: number(arguments, "from", 0)?,
        bytes: bytes.clamp(1, LONGEST_PAGE),
        search: text("search").filter(|search| !search.is_empty()).map(str::to_lowercase),
    })
}

fn number(arguments: &Map<String, Value>, name: &str, otherwise: usize) -> Result<usize, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(otherwise),
        Some(value) => value
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
            .ok_or_else(|| format!("argument `{name}` is {value}: give a whole number from 0")),
    }
}

struct Ready {
    artifacts: Arc<dyn Artifacts>,
    thread: ThreadRef,
    ask: Ask,
}

#[async_trait]
impl Prepared for Ready {
    fn process_group(&self) -> Option<i32> {
        None
    }

    async fn run(self: Box<Self>, deadline: Instant, cancel: CancellationToken) -> Ended {
        let stored = tokio::select! {
            biased;
            () = cancel.cancelled() => {
                let receipt = Receipt::StoppedBeforeEffect;
                return Ended::Cancelled { output: Output::default(), receipt };
            }
            stored = self.artifacts.get(&self.thread, &self.ask.artifact) => stored,
            () = sleep_until(deadline) => return Ended::TimedOut { output: Output::default() },
        };
        match stored {
            Ok(Some(bytes)) => shown(&bytes, &self.ask),
            Ok(None) => failed(missing(), false),
            Err(error) => failed(format!("the store does not answer: {error}"), true),
        }
    }
}

fn missing() -> String {
    let (code, meaning) = (ErrorCode::ArtifactMissing, ErrorCode::ArtifactMissing.meaning());
    format!("{code}: {meaning} Check the id, or make the call again that had the result.")
}

fn failed(why: String, retryable: bool) -> Ended {
    Ended::Failed { output: Output::default(), why, retryable }
}

fn shown(bytes: &Bytes, ask: &Ask) -> Ended {
    let text = String::from_utf8_lossy(bytes);
    if ask.from > text.len() {
        return failed(format!("the result ends at byte {}", text.len()), false);
    }
    let found = match &ask.search {
        None => page(&text, ask),
        Some(search) => matches(&text, search, ask),
    };
    Ended::Done(Output::from(found))
}

/// The nearest place at or before `at` where no character is torn.
fn whole(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

fn page(text: &str, ask: &Ask) -> String {
    let from = whole(text, ask.from);
    let next = text.get(from..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
    // At least one character, so that paging always comes to an end.
    let to = whole(text, from.saturating_add(ask.bytes)).max(from.saturating_add(next));
    let shown = text.get(from..to).unwrap_or_default();
    let total = text.len();
    if to >= total {
        return format!("{shown}\n[bytes {from} to {total} of {total}: this is the end]\n");
    }
    format!("{shown}\n[bytes {from} to {to} of {total}: continue with from {to}]\n")
}

/// Lines with the text, each with the byte it begins at, as many as fit.
fn matches(text: &str, search: &str, ask: &Ask) -> String {
    let mut found = String::new();
    let mut at = 0_usize;
    for line in text.split_inclusive('\n') {
        let start = at;
        at = at.saturating_add(line.len());
        if at <= ask.from || !line.to_lowercase().contains(search) {
            continue;
        }
        let line = line.trim_end();
        let (shown, mark) = match line.get(..whole(line, LINE_SHOWN)) {
            Some(start) if start.len() < line.len() => (around(line, search), "…"),
            Some(_) | None => (line, ""),
        };
        if !found.is_empty() && found.len() + shown.len() > ask.bytes {
            return format!("{found}[more lines follow: continue with from {start}]\n");
        }
        found.extend([start.to_string().as_str(), ": ", shown, mark, "\n"]);
    }
    if found.is_empty() { "[no line has it]\n".to_owned() } else { found }
}

/// The part of a long line in which the text stands, as well as it can be told.
fn around<'l>(line: &'l str, search: &str) -> &'l str {
    let at = line.to_lowercase().find(search).unwrap_or(0);
    let from = whole(line, at.saturating_sub(LINE_SHOWN / 3));
    let to = whole(line, from.saturating_add(LINE_SHOWN));
    line.get(from..to).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn asking(from: usize, bytes: usize, search: Option<&str>) -> Ask {
        let artifact = ArtifactId::new("0".repeat(64)).unwrap();
        Ask { artifact, from, bytes, search: search.map(str::to_owned) }
    }

    fn check(found: &str, expected: &Expect) {
        expected.assert_eq(found);
    }

    #[test]
    fn a_page_says_where_the_next_begins() {
        check(
            &page("abcé😀f", &asking(1, 3, None)),
            &expect![["
            bc
            [bytes 1 to 3 of 10: continue with from 3]
        "]],
        );
        check(
            &page("abcé😀f", &asking(4, 1, None)),
            &expect![["
            é
            [bytes 3 to 5 of 10: continue with from 5]
        "]],
        );
        check(
            &page("abc", &asking(2, 9, None)),
            &expect![["
            c
            [bytes 2 to 3 of 3: this is the end]
        "]],
        );
    }

    #[test]
    fn a_search_shows_lines_and_where_they_begin() {
        let text = "one Error\ntwo\nthree ERROR\nfour error\n";
        check(
            &matches(text, "error", &asking(0, 1000, Some("error"))),
            &expect![["
            0: one Error
            14: three ERROR
            26: four error
        "]],
        );
        check(
            &matches(text, "error", &asking(0, 20, Some("error"))),
            &expect![["
            0: one Error
            [more lines follow: continue with from 14]
        "]],
        );
        check(
            &matches(text, "none", &asking(0, 25, Some("none"))),
            &expect![["
            [no line has it]
        "]],
        );
    }

    proptest! {
        #[test]
        fn pages_in_a_row_are_the_whole_text(text in any::<String>(), bytes in 1..20_usize) {
            let mut from = 0;
            let mut all = String::new();
            while from < text.len() {
                let found = page(&text, &asking(from, bytes, None));
                let (shown, note) = found.rsplit_once("\n[").unwrap();
                all.push_str(shown);
                let next = note.rsplit_once("from ").map(|(_, next)| next.trim_end_matches("]\n"));
                from = next.map_or(text.len(), |next| next.parse().unwrap());
            }
            prop_assert_eq!(all, text);
        }
    }
}

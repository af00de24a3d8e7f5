//! Values that an attempt was given and nobody else may read: they are taken out of what it says.

use bytes::Bytes;

use super::{Ended, NotStarted, Output};

/// Shorter words are no secrets, and replacing them would spoil the text.
const SHORTEST: usize = 4;

/// The secrets of one attempt.
#[derive(Clone, Debug, Default)]
pub(super) struct Secrets(Vec<String>);

impl Secrets {
    pub(super) fn new(secrets: Vec<String>) -> Self {
        let mut secrets: Vec<String> =
            secrets.into_iter().filter(|secret| secret.len() >= SHORTEST).collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        Self(secrets)
    }

    pub(super) fn clean(&self, output: Output) -> Output {
        let is_clean = |form: &String| !contains(&output.bytes, form.as_bytes());
        let end = self.cut(&output.bytes);
        if end == output.bytes.len() && self.forms().all(|form| is_clean(&form)) {
            return output;
        }
        let text = String::from_utf8_lossy(output.bytes.get(..end).unwrap_or_default());
        let bytes = Bytes::from(self.hide(&text));
        let shrunk = u64::try_from(output.bytes.len()).unwrap_or(u64::MAX);
        let left_out = output.total.saturating_sub(shrunk);
        let total = u64::try_from(bytes.len()).unwrap_or(u64::MAX).saturating_add(left_out);
        Output { bytes, total }
    }

    pub(super) fn hide(&self, text: &str) -> String {
        self.forms().fold(text.to_owned(), |text, form| text.replace(&form, "[redacted secret]"))
    }

    /// An end whose words tell none of them.
    pub(super) fn ended(&self, ended: Ended) -> Ended {
        if self.0.is_empty() {
            return ended;
        }
        match ended {
            Ended::Done(output) => Ended::Done(self.clean(output)),
            Ended::Failed { output, why, retryable } => {
                Ended::Failed { output: self.clean(output), why: self.hide(&why), retryable }
            }
            Ended::Crashed { output, why } => {
                Ended::Crashed { output: self.clean(output), why: self.hide(&why) }
            }
            Ended::TimedOut { output } => Ended::TimedOut { output: self.clean(output) },
            Ended::Cancelled { output, receipt } => {
                Ended::Cancelled { output: self.clean(output), receipt }
            }
            Ended::NotStarted(NotStarted { why, retryable }) => {
                Ended::NotStarted(NotStarted { why: self.hide(&why), retryable })
            }
        }
    }

    /// Each secret as it is, and as it stands in JSON and in a URL.
    fn forms(&self) -> impl Iterator<Item = String> {
        self.0.iter().flat_map(|secret| {
            let json = serde_json::to_string(secret).unwrap_or_default();
            let json = json.trim_start_matches('"').strip_suffix('"').unwrap_or(secret).to_owned();
            [secret.clone(), json, definitions::http::encode(secret)]
        })
    }

    /// Where a text ends when the start of a secret at its very end does not count: a text that was
    /// cut may end in one.
    fn cut(&self, bytes: &[u8]) -> usize {
        let longest = self.0.iter().map(|secret| {
            let secret = secret.as_bytes();
            let starts = (SHORTEST..secret.len()).rev();
            starts.filter_map(|length| secret.get(..length)).find(|start| bytes.ends_with(start))
        });
        let longest = longest.flatten().map(<[u8]>::len).max().unwrap_or(0);
        bytes.len().saturating_sub(longest)
    }
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len().max(1)).any(|window| window == part)
}

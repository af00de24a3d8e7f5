//! What the many words for the end of a reply mean.

use proto::model::Finish;

/// A reason as the reader ranks it: an error beats a filter beats the limit beats calls beats stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// Said all; also every unknown word.
    Stop,
    /// Asked for tools.
    ToolCalls,
    /// Ran into the token limit.
    Length,
    /// A filter cut it.
    ContentFilter,
    /// The provider failed.
    Error,
}

impl Reason {
    /// Reads a finish reason; empty and "null" are none.
    pub(crate) fn read(word: &str) -> Option<Self> {
        let word = word.trim().to_ascii_lowercase();
        match word.as_str() {
            "" | "null" | "none" => None,
            "tool_calls" | "tool_call" | "tool_use" | "function_call" => Some(Self::ToolCalls),
            "length"
            | "max_tokens"
            | "max_output_tokens"
            | "model_length"
            | "model_context_window_exceeded" => Some(Self::Length),
            "content_filter" | "sensitive" | "safety" | "prohibited_content" | "blocklist"
            | "spii" | "recitation" => Some(Self::ContentFilter),
            other if is_error(other) => Some(Self::Error),
            _ => Some(Self::Stop),
        }
    }

    /// Reads the reason of the server behind a gateway: only a failure matters, since the gateway's
    /// own word hides nothing else.
    pub(crate) fn read_native(word: &str) -> Option<Self> {
        is_error(&word.trim().to_ascii_lowercase()).then_some(Self::Error)
    }

    /// The reason for readers; an error has none, it ends the reply as an error.
    pub(crate) fn finish(self) -> Option<Finish> {
        match self {
            Self::Stop => Some(Finish::Stop),
            Self::ToolCalls => Some(Finish::ToolCalls),
            Self::Length => Some(Finish::Length),
            Self::ContentFilter => Some(Finish::ContentFilter),
            Self::Error => None,
        }
    }
}

fn is_error(word: &str) -> bool {
    let words = [
        "error",
        "malformed_function_call",
        "malformed_tool_call",
        "unexpected_tool_call",
        "insufficient_system_resource",
        "abort",
        "aborted",
    ];
    words.contains(&word) || word.ends_with("_error")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_mean_what_their_providers_mean() {
        let table = [
            ("", None),
            ("null", None),
            ("stop", Some(Reason::Stop)),
            ("STOP", Some(Reason::Stop)),
            ("a_new_word", Some(Reason::Stop)),
            ("tool_use", Some(Reason::ToolCalls)),
            ("MAX_TOKENS", Some(Reason::Length)),
            ("sensitive", Some(Reason::ContentFilter)),
            ("network_error", Some(Reason::Error)),
            ("MALFORMED_FUNCTION_CALL", Some(Reason::Error)),
        ];
        for (word, reason) in table {
            assert_eq!(Reason::read(word), reason, "{word}");
        }
    }

    #[test]
    fn a_gateway_hides_only_failures() {
        assert_eq!(Reason::read_native("ERROR"), Some(Reason::Error));
        assert_eq!(Reason::read_native("completed"), None);
    }
}

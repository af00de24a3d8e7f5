//! What a family of endpoints accepts in a request, as data.

use std::fmt;
use std::str::FromStr;

/// A family of endpoints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The reference, and every endpoint that is not known better.
    #[default]
    Openai,
    /// Strict about fields and about who speaks after a tool.
    Mistral,
    /// Moves system messages to the front.
    AnthropicCompatible,
    /// Maps to its own turns.
    GeminiCompatible,
    /// Renders a template that often wants one system message, first.
    LlamaCpp,
    /// The same.
    Ollama,
    /// The same.
    Vllm,
}

const NAMES: [(&str, Profile); 7] = [
    ("openai", Profile::Openai),
    ("mistral", Profile::Mistral),
    ("anthropic-compatible", Profile::AnthropicCompatible),
    ("gemini-compatible", Profile::GeminiCompatible),
    ("llama.cpp", Profile::LlamaCpp),
    ("ollama", Profile::Ollama),
    ("vllm", Profile::Vllm),
];

/// Not the name of a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no profile `{0}`; there are openai, mistral, anthropic-compatible, gemini-compatible, llama.cpp, ollama, vllm"
)]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        let found = NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, profile)| *profile).ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = NAMES.iter().find(|(_, profile)| profile == self).map_or("", |(name, _)| *name);
        f.write_str(name)
    }
}

/// The rules of a family.
#[expect(clippy::struct_excessive_bools, reason = "a table of yes and no")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Words of the runtime inside and behind the conversation are system messages; else they are
    /// user messages with a mark.
    pub system_anywhere: bool,
    /// Neighbouring user messages become one.
    pub merges_users: bool,
    /// Nobody but the assistant may speak after a tool.
    pub assistant_after_tool: bool,
    /// Fields of earlier replies are sent back; else unknown fields are refused.
    pub echoes: bool,
    /// The name of the reply's token limit.
    pub limit_field: &'static str,
    /// Usage has to be asked for.
    pub asks_for_usage: bool,
}

impl Profile {
    /// The profile that an address suggests.
    pub fn guess(base_url: &str) -> Self {
        let hosts = [
            ("mistral.ai", Self::Mistral),
            ("anthropic.com", Self::AnthropicCompatible),
            ("googleapis.com", Self::GeminiCompatible),
            (":11434", Self::Ollama),
        ];
        let found = hosts.iter().find(|(part, _)| base_url.contains(part));
        found.map_or(Self::Openai, |(_, profile)| *profile)
    }

    /// Its rules.
    pub fn rules(self) -> Rules {
        let usual = Rules {
            system_anywhere: false,
            merges_users: true,
            assistant_after_tool: false,
            echoes: true,
            limit_field: "max_tokens",
            asks_for_usage: true,
        };
        match self {
            Self::Openai => Rules {
                system_anywhere: true,
                merges_users: false,
                limit_field: "max_completion_tokens",
                ..usual
            },
            Self::Mistral => {
                Rules { assistant_after_tool: true, echoes: false, asks_for_usage: false, ..usual }
            }
            Self::AnthropicCompatible
            | Self::GeminiCompatible
            | Self::LlamaCpp
            | Self::Ollama
            | Self::Vllm => usual,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back() {
        for (name, profile) in NAMES {
            assert_eq!(name.parse(), Ok(profile));
            assert_eq!(profile.to_string(), name);
        }
        assert_eq!("gpt".parse::<Profile>(), Err(UnknownProfile("gpt".to_owned())));
    }

    #[test]
    fn an_address_suggests_its_family() {
        assert_eq!(Profile::guess("https://api.mistral.ai/v1"), Profile::Mistral);
        assert_eq!(Profile::guess("http://localhost:11434/v1"), Profile::Ollama);
        assert_eq!(Profile::guess("https://example.org/v1"), Profile::Openai);
    }
}

//! What a family of endpoints accepts in a request, as data.

pub use proto::agent::Profile;

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

/// The profile that an address suggests: by its host, or by the port that a program has for itself.
pub fn guess(base_url: &str) -> Profile {
    let hosts = [
        ("mistral.ai", Profile::Mistral),
        ("anthropic.com", Profile::AnthropicCompatible),
        ("googleapis.com", Profile::GeminiCompatible),
    ];
    let Ok(url) = reqwest::Url::parse(base_url) else { return Profile::Openai };
    let host = url.host_str().unwrap_or_default();
    let is_of = |domain: &str| host.strip_suffix(domain).is_some_and(is_subdomain);
    let found = hosts.iter().find(|(domain, _)| is_of(domain)).map(|(_, profile)| *profile);
    let by_port = || (url.port() == Some(OLLAMA_PORT)).then_some(Profile::Ollama);
    found.or_else(by_port).unwrap_or_default()
}

const OLLAMA_PORT: u16 = 11434;

fn is_subdomain(before: &str) -> bool {
    before.is_empty() || before.ends_with('.')
}

/// The rules of a profile.
pub fn rules(profile: Profile) -> Rules {
    let usual = Rules {
        system_anywhere: false,
        merges_users: true,
        assistant_after_tool: false,
        echoes: true,
        limit_field: "max_tokens",
        asks_for_usage: true,
    };
    match profile {
        Profile::Openai => Rules {
            system_anywhere: true,
            merges_users: false,
            limit_field: "max_completion_tokens",
            ..usual
        },
        Profile::Mistral => {
            Rules { assistant_after_tool: true, echoes: false, asks_for_usage: false, ..usual }
        }
        Profile::AnthropicCompatible
        | Profile::GeminiCompatible
        | Profile::LlamaCpp
        | Profile::Ollama
        | Profile::Vllm => usual,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_suggests_its_family() {
        assert_eq!(guess("https://api.mistral.ai/v1"), Profile::Mistral);
        assert_eq!(guess("http://localhost:11434/v1"), Profile::Ollama);
        let gemini = "https://generativelanguage.googleapis.com/v1beta/openai";
        assert_eq!(guess(gemini), Profile::GeminiCompatible);
        assert_eq!(guess("https://api.anthropic.com/v1"), Profile::AnthropicCompatible);
        for other in ["https://example.org/mistral.ai/v1", "https://notmistral.ai/v1", "nowhere"] {
            assert_eq!(guess(other), Profile::Openai, "{other}");
        }
    }
}

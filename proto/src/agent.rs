//! What an agent promises: its file, checked and filled with defaults.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{AgentName, Fingerprint, ToolName};

/// How calls travel in the model's reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// The provider's `tool_calls`.
    #[default]
    Native,
    /// One JSON object with `reasoning` and `tool_calls` in the text.
    Contract,
}

/// A family of endpoints: what it accepts in a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Profile {
    /// The reference, and every endpoint that is not known better.
    #[default]
    #[serde(rename = "openai")]
    Openai,
    /// Strict about fields and about who speaks after a tool.
    #[serde(rename = "mistral")]
    Mistral,
    /// Moves system messages to the front.
    #[serde(rename = "anthropic-compatible")]
    AnthropicCompatible,
    /// Maps to its own turns.
    #[serde(rename = "gemini-compatible")]
    GeminiCompatible,
    /// Renders a template that often wants one system message, first.
    #[serde(rename = "llama.cpp")]
    LlamaCpp,
    /// The same.
    #[serde(rename = "ollama")]
    Ollama,
    /// The same.
    #[serde(rename = "vllm")]
    Vllm,
}

impl Profile {
    /// All of them by their names in files and settings.
    pub const NAMES: [(&str, Self); 7] = [
        ("openai", Self::Openai),
        ("mistral", Self::Mistral),
        ("anthropic-compatible", Self::AnthropicCompatible),
        ("gemini-compatible", Self::GeminiCompatible),
        ("llama.cpp", Self::LlamaCpp),
        ("ollama", Self::Ollama),
        ("vllm", Self::Vllm),
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(_, profile)| *profile == self);
        found.map_or("", |(name, _)| name)
    }
}

/// Not the name of a profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no profile `{0}`; there are openai, mistral, anthropic-compatible, gemini-compatible, llama.cpp, ollama, vllm"
)]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;

    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name);
        found.map(|(_, profile)| *profile).ok_or_else(|| UnknownProfile(name.to_owned()))
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Which calls are dispatched before the reply has ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EarlyDispatch {
    /// Read-only and idempotent tools.
    #[default]
    Safe,
    /// Every tool.
    All,
    /// None.
    Off,
}

/// How an answer is checked before it is given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Not at all.
    #[default]
    Off,
    /// By a chain of verification: questions about each claim of the draft, their answers with tools
    /// where one can tell, and a revised answer.
    Chain,
}

impl Verify {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
    fn is_off(&self) -> bool {
        *self == Self::Off
    }
}

/// Where a run stops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// Model requests per run.
    pub max_turns: u32,
    /// Tokens per run, prompt and reply together.
    pub max_tokens: u64,
    /// Money per run, in millionths of a US dollar.
    pub max_micro_usd: u64,
    /// Wall time per run, in milliseconds.
    pub max_wall_ms: u64,
    /// Tool calls per run.
    pub max_tool_calls: u32,
    /// Times the same call with the same arguments may come in one run before it is refused.
    pub max_repeats: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_turns: 10,
            max_tokens: 200_000,
            max_micro_usd: 100_000,
            max_wall_ms: 15 * 60 * 1000,
            max_tool_calls: 50,
            max_repeats: 3,
        }
    }
}

impl Limits {
    /// Wall time per run.
    pub fn max_wall(&self) -> Duration {
        Duration::from_millis(self.max_wall_ms)
    }
}

/// The turn limit of a task rated from 1 (simple) to 5: `3 + ceil(complexity / 2)`.
pub fn turns_for_complexity(complexity: u32) -> u32 {
    complexity.div_ceil(2).saturating_add(3)
}

/// One version of a collection of documents.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct Edition {
    /// The collection.
    pub collection: String,
    /// The version.
    pub version: String,
}

impl Edition {
    /// `handbook@2`; each side is 1 to 64 of A-Z, a-z, 0-9, `.`, `-` and `_`.
    pub fn parse(text: &str) -> Option<Self> {
        let (collection, version) = text.split_once('@')?;
        let is_fit = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
        let is_name = |part: &str| (1..=64).contains(&part.len()) && part.chars().all(is_fit);
        let (collection, version) = (collection.to_owned(), version.to_owned());
        (is_name(&collection) && is_name(&version)).then_some(Self { collection, version })
    }
}

impl fmt::Display for Edition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.collection, self.version)
    }
}

/// What an agent uses of long-term memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MemoryUse {
    /// How many memories a run begins with; 0 is none.
    pub recall: u32,
    /// The collections of documents it knows, each in one version: another version is another file of
    /// the agent, so that a run tells which one it used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<Edition>,
}

impl Default for MemoryUse {
    fn default() -> Self {
        Self { recall: 8, collections: Vec::new() }
    }
}

impl MemoryUse {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// One agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    /// Its name.
    pub name: AgentName,
    /// Who it is and what it does; the first block of every request.
    pub role: String,
    /// Standing instructions, verbatim in every request.
    #[serde(default)]
    pub instructions: Vec<String>,
    /// The model to ask for.
    pub model: String,
    /// Models to ask for, in this order, when the one before fails without a word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fallbacks: Vec<String>,
    /// Sampling temperature; left to the provider when absent.
    #[serde(default)]
    pub temperature: Option<f64>,
    /// The model's window, in tokens.
    pub context_window: u32,
    /// The share of the window that a request may take, as a fraction.
    pub context_window_ratio: f64,
    /// How calls travel.
    #[serde(default)]
    pub protocol: Protocol,
    /// The family of its endpoint; guessed from the address when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
    /// Which calls go out early.
    #[serde(default)]
    pub early_dispatch: EarlyDispatch,
    /// The tools it may use.
    pub tools: Vec<ToolName>,
    /// What it may do, matched against a tool's permissions.
    #[serde(default)]
    pub permissions: Vec<String>,
    /// Where a run stops.
    #[serde(default)]
    pub limits: Limits,
    /// Whether inputs such as "that's all, thanks" end a run.
    #[serde(default = "yes")]
    pub end_intent: bool,
    /// JSON Schema of the answer, when it has to be JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// How an answer is checked before it is given.
    #[serde(default, skip_serializing_if = "Verify::is_off")]
    pub verify: Verify,
    /// What it uses of long-term memory.
    #[serde(default, skip_serializing_if = "MemoryUse::is_default")]
    pub memory: MemoryUse,
    /// What the model costs; without it money counts only where the provider tells the cost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// What models cost, by their names; those of the fallbacks, and what `price` does not say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub prices: BTreeMap<String, Price>,
    /// How long an approval may wait, in milliseconds.
    pub approval_ms: u64,
    /// Hash over the agent's file.
    pub fingerprint: Fingerprint,
}

impl Agent {
    /// What a model costs, when that is known.
    pub fn price_of(&self, model: &str) -> Option<Price> {
        let own = self.price.filter(|_| model == self.model);
        own.or_else(|| self.prices.get(model).copied())
    }

    /// The models that it may ask and whose price nobody knows.
    pub fn unpriced(&self) -> Vec<&str> {
        let models = std::iter::once(&self.model).chain(&self.fallbacks).map(String::as_str);
        models.filter(|model| self.price_of(model).is_none()).collect()
    }
}

/// What a model costs, in billionths of a US dollar per token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Price {
    /// A token sent.
    pub input_nano_usd: u64,
    /// A token received.
    pub output_nano_usd: u64,
}

impl Price {
    /// Millionths of a dollar for these tokens, rounded up.
    pub fn micro_usd(self, prompt_tokens: u64, completion_tokens: u64) -> u64 {
        let input = prompt_tokens.saturating_mul(self.input_nano_usd);
        input.saturating_add(completion_tokens.saturating_mul(self.output_nano_usd)).div_ceil(1000)
    }
}

fn yes() -> bool {
    true
}

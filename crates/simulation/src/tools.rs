//! The tools of a world, and the ledger of what they did. The ledger is the world itself: it
//! survives every crash and forgets nothing.

use std::collections::BTreeMap;
use std::time::Duration;

use proto::call::ToolCall;
use proto::hash::fingerprint;
use proto::ids::{ToolCallId, ToolName};
use proto::time::Timestamp;
use proto::tool::{Approval, Effect, Retry, ToolContract};
use serde_json::json;

/// One tool of a world.
#[derive(Clone, Debug)]
pub struct ToolSpec {
    /// Its name.
    pub name: &'static str,
    /// What repeating does.
    pub effect: Effect,
    /// Whether a person has to agree.
    pub approval: Approval,
    /// Attempts of one dispatch.
    pub attempts: u32,
}

/// Every effect class, with and without approval and retries.
pub const TOOLS: [ToolSpec; 6] = [
    ToolSpec { name: "probe", effect: Effect::ReadOnly, approval: Approval::Never, attempts: 2 },
    ToolSpec { name: "fetch", effect: Effect::Idempotent, approval: Approval::Never, attempts: 3 },
    ToolSpec { name: "deploy", effect: Effect::Checkable, approval: Approval::Never, attempts: 2 },
    ToolSpec {
        name: "restart",
        effect: Effect::Irreversible,
        approval: Approval::Never,
        attempts: 3,
    },
    ToolSpec { name: "pay", effect: Effect::Irreversible, approval: Approval::Always, attempts: 1 },
    ToolSpec {
        name: "purge",
        effect: Effect::Irreversible,
        approval: Approval::WhenTainted,
        attempts: 1,
    },
];

/// Limit of one attempt.
pub const TIMEOUT: Duration = Duration::from_secs(2);

/// The contracts that workers offer.
pub fn contracts() -> Vec<ToolContract> {
    TOOLS.iter().map(ToolSpec::contract).collect()
}

impl ToolSpec {
    fn contract(&self) -> ToolContract {
        ToolContract {
            name: self.tool(),
            description: format!("Does {} as told.", self.name),
            parameters: json!({
                "type": "object",
                "properties": {"n": {"type": "integer"}},
                "required": ["n"]
            }),
            effect: self.effect,
            timeout_ms: u64::try_from(TIMEOUT.as_millis()).expect("a short span"),
            retry: Retry { max_attempts: self.attempts, backoff_ms: 200 },
            deadlines: proto::tool::Deadlines::default(),
            approval: self.approval.clone(),
            permissions: Vec::new(),
            result_tokens: 300,
            result_schema: None,
            fingerprint: fingerprint(self.name),
        }
    }

    /// Its name, checked.
    pub fn tool(&self) -> ToolName {
        ToolName::new(self.name).expect("a valid name")
    }
}

/// How an attempt goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// It works.
    Done,
    /// It says that it failed, and would again.
    Fails,
    /// Its first attempt fails and might pass if repeated.
    Flaky,
    /// It never ends by itself.
    Hangs,
    /// It dies after its effect.
    Crashes,
    /// Its first attempt cannot be started.
    NotStarted,
}

impl Behaviour {
    const ALL: [Self; 6] =
        [Self::Done, Self::Fails, Self::Flaky, Self::Hangs, Self::Crashes, Self::NotStarted];

    /// Mostly it works.
    pub fn draw(random: &mut fastrand::Rng) -> Self {
        match random.usize(0..16) {
            n @ 0..5 => Self::ALL[n + 1],
            _ => Self::Done,
        }
    }

    /// The word in a call's arguments.
    pub fn word(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Fails => "fails",
            Self::Flaky => "flaky",
            Self::Hangs => "hangs",
            Self::Crashes => "crashes",
            Self::NotStarted => "not_started",
        }
    }

    /// What a call asks its tool to do.
    pub fn of(call: &ToolCall) -> Self {
        let word = call.arguments.get("do").and_then(|word| word.as_str()).unwrap_or("done");
        Self::ALL.into_iter().find(|one| one.word() == word).unwrap_or(Self::Done)
    }
}

/// How long an attempt takes.
pub fn duration_of(call: &ToolCall) -> Duration {
    let ms = call.arguments.get("ms").and_then(serde_json::Value::as_u64).unwrap_or(50);
    Duration::from_millis(ms)
}

/// What happened to the world because of one call.
#[derive(Clone, Debug, Default)]
pub struct Effects {
    /// How often an attempt was made ready.
    pub prepared: u32,
    /// When attempts began.
    pub began: Vec<Timestamp>,
    /// When effects landed.
    pub landed: Vec<Timestamp>,
}

/// What all tools did.
#[derive(Debug, Default)]
pub struct Ledger {
    calls: BTreeMap<ToolCallId, Effects>,
}

impl Ledger {
    /// What one call did.
    pub fn of(&self, id: &ToolCallId) -> Effects {
        self.calls.get(id).cloned().unwrap_or_default()
    }

    /// An attempt is made ready; answers how often that happened.
    pub fn prepared(&mut self, id: &ToolCallId) -> u32 {
        let effects = self.calls.entry(id.clone()).or_default();
        effects.prepared += 1;
        effects.prepared
    }

    /// An attempt begins its effect.
    pub fn began(&mut self, id: &ToolCallId, at: Timestamp) {
        self.calls.entry(id.clone()).or_default().began.push(at);
    }

    /// The effect of an attempt is there.
    pub fn landed(&mut self, id: &ToolCallId, at: Timestamp) {
        self.calls.entry(id.clone()).or_default().landed.push(at);
    }

    /// How many attempts of how many calls began.
    pub fn totals(&self) -> (usize, usize) {
        (self.calls.len(), self.calls.values().map(|effects| effects.began.len()).sum())
    }
}

//! Names of things. Each is checked when it is made, so that one that exists is valid everywhere:
//! as a subject token, a file name, a key.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

/// A name that breaks its rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} `{value}` is not valid: expected {rule}")]
pub struct BadName {
    /// Which kind of name.
    pub what: &'static str,
    /// What was given, cut to 80 characters.
    pub value: String,
    /// The rule, as text for people.
    pub rule: &'static str,
}

impl BadName {
    fn new(what: &'static str, value: &str, rule: &'static str) -> Self {
        Self { what, value: value.chars().take(80).collect(), rule }
    }
}

/// Defines a checked string name: serde, `FromStr`, `Display`, `as_str`.
macro_rules! name {
    ($(#[$doc:meta])* $type:ident, $what:literal, $rule:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(try_from = "String", into = "String")]
        #[schemars(with = "String")]
        pub struct $type(String);

        impl $type {
            /// Checks and wraps.
            pub fn new(value: impl Into<String>) -> Result<Self, BadName> {
                let value = value.into();
                let check: fn(&str) -> bool = $check;
                if check(&value) { Ok(Self(value)) } else { Err(BadName::new($what, &value, $rule)) }
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $type {
            type Error = BadName;
            fn try_from(value: String) -> Result<Self, BadName> {
                Self::new(value)
            }
        }

        impl FromStr for $type {
            type Err = BadName;
            fn from_str(value: &str) -> Result<Self, BadName> {
                Self::new(value)
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> Self {
                name.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

fn is_token(value: &str, longest: usize, ok: fn(u8) -> bool) -> bool {
    !value.is_empty() && value.len() <= longest && value.bytes().all(ok)
}

fn lower_token(b: u8) -> bool {
    b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_'
}

fn token(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'-' || b == b'_'
}

fn lower_hex(b: u8) -> bool {
    b.is_ascii_digit() || (b'a'..=b'f').contains(&b)
}

name!(
    /// Whose thread it is. A subject token.
    TenantId, "tenant", "1 to 64 of a-z, 0-9, - and _", |v| is_token(v, 64, lower_token)
);
name!(
    /// An agent's name, from its file.
    AgentName, "agent name", "1 to 64 of A-Z, a-z, 0-9, - and _", |v| is_token(v, 64, token)
);
name!(
    /// A tool's name, as models see it and as a subject token.
    ToolName, "tool name", "1 to 64 of A-Z, a-z, 0-9, - and _", |v| is_token(v, 64, token)
);
name!(
    /// One call the model asked for; unique in its thread, the same on every surface.
    ToolCallId, "tool call id", "nine of a-z and 0-9",
    |v| v.len() == 9 && v.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
);
name!(
    /// One life of one process; a restart is another instance. A subject token.
    InstanceId, "instance id", "1 to 64 of A-Z, a-z, 0-9, - and _", |v| is_token(v, 64, token)
);
name!(
    /// Marks one append for ever, so that an unanswered one can be recognised.
    Nonce, "nonce", "sixteen of 0-9 and a-f", |v| v.len() == 16 && v.bytes().all(lower_hex)
);
name!(
    /// SHA-256 of a payload kept outside its message, in lowercase hex.
    ArtifactId, "artifact id", "sixty-four of 0-9 and a-f",
    |v| v.len() == 64 && v.bytes().all(lower_hex)
);
name!(
    /// SHA-256 over a tool's contract and implementation, or over an agent file, in lowercase hex.
    Fingerprint, "fingerprint", "sixty-four of 0-9 and a-f",
    |v| v.len() == 64 && v.bytes().all(lower_hex)
);
name!(
    /// SHA-256 of canonical arguments, in lowercase hex.
    ArgumentsHash, "arguments hash", "sixty-four of 0-9 and a-f",
    |v| v.len() == 64 && v.bytes().all(lower_hex)
);
name!(
    /// The client's key for an input: the same key in the same thread is the same input, for ever.
    InputKey, "idempotency key", "1 to 128 printable ASCII characters without blanks",
    |v| is_token(v, 128, |b| b.is_ascii_graphic())
);

/// A conversation or job.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct ThreadId(Ulid);

impl ThreadId {
    /// Builds an id from its time in Unix milliseconds and 80 random bits.
    pub fn from_parts(unix_millis: u64, random: u128) -> Self {
        Self(Ulid::from_parts(unix_millis, random))
    }
}

impl FromStr for ThreadId {
    type Err = BadName;
    fn from_str(value: &str) -> Result<Self, BadName> {
        match Ulid::from_string(value) {
            Ok(ulid) => Ok(Self(ulid)),
            Err(_) => Err(BadName::new("thread id", value, "a ULID, 26 characters")),
        }
    }
}

impl TryFrom<String> for ThreadId {
    type Error = BadName;
    fn try_from(value: String) -> Result<Self, BadName> {
        value.parse()
    }
}

impl From<ThreadId> for String {
    fn from(id: ThreadId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Position of a record in its stream, from 1. Zero stands for "nothing yet".
///
/// Positions of a lost tail are used again, so one is only meaningful beside its nonce.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Sequence(pub u64);

impl Sequence {
    /// Before the first record.
    pub const NONE: Self = Self(0);

    /// The position after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Which stream holds a thread.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(transparent)]
pub struct Partition(pub u16);

impl Partition {
    /// The stream of a thread, of so many; every process of a deployment has to agree on the number.
    pub fn of(thread: ThreadId, partitions: u16) -> Self {
        let share = thread.0.0 % u128::from(partitions.max(1));
        Self(u16::try_from(share).unwrap_or(0))
    }
}

/// Where a thread lives: partition, tenant, id.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub struct ThreadRef {
    /// The stream.
    pub partition: Partition,
    /// The owner of the thread.
    pub tenant: TenantId,
    /// The thread.
    pub thread: ThreadId,
}

impl fmt::Display for ThreadRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.partition.0, self.tenant, self.thread)
    }
}

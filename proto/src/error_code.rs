//! Every stable code. A code never changes its meaning; each has a page in the documentation.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Defines the closed set once: variant, wire text, one line for people.
macro_rules! codes {
    ($($variant:ident => $text:literal, $line:literal;)*) => {
        /// Why something did not go as asked.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorCode {
            $(#[doc = $line] $variant,)*
        }

        impl ErrorCode {
            /// All codes, in the order of this list.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The code as it is written on the wire and in file names.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }

            /// What it means, in one line.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $line),* }
            }
        }
    };
}

codes! {
    // Of one tool call.
    UnknownTool => "unknown_tool", "The model named a tool that the agent does not have.";
    InvalidArguments => "invalid_arguments", "The arguments break the tool's schema.";
    MalformedArguments => "malformed_arguments", "The arguments are not one complete JSON object.";
    TimedOut => "timed_out", "The call's deadline passed before an observation came.";
    Unavailable => "unavailable", "No worker took the call, or its breaker is open.";
    Cancelled => "cancelled", "The call was cancelled; the receipt says how far it had come.";
    InDoubt => "in_doubt", "The effect may or may not have happened; nobody can prove either.";
    Denied => "denied", "A person or a policy refused the call.";
    ApprovalExpired => "approval_expired", "Nobody decided the approval in time.";
    VersionMismatch => "version_mismatch", "The worker's tool differs from the one that was validated.";
    NotPermitted => "not_permitted", "Neither agent nor tenant holds a permission that the tool needs.";
    RepeatedCall => "repeated_call", "The same call with the same arguments keeps coming back.";
    BudgetSpent => "budget_spent", "The run's tool-call budget is spent.";
    ToolFailed => "tool_failed", "The tool ran and reported a failure.";
    ToolCrashed => "tool_crashed", "The tool's process ended by a signal or could not go on.";
    ToolNotStarted => "tool_not_started", "The tool could not be started; nothing happened.";
    Conflict => "conflict", "Another call holds the resource, or it has to rest.";
    Exhausted => "exhausted", "There is no room for the call: slots, memory or disk are used up.";
    NotApproved => "not_approved", "The call is not the one that was agreed to.";
    InvalidResult => "invalid_result", "The result breaks the tool's result schema.";
    Frozen => "frozen", "Irreversible tools are frozen.";
    ArtifactMissing => "artifact_missing", "The full result is no longer stored.";
    // Of a run.
    CrashLoop => "crash_loop", "One turn was started three times without leaving a record.";
    ModelUnavailable => "model_unavailable", "No model endpoint answered within the retries.";
    ModelRefused => "model_refused", "The provider or the model refused the request.";
    ModelReplyInvalid => "model_reply_invalid", "The model's reply could not be read.";
    ContextOverflow => "context_overflow", "The request cannot be made small enough for the model.";
    RecordParked => "record_parked", "A record that nobody can decode was set aside.";
    // Of files, settings and stores.
    InvalidAgent => "invalid_agent", "An agent file breaks a rule.";
    InvalidManifest => "invalid_manifest", "A tool manifest breaks a rule.";
    InvalidRehearsal => "invalid_rehearsal", "A rehearsal file breaks a rule.";
    InvalidSettings => "invalid_settings", "Settings are wrong or contradict each other.";
    NoRuleMatched => "no_rule_matched", "A rehearsal has no rule for what the model was sent.";
    StoreLocked => "store_locked", "Another process holds the store.";
    StoreCorrupt => "store_corrupt", "The store's file is damaged.";
    StoreFull => "store_full", "No space is left for the store.";
    StoreUnavailable => "store_unavailable", "The store or the bus does not answer.";
    BusUnreachable => "bus_unreachable", "NATS did not answer within the time it was given at start.";
    BusLoginRefused => "bus_login_refused", "NATS refused the login, or its credentials cannot be read.";
    BusTooOld => "bus_too_old", "The NATS server is older than 2.12.";
    JetstreamOff => "jetstream_off", "JetStream is not enabled on the server or for the account.";
    StreamMismatch => "stream_mismatch", "A stream or consumer has a configuration that could lose records.";
    WorkingMemoryUnreachable => "working_memory_unreachable", "Redis did not answer within the time it was given at start.";
    WorkingMemoryRefused => "working_memory_refused", "Redis refused the login, is too old, or its settings cannot work.";
    MessageTooLarge => "message_too_large", "A record is larger than the bus accepts.";
    TooNew => "too_new", "A record was written by a newer version than this process can read.";
    NotFound => "not_found", "There is no such thread, call or file.";
    InvalidInput => "invalid_input", "What was asked is not well formed.";
    // Of requests to the gateway.
    Unauthenticated => "unauthenticated", "The request has no API key, or one that is not known.";
    RunActive => "run_active", "The thread has an active run, and the input was for one at rest.";
    KeyReused => "key_reused", "The idempotency key belongs to another input.";
    NotWaiting => "not_waiting", "The call does not wait for this decision.";
    Overloaded => "overloaded", "More is under way than the gateway takes at once.";
    Internal => "internal", "A rule that always holds did not; this is a bug.";
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

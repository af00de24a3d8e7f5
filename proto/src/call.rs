//! A tool call: as the model asked for it, as a worker gets it, and the record that an attempt began.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::ids::{ArgumentsHash, Fingerprint, InstanceId, ThreadRef, ToolCallId, ToolName};
use crate::observation::Observation;
use crate::time::Timestamp;
use crate::tool::{Deadlines, Effect, Retry};

/// What the planner made of a call when the turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// It is in the journal as a tool call, or will be appended next.
    Dispatch,
    /// A person has to agree first.
    AwaitApproval,
    /// It is answered at once and never dispatched: unknown tool, invalid arguments, denied, builtin.
    Answered(Box<Observation>),
}

/// What the planner knew of the tool when it accepted a call, so that whoever completes the turn
/// needs no registry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Terms {
    /// What repeating does.
    pub effect: Effect,
    /// The tool as the planner knew it.
    pub fingerprint: Fingerprint,
    /// Limit of one attempt, in milliseconds.
    pub timeout_ms: u64,
    /// Retries inside the dispatch.
    pub retry: Retry,
    /// How long the call may wait and take in all.
    #[serde(default, skip_serializing_if = "Deadlines::is_unsaid")]
    pub deadlines: Deadlines,
}

/// A call as the model asked for it, in the order of the reply.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestedCall {
    /// Our id.
    pub tool_call_id: ToolCallId,
    /// The name the model used, whatever it is.
    pub tool: String,
    /// The arguments; empty when they could not be read.
    pub arguments: Map<String, Value>,
    /// Provider fields that must be sent back unread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
    /// Present unless the call is answered at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
    /// What the planner made of it.
    pub disposition: Disposition,
    /// What was put right in the arguments before they were checked, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub corrected: Vec<String>,
    /// Why a person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_because: Option<String>,
}

/// Who agreed to a call, bound to its exact arguments.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approved {
    /// A person, or `pre-approved`.
    pub by: String,
    /// What was agreed to.
    pub arguments_hash: ArgumentsHash,
    /// The tool that was agreed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<Fingerprint>,
}

/// A tool call to execute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The run, from 1.
    pub run: u32,
    /// The turn that asked, from 1 in its run.
    pub turn: u32,
    /// Place in the reply, from 0.
    pub position: u32,
    /// The tool.
    pub tool: ToolName,
    /// Its arguments, valid against the tool's schema.
    pub arguments: Map<String, Value>,
    /// Their hash.
    pub arguments_hash: ArgumentsHash,
    /// What the planner knew of the tool.
    #[serde(flatten)]
    pub terms: Terms,
    /// No worker starts it later than this, in server time.
    pub start_by: Timestamp,
    /// The planner closes it at this time, in server time.
    pub deadline: Timestamp,
    /// The same for every attempt, for tools that repeat by key.
    pub idempotency_key: String,
    /// Who agreed, when the tool asks for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<Approved>,
    /// Provider fields that came with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opaque: Option<Value>,
}

/// The one record that decides whether an irreversible or checkable call may begin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "start", rename_all = "snake_case")]
pub enum Start {
    /// An attempt begins.
    Started(Started),
    /// The call never starts.
    Barred(Barred),
    /// A resource is taken or given back; on the resource's own subject, never on a call's.
    Held(Hold),
}

/// An attempt that begins.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Started {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// From 1.
    pub attempt: u32,
    /// The worker.
    pub worker: InstanceId,
    /// Its host.
    pub host: String,
    /// The process group that is killed with the worker, when the tool is a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_group: Option<i32>,
    /// When it began.
    pub at: Timestamp,
    /// When every live worker has killed the attempt: `at + timeout + grace`.
    pub until: Timestamp,
}

/// A call that was stopped before it could start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Barred {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The planner that barred it.
    pub by: InstanceId,
    /// When.
    pub at: Timestamp,
}

/// The state of a resource that one mutation at a time may hold. Each record says all that the next one
/// has to know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hold {
    /// The resource.
    pub resource: String,
    /// Who has it; nobody once it was given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// When the newest mutations began, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub began: Vec<Timestamp>,
    /// When the last mutation ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Timestamp>,
}

/// The call that holds a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Holder {
    /// Its thread.
    pub thread: ThreadRef,
    /// The call.
    pub tool_call_id: ToolCallId,
    /// Its tool.
    pub tool: ToolName,
    /// The worker that took it.
    pub worker: InstanceId,
    /// When it was taken.
    pub at: Timestamp,
    /// When every attempt of the call is certainly over.
    pub until: Timestamp,
}

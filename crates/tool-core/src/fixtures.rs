//! Values that many tests need.

use proto::call::{Started, Terms, ToolCall};
use proto::hash::{arguments_hash, fingerprint};
use proto::ids::{InstanceId, ToolCallId, ToolName};
use proto::time::Timestamp;
use proto::tool::{Approval, Effect, Retry, ToolContract};

pub(crate) fn contract(effect: Effect) -> ToolContract {
    ToolContract {
        name: ToolName::new("probe").unwrap(),
        description: "Probes.".into(),
        parameters: serde_json::json!({"type": "object"}),
        effect,
        timeout_ms: 3_000,
        retry: Retry::default(),
        deadlines: proto::tool::Deadlines::default(),
        approval: Approval::Never,
        permissions: vec![],
        result_tokens: 300,
        result_schema: None,
        fingerprint: fingerprint("v1"),
    }
}

/// To be started by 1000, closed at 20000.
pub(crate) fn call(effect: Effect) -> ToolCall {
    let arguments = serde_json::Map::new();
    ToolCall {
        tool_call_id: ToolCallId::new("aaaaaaaaa").unwrap(),
        run: 1,
        turn: 1,
        position: 0,
        tool: ToolName::new("probe").unwrap(),
        arguments_hash: arguments_hash(&arguments),
        arguments,
        terms: Terms {
            effect,
            fingerprint: fingerprint("v1"),
            timeout_ms: 3_000,
            retry: Retry::default(),
            deadlines: proto::tool::Deadlines::default(),
        },
        start_by: Timestamp(1_000),
        deadline: Timestamp(20_000),
        idempotency_key: "key".into(),
        approved: None,
        opaque: None,
    }
}

pub(crate) fn started(attempt: u32, at: Timestamp, until: Timestamp) -> Started {
    Started {
        tool_call_id: ToolCallId::new("aaaaaaaaa").unwrap(),
        attempt,
        worker: InstanceId::new("w2").unwrap(),
        host: "far".into(),
        process_group: None,
        at,
        until,
    }
}

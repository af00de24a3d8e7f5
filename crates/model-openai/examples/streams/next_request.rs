//! The request that follows a reply, built as a planner builds it, and what a case says about it.

use anyhow::Result;
use proto::error_code::ErrorCode;
use proto::ids::ToolCallId;
use proto::observation::Observation;
use proto::transcript::{AnsweredCall, Entry, TurnEntry};
use serde_json::{Map, Value};

use crate::run::Outcome;

/// The reply as an entry of the transcript, every call answered.
pub(crate) fn answered(outcome: &Outcome, turn: usize) -> Result<Entry> {
    let mut calls = Vec::new();
    for call in &outcome.ready {
        let observation = observation(turn, call.position, ErrorCode::UnknownTool)?;
        let arguments = call.arguments.clone();
        let answered = AnsweredCall::new(&call.name, arguments, call.opaque.clone(), observation);
        calls.push((call.position, answered));
    }
    for call in &outcome.broken {
        let observation = observation(turn, call.position, ErrorCode::MalformedArguments)?;
        calls.push((call.position, AnsweredCall::new(&call.name, Map::new(), None, observation)));
    }
    calls.sort_by_key(|(position, _)| *position);
    Ok(Entry::Turn(TurnEntry {
        text: outcome.text.clone(),
        reasoning: outcome.reasoning.clone(),
        calls: calls.into_iter().map(|(_, call)| call).collect(),
        opaque: outcome.end.as_ref().and_then(|end| end.opaque.clone()),
    }))
}

fn observation(turn: usize, position: u32, code: ErrorCode) -> Result<Observation> {
    let id = ToolCallId::new(format!("t{turn:03}c{position:04}"))?;
    Ok(Observation::synthesised(id, code, "answered"))
}

/// Calls and tool messages of a request.
struct Seen<'a> {
    messages: &'a [Value],
    calls: Vec<&'a Value>,
    answers: Vec<&'a Value>,
}

/// Checks a request; answers what is wrong.
pub(crate) fn check(rules: &Map<String, Value>, body: &Value) -> Vec<String> {
    let messages =
        body.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let contract = contract_parts(messages);
    let mut seen = Seen { messages, calls: Vec::new(), answers: Vec::new() };
    for message in messages.iter().chain(&contract) {
        seen.calls
            .extend(message.get("tool_calls").and_then(Value::as_array).into_iter().flatten());
        seen.answers.extend(message.get("tool_call_id").is_some().then_some(message));
    }
    let wrong = rules.iter().filter(|(rule, value)| !seen.holds(rule, value));
    wrong.map(|(rule, value)| format!("next request breaks {rule}: {value} in {body}")).collect()
}

/// Under the contract protocol calls and observations are text: the same parts, made visible.
fn contract_parts(messages: &[Value]) -> Vec<Value> {
    let texts =
        messages.iter().filter_map(|message| message.get("content").and_then(Value::as_str));
    let objects = texts.filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let mut parts = Vec::new();
    for object in objects.filter(Value::is_object) {
        if let Some(Value::Array(observations)) = object.get("observations") {
            let ids = observations.iter().filter_map(|observation| observation.get("id"));
            parts.extend(ids.map(|id| serde_json::json!({"role": "tool", "tool_call_id": id})));
        }
        parts.push(object);
    }
    parts
}

impl Seen<'_> {
    fn ids(&self) -> Vec<&str> {
        self.calls.iter().filter_map(|call| call.get("id")).filter_map(Value::as_str).collect()
    }

    fn answered_ids(&self) -> Vec<&str> {
        let ids = self.answers.iter().filter_map(|answer| answer.get("tool_call_id"));
        ids.filter_map(Value::as_str).collect()
    }

    fn holds(&self, rule: &str, value: &Value) -> bool {
        let ids = self.ids();
        match rule {
            "tool_messages" => value.as_u64() == u64::try_from(self.answers.len()).ok(),
            "ids_paired" => {
                let (mut calls, mut answers) = (ids, self.answered_ids());
                calls.sort_unstable();
                answers.sort_unstable();
                calls == answers
            }
            "ids_unique" => {
                let mut once = ids.clone();
                once.sort_unstable();
                once.dedup();
                once.len() == ids.len()
            }
            "ids_nonempty" => ids.iter().all(|id| !id.is_empty()),
            "id_max_len" => {
                let most = value.as_u64().and_then(|most| usize::try_from(most).ok());
                ids.iter().all(|id| most.is_some_and(|most| id.len() <= most))
            }
            "id_pattern" => {
                let pattern = regex::Regex::new(value.as_str().unwrap_or_default());
                pattern.is_ok_and(|pattern| ids.iter().all(|id| pattern.is_match(id)))
            }
            "tool_messages_in_call_order" => ids == self.answered_ids(),
            "nothing_between" => self.nothing_between(),
            "arguments_valid_json" => self.calls.iter().all(|call| {
                let text = call.pointer("/function/arguments").and_then(Value::as_str);
                text.is_none_or(|text| serde_json::from_str::<Map<String, Value>>(text).is_ok())
            }),
            "assistant_reasoning_content" => {
                self.messages.iter().any(|message| message.get("reasoning_content") == Some(value))
            }
            "tool_call_extra" => self.calls.iter().any(|call| holds_all(call, value)),
            "assistant_extra" => self.messages.iter().any(|message| holds_all(message, value)),
            _ => false,
        }
    }

    fn nothing_between(&self) -> bool {
        let mut expected = 0;
        self.messages.iter().all(|message| {
            let is_tool = message.get("tool_call_id").is_some();
            let fits = if expected > 0 { is_tool } else { !is_tool };
            expected = match message.get("tool_calls").and_then(Value::as_array) {
                Some(calls) => calls.len(),
                None => expected.saturating_sub(1),
            };
            fits
        })
    }
}

fn holds_all(object: &Value, fields: &Value) -> bool {
    let Some(fields) = fields.as_object() else { return false };
    fields.iter().all(|(key, value)| object.get(key) == Some(value))
}

//! A planned reply in the provider's format: chunks of a stream, or one whole completion.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::engine::{Form, Plan, PlannedCall};
use crate::script::Finish;

/// Characters of one piece of a call's arguments or of a contract object: few enough that names,
/// escapes and numbers are torn apart, as real providers do.
const FRAGMENT: usize = 9;
/// Characters that count as a token.
const CHARS_PER_TOKEN: usize = 4;

/// One piece of a reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Piece {
    /// The delta of the chunk.
    pub delta: Value,
}

/// What stays the same in all chunks of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The id of the completion.
    pub id: String,
    /// The model's name, as it was asked for.
    pub model: String,
    /// Unix seconds, for readers that want some.
    pub created: i64,
}

/// The contract object; its keys in the order in which models write them.
#[derive(Serialize)]
struct ContractObject<'a> {
    reasoning: String,
    tool_calls: Vec<ContractCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    confidence: Option<f64>,
}

#[derive(Serialize)]
struct ContractCall<'a> {
    name: &'a str,
    arguments: &'a Map<String, Value>,
}

/// The pieces of a reply, in order; each is sent after one beat of the pace.
pub fn pieces(plan: &Plan) -> Vec<Piece> {
    let mut pieces = vec![Piece { delta: json!({ "role": "assistant", "content": "" }) }];
    let text = |name: &str, part: &str| Piece { delta: json!({ name: part }) };
    match plan.form {
        Form::Contract => {
            let object = contract(plan);
            pieces.extend(fragments(&object, FRAGMENT).map(|part| text("content", part)));
        }
        Form::Native => {
            let (reasoning, say) = native_texts(plan);
            pieces.extend(words(reasoning).map(|part| text("reasoning_content", part)));
            pieces.extend(words(say).map(|part| text("content", part)));
            let calls = plan.calls.iter().enumerate();
            pieces.extend(calls.flat_map(|(index, call)| call_pieces(index, call)));
        }
    }
    pieces
}

/// A whole completion.
pub fn completion(plan: &Plan, head: &Head, prompt_characters: usize) -> Value {
    let message = match plan.form {
        Form::Contract => json!({ "role": "assistant", "content": contract(plan) }),
        Form::Native => native_message(plan),
    };
    json!({
        "id": head.id,
        "object": "chat.completion",
        "created": head.created,
        "model": head.model,
        "choices": [{ "index": 0, "message": message, "finish_reason": finish(plan) }],
        "usage": usage(plan, prompt_characters),
    })
}

fn native_message(plan: &Plan) -> Value {
    let (reasoning, say) = native_texts(plan);
    let mut message = json!({ "role": "assistant", "content": say });
    let Some(fields) = message.as_object_mut() else { return message };
    if !reasoning.is_empty() {
        fields.insert("reasoning_content".to_owned(), json!(reasoning));
    }
    let calls = plan.calls.iter().enumerate().map(|(index, call)| {
        let function = json!({ "name": call.tool, "arguments": arguments(call) });
        json!({ "id": call_id(index), "type": "function", "function": function })
    });
    if !plan.calls.is_empty() {
        fields.insert("tool_calls".to_owned(), calls.collect());
    }
    message
}

/// A chunk with a piece of the reply.
pub fn chunk(head: &Head, piece: &Piece) -> Value {
    let choice = json!({ "index": 0, "delta": piece.delta, "finish_reason": null });
    framed(head, &json!([choice]), &Value::Null)
}

/// The chunk that ends the reply.
pub fn last_chunk(head: &Head, plan: &Plan) -> Value {
    let choice = json!({ "index": 0, "delta": {}, "finish_reason": finish(plan) });
    framed(head, &json!([choice]), &Value::Null)
}

/// The chunk that tells the usage, for clients that ask for it.
pub fn usage_chunk(head: &Head, plan: &Plan, prompt_characters: usize) -> Value {
    framed(head, &json!([]), &usage(plan, prompt_characters))
}

fn framed(head: &Head, choices: &Value, usage: &Value) -> Value {
    json!({
        "id": head.id,
        "object": "chat.completion.chunk",
        "created": head.created,
        "model": head.model,
        "choices": choices,
        "usage": usage,
    })
}

/// Roughly what a provider would count.
pub fn usage(plan: &Plan, prompt_characters: usize) -> Value {
    let said = match plan.form {
        Form::Contract => contract(plan).chars().count(),
        Form::Native => {
            let calls = plan.calls.iter();
            let calls: usize =
                calls.map(|call| call.tool.len() + arguments(call).chars().count()).sum();
            let (reasoning, say) = native_texts(plan);
            reasoning.chars().count() + say.chars().count() + calls
        }
    };
    let (prompt, completion) = (tokens(prompt_characters), tokens(said));
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt.saturating_add(completion),
    })
}

fn tokens(characters: usize) -> usize {
    characters.div_ceil(CHARS_PER_TOKEN)
}

fn finish(plan: &Plan) -> &'static str {
    match plan.finish {
        Finish::Stop => "stop",
        // A contract reply is text to the provider, whatever it asks for.
        Finish::ToolCalls if plan.form == Form::Contract => "stop",
        Finish::ToolCalls => "tool_calls",
        Finish::Length => "length",
    }
}

/// A reply without calls and words is its thought: an answer is never empty.
fn native_texts(plan: &Plan) -> (&str, &str) {
    if plan.say.is_empty() && plan.calls.is_empty() {
        ("", &plan.reasoning)
    } else {
        (&plan.reasoning, &plan.say)
    }
}

/// In the contract protocol an empty list of calls makes `reasoning` the answer, so a thought goes
/// in front of the words only when there are calls.
fn contract(plan: &Plan) -> String {
    let both = [plan.reasoning.as_str(), plan.say.as_str()];
    let reasoning = if plan.calls.is_empty() && !plan.say.is_empty() {
        plan.say.clone()
    } else {
        both.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
    };
    let tool_calls = plan.calls.iter();
    let tool_calls =
        tool_calls.map(|call| ContractCall { name: &call.tool, arguments: &call.arguments });
    let object =
        ContractObject { reasoning, tool_calls: tool_calls.collect(), confidence: plan.confidence };
    serde_json::to_string(&object).unwrap_or_default()
}

fn call_id(index: usize) -> String {
    format!("call_rehearsed_{index}")
}

fn arguments(call: &PlannedCall) -> String {
    Value::Object(call.arguments.clone()).to_string()
}

/// The name first, then the arguments in fragments, as providers send them.
fn call_pieces(index: usize, call: &PlannedCall) -> Vec<Piece> {
    let opening = json!({
        "index": index,
        "id": call_id(index),
        "type": "function",
        "function": { "name": call.tool, "arguments": "" },
    });
    let delta = |entry: Value| Piece { delta: json!({ "tool_calls": [entry] }) };
    let text = arguments(call);
    let rest = fragments(&text, FRAGMENT)
        .map(|part| delta(json!({ "index": index, "function": { "arguments": part } })));
    std::iter::once(delta(opening)).chain(rest).collect()
}

/// A text cut every `length` characters.
fn fragments(text: &str, length: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest.char_indices().nth(length).map_or(rest.len(), |(end, _)| end);
        let (part, tail) = rest.split_at_checked(end)?;
        rest = tail;
        (!part.is_empty()).then_some(part)
    })
}

/// A text cut behind its blanks; long words are cut as well.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive(char::is_whitespace).flat_map(|word| fragments(word, 12))
}

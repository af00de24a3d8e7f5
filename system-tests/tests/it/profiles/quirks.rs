//! How each family streams one and the same reply.

use rehearsal::engine::{Plan, PlannedCall};
use rehearsal::wire;
use serde_json::{Value, json};

use super::server::Family;

const DONE: &str = "data: [DONE]\n\n";

fn choice(delta: &Value, finish: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    event(
        &json!({"id": "r", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}),
    )
}

fn event(chunk: &Value) -> String {
    format!("data: {chunk}\n\n")
}

fn delta(delta: &Value) -> String {
    choice(delta, &Value::Null)
}

fn end(reason: &str) -> String {
    choice(&json!({}), &json!(reason))
}

fn usage() -> String {
    event(&json!({"choices": [], "usage": {"prompt_tokens": 1234, "completion_tokens": 5}}))
}

fn arguments(call: &PlannedCall) -> String {
    Value::Object(call.arguments.clone()).to_string()
}

/// A text in pieces of so many characters.
fn pieces(text: &str, length: usize) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(length).map(|piece| piece.iter().collect()).collect()
}

/// The object of a contract reply.
pub(crate) fn object(plan: &Plan) -> String {
    let parts = wire::pieces(plan);
    parts.iter().filter_map(|piece| piece.delta["content"].as_str()).collect()
}

/// A reply with the family's own calls.
pub(crate) fn native(family: Family, plan: &Plan) -> Vec<String> {
    let mut events = vec![opening(family)];
    events.extend(thought(family, &plan.reasoning));
    let said =
        if plan.say.is_empty() && plan.calls.is_empty() { &plan.reasoning } else { &plan.say };
    if !said.is_empty() {
        events.extend(pieces(said, 11).iter().map(|piece| delta(&json!({"content": piece}))));
    }
    if family == Family::Mistral && !plan.calls.is_empty() {
        events.extend([mistral_calls(plan), DONE.to_owned()]);
        return events;
    }
    let calls = plan.calls.iter().enumerate();
    events.extend(calls.flat_map(|(index, call)| call_events(family, index, call)));
    events.extend(closing(family, !plan.calls.is_empty()));
    events
}

fn opening(family: Family) -> String {
    match family {
        Family::LlamaCpp => delta(&json!({"role": "assistant", "content": null})),
        Family::Vllm => delta(&json!({"role": "assistant", "content": "", "tool_calls": []})),
        Family::Ollama => format!(": keep-alive\n\n{}", delta(&json!({"role": "", "content": ""}))),
        Family::Openai | Family::Mistral | Family::Anthropic | Family::Gemini => {
            delta(&json!({"role": "assistant", "content": ""}))
        }
    }
}

fn thought(family: Family, reasoning: &str) -> Vec<String> {
    let field = match family {
        Family::Vllm | Family::LlamaCpp | Family::Openai => "reasoning_content",
        Family::Ollama => "reasoning",
        Family::Anthropic => "thinking",
        Family::Mistral | Family::Gemini => return Vec::new(),
    };
    pieces(reasoning, 13).iter().map(|piece| delta(&json!({field: piece}))).collect()
}

/// All calls whole in one chunk that ends the reply too.
fn mistral_calls(plan: &Plan) -> String {
    let calls: Vec<Value> = plan
        .calls
        .iter()
        .enumerate()
        .map(|(index, call)| {
            let function = json!({"name": call.tool, "arguments": arguments(call)});
            json!({"id": format!("D681Pev{index:02}"), "function": function, "index": index})
        })
        .collect();
    choice(&json!({"content": "", "tool_calls": calls}), &json!("tool_calls"))
}

fn call_events(family: Family, index: usize, call: &PlannedCall) -> Vec<String> {
    let name = call.tool.as_str();
    let whole = arguments(call);
    let entry = |entry: Value| delta(&json!({"tool_calls": [entry]}));
    match family {
        // Torn apart, as the reference does it.
        Family::Openai | Family::Mistral => {
            let opened = json!({"index": index, "id": format!("call_{index}"), "type": "function",
                "function": {"name": name, "arguments": ""}});
            let rest = pieces(&whole, 7)
                .into_iter()
                .map(|part| entry(json!({"index": index, "function": {"arguments": part}})));
            std::iter::once(entry(opened)).chain(rest).collect()
        }
        // Text is block 0, so calls begin at 1; the first arguments are null.
        Family::Anthropic => {
            let opened = json!({"index": index + 1, "id": "toolu_01A09q90qw90lq917835lq9".to_owned() + &index.to_string(),
                "type": "function", "function": {"name": name, "arguments": null}});
            let rest = pieces(&whole, 16)
                .into_iter()
                .map(|part| entry(json!({"index": index + 1, "function": {"arguments": part}})));
            std::iter::once(entry(opened)).chain(rest).collect()
        }
        // No index, no id, whole, with a signature that has to come back.
        Family::Gemini => vec![entry(json!({"id": "", "type": "function",
            "function": {"name": name, "arguments": whole},
            "extra_content": {"google": {"thought_signature": "c2ln"}}}))],
        // Letter by letter.
        Family::LlamaCpp => {
            let opened = json!({"index": index, "id": "cX0tFnGxvKCyAsXlfRLnvN4HvBdlYbi".to_owned() + &index.to_string(),
                "type": "function", "function": {"name": name, "arguments": ""}});
            let rest = pieces(&whole, 1)
                .into_iter()
                .map(|part| entry(json!({"index": index, "function": {"arguments": part}})));
            std::iter::once(entry(opened)).chain(rest).collect()
        }
        // Every call has index 0, and the arguments are no text.
        Family::Ollama => vec![entry(
            json!({"index": 0, "id": format!("call_{name}_{index}"), "type": "function",
            "function": {"name": name, "arguments": call.arguments}}),
        )],
        // Name and an empty id again on each piece, and at the end all of it once more.
        Family::Vllm => {
            let id = |at: usize| {
                if at == 0 { json!(format!("chatcmpl-tool-{index}")) } else { json!("") }
            };
            let part = |(at, part): (usize, String)| {
                entry(json!({"index": index, "id": id(at), "type": "function",
                "function": {"name": name, "arguments": part}}))
            };
            let again = entry(json!({"index": index, "function": {"arguments": whole}}));
            pieces(&whole, 9).into_iter().enumerate().map(part).chain([again]).collect()
        }
    }
}

fn closing(family: Family, has_calls: bool) -> Vec<String> {
    let usual = if has_calls { "tool_calls" } else { "stop" };
    let done = DONE.to_owned();
    match family {
        Family::Openai | Family::Mistral | Family::Vllm => vec![end(usual), usage(), done],
        Family::Anthropic => {
            vec![end(if has_calls { "tool_calls" } else { "end_turn" }), usage(), done]
        }
        Family::Gemini => vec![end("stop"), done],
        Family::LlamaCpp => {
            let timings = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": usual}],
                "timings": {"prompt_n": 12, "predicted_ms": 1.5}});
            vec![event(&timings), "data: [DONE]".to_owned()]
        }
        // No mark behind it: the connection ends.
        Family::Ollama => vec![end("stop")],
    }
}

/// A contract reply is text, with what each family puts around it.
pub(crate) fn contract(family: Family, object: &str) -> Vec<String> {
    let content = |text: &str, length: usize| {
        pieces(text, length)
            .into_iter()
            .map(|piece| delta(&json!({"content": piece})))
            .collect::<Vec<_>>()
    };
    let mut events = vec![opening(family)];
    events.extend(match family {
        Family::Openai => content(object, 9),
        Family::Mistral => pieces(object, 40)
            .into_iter()
            .map(|piece| delta(&json!({"content": [{"type": "text", "text": piece}]})))
            .collect(),
        Family::Anthropic => content(&format!("```json\n{object}\n```"), 17),
        Family::Gemini => content(object, object.len()),
        Family::LlamaCpp => content(&format!("<think>Is it {{\"a\": 1}}?</think>\n{object}"), 1),
        Family::Ollama => content(&format!("Here it is:\n{object}"), 200),
        Family::Vllm => {
            let thought =
                delta(&json!({"reasoning_content": "I need {\"tool_calls\": []}, perhaps."}));
            std::iter::once(thought).chain(content(object, 5)).collect()
        }
    });
    events.extend(closing(family, false));
    events
}

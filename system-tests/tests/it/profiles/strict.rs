//! What a family refuses in a request.

use serde_json::Value;

use super::server::Family;

/// What is wrong with a request.
pub(crate) fn problems(family: Family, body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap();
    let mut wrong = unanswered(messages);
    let mut rule = |holds: bool, words: &str| {
        if !holds {
            wrong.push(words.to_owned());
        }
    };
    let roles: Vec<&str> = messages.iter().map(|one| one["role"].as_str().unwrap()).collect();
    let is_openai = family == Family::Openai;
    rule(
        is_openai || !roles.iter().skip(1).any(|role| *role == "system"),
        "system words come first",
    );
    let users = |pair: &[&str]| pair == ["user", "user"];
    rule(is_openai || !roles.windows(2).any(users), "users do not follow each other");
    let limit = if is_openai { "max_tokens" } else { "max_completion_tokens" };
    rule(body.get(limit).is_none(), "an unknown limit");
    match family {
        Family::Mistral => {
            rule(body.get("stream_options").is_none(), "stream_options are unknown");
            rule(!roles.windows(2).any(|pair| pair == ["tool", "user"]), "a user behind a tool");
            rule(messages.iter().all(is_plain), "unknown fields of a message");
            let ids = calls(messages).map(|call| call["id"].as_str().unwrap());
            let fits = |id: &str| id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric());
            rule(ids.clone().all(fits), "ids have nine letters or digits");
        }
        Family::Gemini => {
            let signed =
                |call: &Value| call["extra_content"]["google"]["thought_signature"] == "c2ln";
            rule(calls(messages).all(signed), "a signature is missing");
        }
        Family::Vllm => {
            let thinks = |one: &&Value| one["role"] == "assistant" && one["tool_calls"].is_array();
            let mut turns = messages.iter().filter(thinks);
            rule(turns.all(|one| one["reasoning_content"].is_string()), "the thoughts are missing");
        }
        Family::Openai | Family::Anthropic | Family::LlamaCpp | Family::Ollama => {}
    }
    wrong
}

fn calls(messages: &[Value]) -> impl Iterator<Item = &Value> + Clone {
    messages.iter().filter_map(|one| one["tool_calls"].as_array()).flatten()
}

fn is_plain(message: &Value) -> bool {
    let known = ["role", "content", "tool_calls", "tool_call_id", "name"];
    let fields = message.as_object().unwrap().keys().all(|field| known.contains(&field.as_str()));
    let calls = message["tool_calls"].as_array();
    fields && calls.into_iter().flatten().all(|call| call.as_object().unwrap().len() == 3)
}

/// Each call has its one answer directly behind, in order.
fn unanswered(messages: &[Value]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let Some(calls) = message["tool_calls"].as_array() else { continue };
        for (place, call) in calls.iter().enumerate() {
            let answer = messages.get(at + 1 + place).unwrap_or(&Value::Null);
            if answer["tool_call_id"] != call["id"] {
                wrong.push(format!("call {} is not answered in its place", call["id"]));
            }
            let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
            if serde_json::from_str::<Value>(arguments).is_err() {
                wrong.push(format!("arguments of {} are no JSON", call["id"]));
            }
        }
    }
    wrong
}

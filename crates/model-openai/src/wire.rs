//! A request as the provider's JSON.
//!
//! The conversation can only be a transcript, in which every call has its one observation; so each
//! call id gets exactly one tool message, directly behind, in call order, whatever became of the
//! call. Under the contract protocol calls and observations are text on both sides, in the shape
//! that the model is asked to write.

use proto::agent::Protocol;
use proto::model::{Block, ModelRequest, ModelTool};
use proto::transcript::{AnsweredCall, Entry, TurnEntry};
use serde_json::{Map, Value, json};

use crate::profile::Rules;

/// The mark of what the runtime says in a user's place.
const RUNTIME: &str = "[runtime] ";
/// What the assistant says where somebody has to speak between a tool and a user.
const BRIDGE: &str = "Noted.";
const LONGEST_NAME: usize = 64;

/// The body of a request. `model` replaces the one asked for.
pub fn render(request: &ModelRequest, model: Option<&str>, rules: &Rules) -> Value {
    let mut body = Map::new();
    let model = model.unwrap_or(&request.model);
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), Value::Array(messages(request, rules)));
    if request.protocol == Protocol::Native && !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    if let Some(most) = request.max_completion_tokens {
        body.insert(rules.limit_field.to_owned(), json!(most));
    }
    body.insert("stream".to_owned(), json!(true));
    if rules.asks_for_usage {
        body.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    Value::Object(body)
}

fn tool(tool: &ModelTool) -> Value {
    json!({
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": *tool.parameters,
        },
    })
}

fn messages(request: &ModelRequest, rules: &Rules) -> Vec<Value> {
    let mut list = Messages { list: Vec::new(), rules };
    let head = join(&request.head);
    if !head.is_empty() {
        list.push("system", &head);
    }
    for entry in request.transcript.entries() {
        match entry {
            Entry::User { text } => list.user(text),
            Entry::Note { text } => list.runtime(text),
            Entry::Turn(turn) => match request.protocol {
                Protocol::Native => list.turn(turn),
                Protocol::Contract => list.contract_turn(turn),
            },
        }
    }
    let tail = join(&request.tail);
    if !tail.is_empty() {
        list.runtime(&tail);
    }
    list.list
}

fn join(blocks: &[Block]) -> String {
    let texts: Vec<&str> = blocks.iter().map(|block| block.text.trim()).collect();
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

struct Messages<'r> {
    list: Vec<Value>,
    rules: &'r Rules,
}

impl Messages<'_> {
    fn push(&mut self, role: &str, content: &str) {
        self.list.push(json!({"role": role, "content": content}));
    }

    fn last_role(&self) -> &str {
        self.list
            .last()
            .and_then(|last| last.get("role"))
            .and_then(Value::as_str)
            .unwrap_or_default()
    }

    fn user(&mut self, text: &str) {
        if self.rules.assistant_after_tool && self.last_role() == "tool" {
            self.push("assistant", BRIDGE);
        }
        if self.rules.merges_users
            && self.last_role() == "user"
            && let Some(Value::String(content)) =
                self.list.last_mut().and_then(|last| last.get_mut("content"))
        {
            content.push_str("\n\n");
            content.push_str(text);
            return;
        }
        self.push("user", text);
    }

    fn runtime(&mut self, text: &str) {
        if self.rules.system_anywhere {
            self.push("system", text);
        } else {
            self.user(&format!("{RUNTIME}{text}"));
        }
    }

    fn turn(&mut self, turn: &TurnEntry) {
        if turn.text.is_empty() && turn.calls.is_empty() {
            return;
        }
        let mut message = self.echo(turn);
        message.insert("role".to_owned(), json!("assistant"));
        let content = if turn.text.is_empty() { Value::Null } else { json!(turn.text) };
        message.insert("content".to_owned(), content);
        if !turn.calls.is_empty() {
            let calls = turn.calls.iter().map(|call| self.call(call)).collect();
            message.insert("tool_calls".to_owned(), calls);
        }
        self.list.push(Value::Object(message));
        for call in &turn.calls {
            let content = shown(&call.observation().content);
            let id = call.tool_call_id();
            self.list.push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        }
    }

    /// What the provider wants to see again. A reply that was cut has no such fields of its own;
    /// its reasoning goes back where most providers look for it.
    fn echo(&self, turn: &TurnEntry) -> Map<String, Value> {
        if !self.rules.echoes {
            return Map::new();
        }
        let mut fields = match &turn.opaque {
            Some(Value::Object(fields)) => fields.clone(),
            Some(_) | None => Map::new(),
        };
        let known = ["reasoning_content", "reasoning", "thinking", "reasoning_details"];
        let is_missing = known.iter().all(|field| !fields.contains_key(*field));
        if is_missing && !turn.reasoning.is_empty() && !turn.calls.is_empty() {
            fields.insert("reasoning_content".to_owned(), json!(turn.reasoning));
        }
        fields
    }

    fn call(&self, call: &AnsweredCall) -> Value {
        let mut fields = match call.opaque() {
            Some(Value::Object(fields)) if self.rules.echoes => fields.clone(),
            Some(_) | None => Map::new(),
        };
        let arguments = Value::Object(call.arguments().clone()).to_string();
        fields.insert("id".to_owned(), json!(call.tool_call_id()));
        fields.insert("type".to_owned(), json!("function"));
        let function = json!({"name": name(call.tool()), "arguments": arguments});
        fields.insert("function".to_owned(), function);
        Value::Object(fields)
    }

    fn contract_turn(&mut self, turn: &TurnEntry) {
        // An answer is the reasoning of an object without calls; with calls it is an aside.
        let (first, second) = if turn.calls.is_empty() {
            (&turn.text, &turn.reasoning)
        } else {
            (&turn.reasoning, &turn.text)
        };
        let reasoning = if first.is_empty() { second } else { first };
        if reasoning.is_empty() && turn.calls.is_empty() {
            return;
        }
        let calls: Vec<Value> = turn.calls.iter().map(contract_call).collect();
        let object = json!({"reasoning": reasoning, "tool_calls": calls});
        self.push("assistant", &object.to_string());
        if !turn.calls.is_empty() {
            let observations: Vec<Value> = turn.calls.iter().map(contract_observation).collect();
            self.user(&json!({"observations": observations}).to_string());
        }
    }
}

fn contract_call(call: &AnsweredCall) -> Value {
    json!({
        "id": call.tool_call_id(),
        "name": name(call.tool()),
        "arguments": call.arguments(),
    })
}

fn contract_observation(call: &AnsweredCall) -> Value {
    json!({
        "id": call.tool_call_id(),
        "name": name(call.tool()),
        "content": shown(&call.observation().content),
    })
}

/// Some providers refuse an empty message.
fn shown(content: &str) -> &str {
    if content.is_empty() { "(empty)" } else { content }
}

/// One bad name in the history would poison every later request.
fn name(name: &str) -> String {
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let clean: String =
        name.chars().take(LONGEST_NAME).map(|c| if is_good(c) { c } else { '_' }).collect();
    if clean.is_empty() { "unknown".to_owned() } else { clean }
}

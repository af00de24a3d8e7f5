//! A request as the provider's JSON.
//!
//! The conversation can only be a transcript, in which every call has its one observation; so each
//! call id gets exactly one tool message, directly behind, in call order, whatever became of the
//! call. Under the contract protocol calls and observations are text on both sides, in the shape
//! that the model is asked to write.
//!
//! The body is written straight from the request: a tree of values in between takes ten times its
//! room, and many threads ask at once.

use std::borrow::Cow;

use proto::agent::Protocol;
use proto::ids::ToolCallId;
use proto::model::{Block, ModelRequest, ModelTool};
use proto::transcript::{AnsweredCall, Entry, TurnEntry};
use serde::ser::{SerializeMap, SerializeSeq, Serializer};
use serde::{Serialize, ser};
use serde_json::{Map, Value};

use crate::profile::Rules;

/// The mark of what the runtime says in a user's place.
const RUNTIME: &str = "[runtime] ";
/// What the assistant says where somebody has to speak between a tool and a user.
const BRIDGE: &str = "Noted.";
const LONGEST_NAME: usize = 64;

/// The body of a request, ready to be written. `model` replaces the one asked for.
pub fn render<'a>(
    request: &'a ModelRequest,
    model: Option<&'a str>,
    rules: &'a Rules,
) -> impl Serialize + 'a {
    let model = model.unwrap_or(&request.model);
    Body { request, model, rules, messages: messages(request, rules) }
}

struct Body<'a> {
    request: &'a ModelRequest,
    model: &'a str,
    rules: &'a Rules,
    messages: Vec<Message<'a>>,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut body = serializer.serialize_map(None)?;
        if let Some(most) = self.request.max_completion_tokens {
            body.serialize_entry(self.rules.limit_field, &most)?;
        }
        body.serialize_entry("messages", &self.messages)?;
        body.serialize_entry("model", self.model)?;
        body.serialize_entry("stream", &true)?;
        if self.rules.asks_for_usage {
            body.serialize_entry("stream_options", &StreamOptions { include_usage: true })?;
        }
        if let Some(temperature) = self.request.temperature {
            body.serialize_entry("temperature", &temperature)?;
        }
        if self.request.protocol == Protocol::Native && !self.request.tools.is_empty() {
            body.serialize_entry("tools", &Tools(&self.request.tools))?;
        }
        body.end()
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

struct Tools<'a>(&'a [ModelTool]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut tools = serializer.serialize_seq(Some(self.0.len()))?;
        for tool in self.0 {
            let function = ToolFunction {
                description: &tool.description,
                name: tool.name.as_str(),
                parameters: &tool.parameters,
            };
            tools.serialize_element(&Function { function, kind: "function" })?;
        }
        tools.end()
    }
}

#[derive(Serialize)]
struct Function<T> {
    function: T,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Serialize)]
struct ToolFunction<'a> {
    description: &'a str,
    name: &'a str,
    parameters: &'a Value,
}

fn messages<'a>(request: &'a ModelRequest, rules: &'a Rules) -> Vec<Message<'a>> {
    let mut list = Messages { list: Vec::new(), rules };
    let head = join(&request.head);
    if !head.is_empty() {
        list.push("system", head);
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
        list.runtime(tail);
    }
    list.list
}

fn join(blocks: &[Block]) -> String {
    let texts: Vec<&str> = blocks.iter().map(|block| block.text.trim()).collect();
    texts.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n")
}

enum Message<'a> {
    Said { role: &'static str, content: Cow<'a, str> },
    Turn { turn: &'a TurnEntry, rules: &'a Rules },
    Observation(&'a AnsweredCall),
}

impl Message<'_> {
    fn role(&self) -> &'static str {
        match self {
            Self::Said { role, .. } => role,
            Self::Turn { .. } => "assistant",
            Self::Observation(_) => "tool",
        }
    }
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut message = serializer.serialize_map(None)?;
        match self {
            Self::Said { content, .. } => message.serialize_entry("content", content)?,
            Self::Turn { turn, rules } => write_turn(&mut message, turn, rules)?,
            Self::Observation(call) => {
                message.serialize_entry("content", shown(&call.observation().content))?;
                message.serialize_entry("tool_call_id", call.tool_call_id())?;
            }
        }
        message.serialize_entry("role", self.role())?;
        message.end()
    }
}

fn write_turn<M: SerializeMap>(
    message: &mut M,
    turn: &TurnEntry,
    rules: &Rules,
) -> Result<(), M::Error> {
    let content = Some(turn.text.as_str()).filter(|text| !text.is_empty());
    message.serialize_entry("content", &content)?;
    if rules.echoes {
        write_echo(message, turn)?;
    }
    if !turn.calls.is_empty() {
        message.serialize_entry("tool_calls", &Calls { calls: &turn.calls, rules })?;
    }
    Ok(())
}

/// What the provider wants to see again. A reply that was cut has no such fields of its own;
/// its reasoning goes back where most providers look for it.
fn write_echo<M: SerializeMap>(message: &mut M, turn: &TurnEntry) -> Result<(), M::Error> {
    let fields = fields(turn.opaque.as_ref());
    write_fields(message, fields, &["content", "role", "tool_calls"])?;
    let known = ["reasoning_content", "reasoning", "thinking", "reasoning_details"];
    let is_missing =
        known.iter().all(|field| !fields.is_some_and(|fields| fields.contains_key(*field)));
    if is_missing && !turn.reasoning.is_empty() && !turn.calls.is_empty() {
        message.serialize_entry("reasoning_content", &turn.reasoning)?;
    }
    Ok(())
}

fn fields(opaque: Option<&Value>) -> Option<&Map<String, Value>> {
    opaque.and_then(Value::as_object)
}

/// The provider's own fields, except those that are ours to write.
fn write_fields<M: SerializeMap>(
    object: &mut M,
    fields: Option<&Map<String, Value>>,
    ours: &[&str],
) -> Result<(), M::Error> {
    let theirs = fields.into_iter().flatten().filter(|(name, _)| !ours.contains(&name.as_str()));
    for (name, value) in theirs {
        object.serialize_entry(name, value)?;
    }
    Ok(())
}

struct Calls<'a> {
    calls: &'a [AnsweredCall],
    rules: &'a Rules,
}

impl Serialize for Calls<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let calls = self.calls.iter().map(|call| Call { call, rules: self.rules });
        serializer.collect_seq(calls)
    }
}

struct Call<'a> {
    call: &'a AnsweredCall,
    rules: &'a Rules,
}

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut call = serializer.serialize_map(None)?;
        if self.rules.echoes {
            let opaque = fields(self.call.opaque());
            write_fields(&mut call, opaque, &["function", "id", "type"])?;
        }
        let arguments = serde_json::to_string(self.call.arguments()).map_err(ser::Error::custom)?;
        let function = CalledFunction { arguments, name: name(self.call.tool()) };
        call.serialize_entry("function", &function)?;
        call.serialize_entry("id", self.call.tool_call_id())?;
        call.serialize_entry("type", "function")?;
        call.end()
    }
}

#[derive(Serialize)]
struct CalledFunction {
    arguments: String,
    name: String,
}

struct Messages<'a> {
    list: Vec<Message<'a>>,
    rules: &'a Rules,
}

impl<'a> Messages<'a> {
    fn push(&mut self, role: &'static str, content: impl Into<Cow<'a, str>>) {
        self.list.push(Message::Said { role, content: content.into() });
    }

    fn last_role(&self) -> &str {
        self.list.last().map(Message::role).unwrap_or_default()
    }

    fn user(&mut self, text: impl Into<Cow<'a, str>>) {
        let text = text.into();
        if self.rules.assistant_after_tool && self.last_role() == "tool" {
            self.push("assistant", BRIDGE);
        }
        if self.rules.merges_users
            && let Some(Message::Said { role: "user", content }) = self.list.last_mut()
        {
            let content = content.to_mut();
            content.push_str("\n\n");
            content.push_str(&text);
            return;
        }
        self.push("user", text);
    }

    fn runtime(&mut self, text: impl Into<Cow<'a, str>>) {
        if self.rules.system_anywhere {
            self.push("system", text);
        } else {
            self.user(format!("{RUNTIME}{}", text.into()));
        }
    }

    fn turn(&mut self, turn: &'a TurnEntry) {
        if turn.text.is_empty() && turn.calls.is_empty() {
            return;
        }
        self.list.push(Message::Turn { turn, rules: self.rules });
        self.list.extend(turn.calls.iter().map(Message::Observation));
    }

    fn contract_turn(&mut self, turn: &'a TurnEntry) {
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
        let tool_calls = turn.calls.iter().map(contract_call).collect();
        self.push("assistant", text_of(&ContractObject { reasoning, tool_calls }));
        if !turn.calls.is_empty() {
            let observations = turn.calls.iter().map(contract_observation).collect();
            self.user(text_of(&ContractObservations { observations }));
        }
    }
}

#[derive(Serialize)]
struct ContractObject<'a> {
    reasoning: &'a str,
    tool_calls: Vec<ContractCall<'a>>,
}

#[derive(Serialize)]
struct ContractCall<'a> {
    arguments: &'a Map<String, Value>,
    id: &'a ToolCallId,
    name: String,
}

#[derive(Serialize)]
struct ContractObservations<'a> {
    observations: Vec<ContractObservation<'a>>,
}

#[derive(Serialize)]
struct ContractObservation<'a> {
    content: &'a str,
    id: &'a ToolCallId,
    name: String,
}

fn contract_call(call: &AnsweredCall) -> ContractCall<'_> {
    let (arguments, id) = (call.arguments(), call.tool_call_id());
    ContractCall { arguments, id, name: name(call.tool()) }
}

fn contract_observation(call: &AnsweredCall) -> ContractObservation<'_> {
    let (content, id) = (shown(&call.observation().content), call.tool_call_id());
    ContractObservation { content, id, name: name(call.tool()) }
}

/// Nothing in it can fail to be written: its keys are words, its values are values of JSON.
fn text_of(object: &impl Serialize) -> String {
    serde_json::to_string(object).unwrap_or_default()
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

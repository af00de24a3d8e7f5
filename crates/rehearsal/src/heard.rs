//! What a chat request says: who spoke last, what was called, what was observed.

use serde_json::Value;

use crate::engine::Form;

/// One thing that happened in the conversation, oldest first.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The user spoke.
    User(String),
    /// The model replied.
    Reply,
    /// The reply before called a tool.
    Called(String),
    /// A tool answered.
    Observed(Observed),
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The tool.
    pub tool: String,
    /// Its words.
    pub text: String,
    /// The JSON in them, if there is some.
    pub json: Option<Value>,
}

/// Who spoke last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The user.
    User,
    /// A tool.
    Tool,
    /// The model itself: the request ends with a reply that called nothing.
    Model,
    /// Nobody but the system.
    Nobody,
}

/// A request, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    /// How the reply has to be written.
    pub form: Form,
    /// The model that was asked for.
    pub model: String,
    /// What happened.
    pub events: Vec<Event>,
    /// Characters of everything sent, for counting tokens.
    pub characters: usize,
}

impl Heard {
    /// Reads a chat request. What is not there counts as empty: a model reads what it gets.
    pub fn read(request: &Value) -> Self {
        let none = Vec::new();
        let messages = request.get("messages").and_then(Value::as_array).unwrap_or(&none);
        let tools = request.get("tools").and_then(Value::as_array).unwrap_or(&none);
        let is_contract = tools.is_empty() && messages.iter().any(asks_for_contract);
        let form = if is_contract { Form::Contract } else { Form::Native };
        let mut events = Vec::new();
        let mut calls = Vec::new();
        for message in messages {
            hear(message, form, &mut calls, &mut events);
        }
        let texts = messages.iter().map(|message| text_of(message).chars().count());
        let tools = tools.iter().map(|tool| tool.to_string().chars().count());
        let characters = texts.chain(tools).sum();
        let model = request.get("model").and_then(Value::as_str).unwrap_or_default().to_owned();
        Self { form, model, events, characters }
    }

    /// What happened since the user last spoke, with the user's words.
    pub fn since_user(&self) -> &[Event] {
        let spoke = |event: &Event| matches!(event, Event::User(_));
        let from = self.events.iter().rposition(spoke).unwrap_or(0);
        self.events.get(from..).unwrap_or_default()
    }

    /// The newest words of the user.
    pub fn user(&self) -> &str {
        let texts = self.events.iter().rev().filter_map(|event| match event {
            Event::User(text) => Some(text.as_str()),
            Event::Reply | Event::Called(_) | Event::Observed(_) => None,
        });
        texts.into_iter().next().unwrap_or_default()
    }

    /// Who spoke last.
    pub fn last(&self) -> Speaker {
        match self.events.last() {
            None => Speaker::Nobody,
            Some(Event::User(_)) => Speaker::User,
            Some(Event::Observed(_)) => Speaker::Tool,
            Some(Event::Reply | Event::Called(_)) => Speaker::Model,
        }
    }
}

/// The newest observation of a tool, or of any tool.
pub fn newest<'e>(events: &'e [Event], tool: Option<&str>) -> Option<&'e Observed> {
    events.iter().rev().find_map(|event| match event {
        Event::Observed(observed) if tool.is_none_or(|tool| observed.tool == tool) => {
            Some(observed)
        }
        Event::User(_) | Event::Reply | Event::Called(_) | Event::Observed(_) => None,
    })
}

/// The contract protocol offers no tools on the wire and describes its object in the prompt.
fn asks_for_contract(message: &Value) -> bool {
    let text = text_of(message);
    is_system(message) && text.contains("\"reasoning\"") && text.contains("\"tool_calls\"")
}

fn is_system(message: &Value) -> bool {
    ["system", "developer"].contains(&role(message))
}

fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

/// The text of a message, in either form.
fn text_of(message: &Value) -> String {
    match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            String::new()
        }
    }
}

/// A call of a reply whose observation may follow: its id and its tool.
type Asked = (String, String);

fn hear(message: &Value, form: Form, calls: &mut Vec<Asked>, events: &mut Vec<Event>) {
    let text = text_of(message);
    match role(message) {
        "user" => hear_user(&text, form, events),
        "assistant" => hear_reply(message, &text, form, calls, events),
        "tool" => {
            let id = message.get("tool_call_id").and_then(Value::as_str).unwrap_or_default();
            let asked = calls.iter().rev().find(|(known, _)| known == id).map(|(_, tool)| tool);
            let named = message.get("name").and_then(Value::as_str);
            let tool = named.or_else(|| asked.map(String::as_str)).unwrap_or_default();
            events.push(Event::Observed(observed(tool, text)));
        }
        _ => {}
    }
}

/// What the runtime says in a user's place, to providers that know no late system messages.
const RUNTIME: &str = "[runtime] ";

/// In the contract protocol observations come as one JSON object in a user's place. Words of the
/// user or of the runtime may stand behind it: some providers want one message a side.
fn hear_user(text: &str, form: Form, events: &mut Vec<Event>) {
    let mut rest = text;
    if form == Form::Contract
        && let Some((observations, tail)) = observations(text)
    {
        events.extend(observations);
        rest = tail;
    }
    let paragraphs = rest.split("\n\n").filter(|part| !part.starts_with(RUNTIME));
    let said = paragraphs.collect::<Vec<_>>().join("\n\n");
    if !said.trim().is_empty() {
        events.push(Event::User(said));
    }
}

/// `{"observations": [{"name": …, "content": …}]}` and what stands behind it.
fn observations(text: &str) -> Option<(Vec<Event>, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let object = values.next()?.ok()?;
    let tail = text.get(values.byte_offset()..)?;
    let all = object.get("observations")?.as_array()?.iter().map(|one| {
        let field = |name: &str| one.get(name).and_then(Value::as_str).unwrap_or_default();
        Event::Observed(observed(field("name"), field("content").to_owned()))
    });
    Some((all.collect(), tail.trim_start_matches('\n')))
}

fn hear_reply(
    message: &Value,
    text: &str,
    form: Form,
    calls: &mut Vec<Asked>,
    events: &mut Vec<Event>,
) {
    events.push(Event::Reply);
    let none = Vec::new();
    let native = message.get("tool_calls").and_then(Value::as_array).unwrap_or(&none);
    for call in native {
        let tool = call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
        let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
        calls.push((id.to_owned(), tool.to_owned()));
        events.push(Event::Called(tool.to_owned()));
    }
    if form == Form::Contract && native.is_empty() {
        let object = json_in(text).unwrap_or_default();
        let asked = object.get("tool_calls").and_then(Value::as_array).unwrap_or(&none);
        let names = asked.iter().filter_map(|call| call.get("name")?.as_str());
        events.extend(names.map(|name| Event::Called(name.to_owned())));
    }
}

fn observed(tool: &str, text: String) -> Observed {
    Observed { tool: tool.to_owned(), json: json_in(&text), text }
}

/// The JSON object or array in a text, which may have words around it.
pub fn json_in(text: &str) -> Option<Value> {
    let whole = serde_json::from_str::<Value>(text.trim()).ok();
    let between = |open: char, close: char| {
        let inner = text.get(text.find(open)?..=text.rfind(close)?)?;
        serde_json::from_str::<Value>(inner).ok()
    };
    let is_compound = |value: &Value| value.is_object() || value.is_array();
    whole.filter(is_compound).or_else(|| between('{', '}')).or_else(|| between('[', ']'))
}

/// The value at a dotted path, such as `alerts.0.labels.service`.
pub fn at_path<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(value, |value, part| match value {
        Value::Object(fields) => fields.get(part),
        Value::Array(items) => items.get(part.parse::<usize>().ok()?),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

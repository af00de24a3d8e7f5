//! Chunks to events.

use std::mem;

use proto::agent::Protocol;
use proto::fact::Usage;
use proto::model::{ModelError, ModelErrorKind, ModelEvent, ReadyCall};
use serde_json::{Map, Value};

use super::ReaderConfig;
use super::Signal;
use super::calls::{Calls, Piece};
use super::chunk::{Choice, Chunk, Delta, Entry, Function, Loose};
use super::contract::{Contract, Said};
use super::envelope::Named;
use super::finish::Reason;
use super::lenient;
use super::provider_error::{in_band, in_words};
use super::text_calls::{Found, TextCalls};
use super::think::{Part, ThinkSplit};

/// One reply.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(super) config: ReaderConfig,
    signals: Vec<Signal>,
    is_over: bool,
    pub(super) allows_torn_piece: bool,
    pub(super) frames: u64,
    chunks: u64,
    pub(super) reason: Option<Reason>,
    pub(super) calls: Calls,
    pub(super) split: ThinkSplit,
    pub(super) text_calls: TextCalls,
    pub(super) contract: Contract,
    pub(super) answer: Option<String>,
    pub(super) thoughts: Thoughts,
    /// Calls that were found in the text, to recognise them when they come as calls too.
    leaked: Vec<Named>,
    pub(super) said: bool,
    pub(super) refusal: String,
    pub(super) usage: Option<Usage>,
    pub(super) model: Option<String>,
    carry: Option<u32>,
}

/// The reasoning that came apart from the text.
#[derive(Debug, Default)]
pub(crate) struct Thoughts {
    /// The field it came in, to send it back in the same one.
    pub(super) field: Option<&'static str>,
    pub(super) whole: String,
    pub(super) details: Vec<Value>,
    pub(super) any: bool,
    /// Under the contract protocol the object may have ended up here.
    pub(super) contract: Option<Box<Contract>>,
    pub(super) is_plain: bool,
}

impl Turn {
    pub(crate) fn new(config: ReaderConfig) -> Self {
        Self {
            split: ThinkSplit::new(config.think),
            config,
            signals: Vec::new(),
            is_over: false,
            allows_torn_piece: false,
            frames: 0,
            chunks: 0,
            reason: None,
            calls: Calls::default(),
            text_calls: TextCalls::new(),
            contract: Contract::default(),
            answer: None,
            thoughts: Thoughts::default(),
            leaked: Vec::new(),
            said: false,
            refusal: String::new(),
            usage: None,
            model: None,
            carry: None,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    pub(crate) fn take_signals(&mut self) -> Vec<Signal> {
        mem::take(&mut self.signals)
    }

    pub(crate) fn chunks(&self) -> u64 {
        self.chunks
    }

    pub(crate) fn saw_finish(&self) -> bool {
        self.reason.is_some()
    }

    /// Whether anything came that belongs to a stream.
    pub(crate) fn saw_anything(&self) -> bool {
        self.frames > 0
    }

    /// The last piece of a body may be torn; that is a cut, not a malformed piece.
    pub(crate) fn allow_torn_piece(&mut self) {
        self.allows_torn_piece = true;
    }

    pub(super) fn emit(&mut self, event: ModelEvent) {
        self.signals.push(Ok(event));
    }

    pub(super) fn close(&mut self, last: Signal) {
        self.signals.push(last);
        self.is_over = true;
    }

    pub(super) fn chunk(&mut self, chunk: Chunk<'_>, payload: &str) {
        self.frames = self.frames.saturating_add(u64::from(chunk.choices.is_some()));
        self.read_usage(&chunk);
        let error = chunk.error.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let error = error.filter(is_error);
        if let Some(choices) = chunk.choices {
            self.chunks = self.chunks.saturating_add(1);
            let is_first = |choice: &Choice<'_>| choice.index.key().is_none_or(|key| key == "0");
            let native = chunk.native_finish_reason;
            if let Some(choice) = choices.0.into_iter().find(is_first) {
                self.choice(choice, &native, error.is_some());
            }
        } else if error.is_none() && chunk.object.text() == Some("error") {
            self.fail(read_error(payload));
        }
        if let Some(error) = error.filter(|_| !self.is_over) {
            self.fail(in_band(&error));
        }
    }

    fn read_usage(&mut self, chunk: &Chunk<'_>) {
        if let Some(model) = chunk.model.text() {
            self.model = Some(model.to_owned());
        }
        let usage = chunk.usage.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let Some(usage) = usage else { return };
        let (prompt, completion) =
            (tokens(&usage, "prompt_tokens"), tokens(&usage, "completion_tokens"));
        if prompt.is_some() || completion.is_some() {
            self.usage = Some(Usage {
                prompt_tokens: prompt.unwrap_or(0),
                completion_tokens: completion.unwrap_or(0),
                micro_usd: cost(&usage),
            });
        }
    }

    fn choice(&mut self, choice: Choice<'_>, native: &Loose<'_>, has_error: bool) {
        let nothing_streamed = !self.said && !self.thoughts.any && !self.calls.any_begun();
        match (choice.delta.0, choice.message.0) {
            (_, Some(message)) if nothing_streamed => self.delta(message),
            (Some(delta), _) => self.delta(delta),
            (None, _) => {}
        }
        if let Some(error) = choice.error.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
            if !has_error && is_error(&error) {
                self.fail(in_band(&error));
            }
            return;
        }
        let word = choice.finish_reason.text().unwrap_or_default().to_owned();
        let native = [choice.native_finish_reason.text(), native.text()];
        let native = native.into_iter().flatten().find(|word| Reason::read_native(word).is_some());
        let reason = if native.is_some() { Some(Reason::Error) } else { Reason::read(&word) };
        if reason == Some(Reason::Error) && !has_error {
            let word = native.unwrap_or(&word);
            let message = format!("the provider ended the reply with {word}");
            self.fail(in_words(ModelErrorKind::ProviderError, true, &message));
        } else if reason != Some(Reason::Error) {
            self.reason = self.reason.max(reason);
        }
    }

    fn delta(&mut self, delta: Delta<'_>) {
        self.reasoning(&delta);
        self.content(delta.content);
        if let Some(refusal) = delta.refusal.text() {
            self.refusal.push_str(refusal);
            self.say_text(refusal.to_owned());
        }
        for entry in delta.tool_calls.0 {
            self.entry(&entry);
        }
        if let Some(function) = delta.function_call.0 {
            let legacy = Entry { index: Loose::Text("function_call".into()), ..Entry::default() };
            self.piece(&legacy, &function);
        }
    }

    fn reasoning(&mut self, delta: &Delta<'_>) {
        let fields = [
            ("reasoning_content", &delta.reasoning_content),
            ("reasoning", &delta.reasoning),
            ("thinking", &delta.thinking),
        ];
        let found = fields.iter().find_map(|(field, value)| Some((*field, value.text()?)));
        if let Some((field, text)) = found {
            self.thoughts.field.get_or_insert(field);
            self.thoughts.whole.push_str(text);
            self.think(text);
        }
        let details =
            delta.reasoning_details.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
        let Some(Value::Array(details)) = details else { return };
        if found.is_none() && self.thoughts.field.is_none() {
            let text: String = details.iter().filter_map(detail_text).collect();
            self.think(&text);
        }
        self.thoughts.details.extend(details);
    }

    /// Hands reasoning on, unless it may be the contract's object on the wrong channel.
    fn think(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.thoughts.any = true;
        if self.config.protocol == Protocol::Native || self.thoughts.is_plain {
            self.emit(ModelEvent::Reasoning { delta: text.to_owned() });
            return;
        }
        let mut said = Vec::new();
        let contract = self.thoughts.contract.get_or_insert_default();
        contract.push(text, &mut said);
        if contract.begins_like_prose() {
            let delta = contract.prose();
            self.thoughts.is_plain = true;
            self.thoughts.contract = None;
            self.emit(ModelEvent::Reasoning { delta });
        }
        self.take_said(said);
    }

    fn content(&mut self, content: Loose<'_>) {
        match content {
            Loose::Text(text) => self.content_text(&text),
            Loose::Other(Value::Array(parts)) => parts.iter().for_each(|part| self.part(part)),
            Loose::Other(part) => self.part(&part),
            Loose::Nothing | Loose::Number(_) => {}
        }
    }

    fn part(&mut self, part: &Value) {
        let text = |key: &str| part.get(key).map(flatten).unwrap_or_default();
        match part.get("type").and_then(Value::as_str) {
            Some("thinking" | "reasoning") => {
                let thought = format!("{}{}", text("thinking"), text("reasoning"));
                self.think(&thought);
            }
            Some("text" | "output_text") => self.content_text(&text("text")),
            Some(_) => {}
            None => self.content_text(&flatten(part)),
        }
    }

    fn content_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        let joined = (self.carry.is_some() || lenient::has_lone_surrogates(text))
            .then(|| lenient::join_surrogates(text, &mut self.carry));
        let parts = self.split.push(joined.as_deref().unwrap_or(text));
        self.take_parts(parts);
    }

    pub(super) fn take_parts(&mut self, parts: Vec<Part>) {
        for part in parts {
            match part {
                Part::Text(text) => self.say(&text),
                // The same thought may come twice, as a field and in the text.
                Part::Thought(thought) if self.thoughts.field.is_none() => {
                    self.thoughts.any = true;
                    self.emit(ModelEvent::Reasoning { delta: thought });
                }
                Part::Thought(_) => {}
            }
        }
    }

    fn say(&mut self, text: &str) {
        match self.config.protocol {
            Protocol::Native => self.search(text),
            Protocol::Contract => {
                let mut said = Vec::new();
                self.contract.push(text, &mut said);
                self.take_said(said);
            }
        }
    }

    pub(super) fn search(&mut self, text: &str) {
        let mut found = Vec::new();
        self.text_calls.push(text, &self.config.tools, &mut found);
        self.take_found(found);
    }

    pub(super) fn take_found(&mut self, found: Vec<Found>) {
        for found in found {
            match found {
                Found::Text(text) => self.say_text(text),
                Found::Call((name, arguments)) => {
                    self.leaked.push((name.clone(), arguments.clone()));
                    let position = self.calls.reserve();
                    self.with_calls(|calls, tools, out| {
                        let opaque = None;
                        calls.send(ReadyCall { position, name, arguments, opaque }, tools, out);
                    });
                }
                Found::Cut { name, raw } => {
                    let position = self.calls.reserve();
                    let problem = "the call was cut off before it was complete";
                    self.with_calls(|calls, _, out| {
                        calls.report_cut(position, &name, raw, problem, out);
                    });
                }
            }
        }
    }

    fn say_text(&mut self, delta: String) {
        self.said |= !delta.trim().is_empty();
        self.emit(ModelEvent::Text { delta });
    }

    pub(super) fn take_said(&mut self, said: Vec<Said>) {
        for said in said {
            match said {
                Said::Reasoning(delta) => {
                    self.said = true;
                    self.emit(ModelEvent::Reasoning { delta });
                }
                Said::Call { place, name, arguments } => {
                    let position = self.calls.place(place);
                    self.with_calls(|calls, tools, out| {
                        let opaque = None;
                        calls.send(ReadyCall { position, name, arguments, opaque }, tools, out);
                    });
                }
                Said::Broken { place, name, raw, problem } => {
                    let position = self.calls.place(place);
                    self.with_calls(|calls, _, out| {
                        calls.report(position, &name, raw, &problem, out);
                    });
                }
            }
        }
    }

    /// Works on the calls and hands on what comes of it, except what the text already said.
    pub(super) fn with_calls(
        &mut self,
        work: impl FnOnce(&mut Calls, &super::Tools, &mut Vec<ModelEvent>),
    ) {
        let mut out = Vec::new();
        work(&mut self.calls, &self.config.tools, &mut out);
        self.signals.extend(out.into_iter().map(Ok));
    }

    fn entry(&mut self, entry: &Entry<'_>) {
        match &entry.function.0 {
            Some(function) => self.piece(entry, function),
            None => self.calls.keep_extra(entry.index.key(), extra(entry)),
        }
    }

    fn piece(&mut self, entry: &Entry<'_>, function: &Function<'_>) {
        let arguments = function.arguments.map(|raw| argument_text(raw.get()));
        let piece = Piece {
            index: entry.index.key(),
            id: entry.id.key(),
            name: function.name.text(),
            arguments,
            extra: extra(entry),
        };
        let mut out = Vec::new();
        self.calls.take(piece, &self.config.tools, &mut out);
        if self.calls.are_too_many() {
            self.malformed("the reply holds too many calls");
            return;
        }
        if self.calls.any_begun() {
            let mut found = Vec::new();
            self.text_calls.switch_off(&mut found);
            self.take_found(found);
        }
        for event in out {
            if !self.was_leaked(&event) {
                self.emit(event);
            }
        }
    }

    /// A server may stream the raw text of a call and then the call itself: it runs once.
    fn was_leaked(&mut self, event: &ModelEvent) -> bool {
        if let ModelEvent::CallStarted { name, .. } = event {
            return self.leaked.iter().any(|(leaked, _)| leaked == name);
        }
        let ModelEvent::CallReady(call) = event else { return false };
        let is_same =
            |(name, arguments): &Named| *name == call.name && *arguments == call.arguments;
        match self.leaked.iter().position(is_same) {
            Some(at) => {
                self.leaked.swap_remove(at);
                true
            }
            None => false,
        }
    }

    /// The provider failed: what is finished stays, what is open does not run.
    pub(crate) fn fail(&mut self, error: ModelError) {
        self.conclude_failed(error);
    }
}

/// A fragment of arguments: the text of a string, or a value as it stands.
fn argument_text(raw: &str) -> std::borrow::Cow<'_, str> {
    if !raw.starts_with('"') {
        return raw.into();
    }
    match serde_json::from_str(raw) {
        Ok(text) => std::borrow::Cow::Owned(text),
        Err(_) => raw.into(),
    }
}

fn extra(entry: &Entry<'_>) -> Map<String, Value> {
    let fields = [
        ("extra_content", entry.extra_content),
        ("thought_signature", entry.thought_signature),
        ("provider_specific_fields", entry.provider_specific_fields),
    ];
    let read = |(key, raw): (&str, Option<&serde_json::value::RawValue>)| {
        Some((key.to_owned(), serde_json::from_str(raw?.get()).ok()?))
    };
    fields.into_iter().filter_map(read).collect()
}

pub(super) fn read_error(payload: &str) -> ModelError {
    match lenient::parse(payload) {
        Ok(value) => in_band(&value),
        Err(_) => in_words(ModelErrorKind::ProviderError, true, payload),
    }
}

fn is_error(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Bool(true) | Value::Number(_) => true,
    }
}

fn tokens(usage: &Value, key: &str) -> Option<u64> {
    let value = usage.get(key)?;
    let rounded = || format!("{:.0}", value.as_f64().filter(|count| *count >= 0.0)?).parse().ok();
    value.as_u64().or_else(rounded)
}

/// What the provider says that the reply cost, in millionths of a dollar: `usage.cost` in dollars,
/// as gateways over several providers send it.
fn cost(usage: &Value) -> Option<u64> {
    let dollars = usage.get("cost")?.as_f64().filter(|cost| (0.0..1e9).contains(cost))?;
    format!("{:.0}", dollars * 1e6).parse().ok()
}

fn detail_text(detail: &Value) -> Option<&str> {
    detail.get("text").or_else(|| detail.get("summary"))?.as_str()
}

/// The texts inside a part, wherever they are nested.
fn flatten(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(flatten).collect(),
        Value::Object(map) => map.get("text").map(flatten).unwrap_or_default(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

//! Payloads to chunks: what is no chunk is skipped, what is nearly one is read leniently, and what
//! is lost ends the reply.

use proto::model::ModelErrorKind;
use serde_json::Value;

use super::chunk;
use super::lenient;
use super::provider_error::in_words;
use super::sse::Frame;
use super::turn::{Turn, read_error};

impl Turn {
    /// Takes a frame; answers whether a first line was used.
    pub(crate) fn frame(&mut self, frame: &Frame<'_>) -> bool {
        if self.is_over() {
            return true;
        }
        self.frames = self.frames.saturating_add(1);
        match frame {
            Frame::FirstLine { event, data } => self.first_line(event, data.trim()),
            Frame::Event { event, data } => {
                self.event(event, data.trim());
                true
            }
            Frame::ErrorLine { data } => {
                self.fail(read_error(data));
                true
            }
        }
    }

    /// A first line that is a whole document needs no wait for the end of its event.
    fn first_line(&mut self, event: &str, payload: &str) -> bool {
        if self.skip_or_end(event, payload) {
            return true;
        }
        if event == "error" || !payload.starts_with('{') {
            return false;
        }
        match chunk::parse(payload) {
            Some(chunk) => {
                self.chunk(chunk, payload);
                true
            }
            None => false,
        }
    }

    /// What is no chunk: nothing, comments that were relayed as data, pings, the end mark.
    fn skip_or_end(&mut self, event: &str, payload: &str) -> bool {
        if payload.trim_matches('"') == "[DONE]" {
            self.done();
            return true;
        }
        let is_nothing = payload.is_empty() || payload.starts_with(':') || payload == "null";
        is_nothing || matches!(event, "ping" | "keepalive" | "heartbeat")
    }

    fn event(&mut self, event: &str, payload: &str) {
        if self.skip_or_end(event, payload) {
            return;
        }
        if event == "error" {
            self.fail(read_error(payload));
            return;
        }
        if self.document_in_event(payload) {
            return;
        }
        let lines = payload.lines().map(str::trim).filter(|line| !line.is_empty());
        let mut read = 0;
        for line in lines {
            if self.is_over() {
                return;
            }
            let is_good = self.skip_or_end(event, line) || self.document_in_event(line);
            if !is_good && payload.contains('\n') {
                read = 0;
                break;
            }
            read += usize::from(is_good);
        }
        if read == 0 && !self.allows_torn_piece {
            self.malformed("a piece of the stream is not JSON");
        }
    }

    /// Takes a payload that is one JSON document, strict or nearly so.
    fn document_in_event(&mut self, payload: &str) -> bool {
        if payload.starts_with('{')
            && let Some(chunk) = chunk::parse(payload)
        {
            self.chunk(chunk, payload);
            return true;
        }
        match lenient::parse(payload) {
            Ok(value) => {
                self.value(&value);
                true
            }
            Err(_) => false,
        }
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.value(item)),
            Value::Object(_) if !self.is_over() => {
                let text = value.to_string();
                if let Some(chunk) = chunk::parse(&text) {
                    self.chunk(chunk, &text);
                }
            }
            Value::Object(_)
            | Value::Null
            | Value::Bool(_)
            | Value::Number(_)
            | Value::String(_) => {}
        }
    }

    /// Takes a document of a body that is JSON and no event stream.
    pub(crate) fn document(&mut self, text: &str) {
        let is_whole_reply = chunk::parse(text)
            .and_then(|chunk| chunk.choices)
            .is_some_and(|choices| choices.0.iter().any(|choice| choice.message.0.is_some()));
        if !self.document_in_event(text.trim()) {
            self.fail(in_words(ModelErrorKind::BadResponse, true, "the body is not JSON"));
        } else if is_whole_reply && !self.is_over() {
            self.done();
        }
    }
}

//! How a reply ends: well, with less than it wanted to say, or with an error.

use proto::agent::Protocol;
use proto::model::{Finish, ModelError, ModelErrorKind, ModelEvent, ReplyEnd};
use proto::notice::Deadline;
use serde_json::{Map, Value};

use super::EndOfBody;
use super::calls::End;
use super::contract::{Contract, Standing};
use super::finish::Reason;
use super::provider_error::in_words;
use super::turn::Turn;

const CUT: &str = "the reply was cut off before the call was complete";

impl Turn {
    /// The end mark has come.
    pub(super) fn done(&mut self) {
        self.conclude(true, None);
    }

    pub(crate) fn end_of_body(&mut self, how: &EndOfBody) {
        let words = match how {
            EndOfBody::Clean => "the body ended without a finish reason or an end mark".to_owned(),
            EndOfBody::Cut(why) => format!("the connection was lost: {why}"),
        };
        let cut = in_words(ModelErrorKind::Truncated, true, &words);
        self.conclude(self.reason.is_some(), Some(cut));
    }

    pub(crate) fn time_out(&mut self, deadline: Deadline) {
        if self.is_over() {
            return;
        }
        let words = match deadline {
            Deadline::FirstToken => "the model did not begin to answer in time",
            Deadline::Idle => "the model stopped answering",
            Deadline::Total | Deadline::Call | Deadline::Run => "the reply took too long",
        };
        let late = in_words(ModelErrorKind::Timeout(deadline), true, words);
        self.conclude(self.reason.is_some(), Some(late));
    }

    /// The body is no reply at all.
    pub(crate) fn bad_response(&mut self, retryable: bool, head: &[u8]) {
        let shown = String::from_utf8_lossy(head);
        let message = format!("the endpoint answered something that is no reply: {}", shown.trim());
        self.fail(in_words(ModelErrorKind::BadResponse, retryable, &message));
    }

    /// The body is a page for people.
    pub(crate) fn page(&mut self) {
        let words = "the endpoint answered with a page, not with a reply";
        self.fail(in_words(ModelErrorKind::BadResponse, false, words));
    }

    pub(crate) fn malformed(&mut self, what: &str) {
        if !self.is_over() {
            let why = "a piece of the stream was lost";
            self.settle(End::Cut(why), false);
            self.close(Err(in_words(ModelErrorKind::MalformedChunk, true, what)));
        }
    }

    pub(super) fn conclude_failed(&mut self, error: ModelError) {
        if !self.is_over() {
            self.settle(End::Cut(CUT), false);
            self.close(Err(error));
        }
    }

    /// Ends the reply. `lost` is the error of an end that was not clean.
    fn conclude(&mut self, is_clean: bool, lost: Option<ModelError>) {
        let is_cut = matches!(self.reason, Some(Reason::Length | Reason::ContentFilter));
        let end = if is_clean && !is_cut { End::Clean } else { End::Cut(CUT) };
        let is_contract_open = self.settle(end, is_clean && !is_cut);
        let error = match lost.filter(|_| !is_clean) {
            Some(lost) => Some(lost),
            None => self.error_of_clean_end(is_contract_open),
        };
        let outcome = match error {
            Some(error) => Err(error),
            None => Ok(ModelEvent::End(self.reply_end())),
        };
        self.close(outcome);
    }

    /// Hands on what was held back; answers whether the contract's object was left open.
    fn settle(&mut self, end: End, is_clean: bool) -> bool {
        let was_no_thought = self.split.was_no_thought();
        let mut parts = self.split.finish();
        if was_no_thought {
            parts = parts.into_iter().map(super::think::Part::into_text).collect();
        }
        self.take_parts(parts);
        let is_open = self.config.protocol == Protocol::Contract && self.settle_contract();
        let mut found = Vec::new();
        self.text_calls.finish(is_clean, &self.config.tools, &mut found);
        self.take_found(found);
        self.with_calls(|calls, tools, out| calls.finish(end, tools, out));
        is_open
    }

    fn settle_contract(&mut self) -> bool {
        let mut said = Vec::new();
        let aside = self.thoughts.contract.take();
        let mut is_open = false;
        let aside_answer = aside.as_deref().and_then(Contract::answer);
        if let Some(mut aside) = aside {
            match aside.standing() {
                Standing::Prose => {
                    let delta = aside.prose();
                    self.emit(ModelEvent::Reasoning { delta });
                }
                Standing::Open | Standing::Violated => {
                    is_open = true;
                    aside.cut(&mut said);
                }
                Standing::Closed => {}
            }
        }
        match self.contract.standing() {
            Standing::Prose => {
                let prose = self.contract.prose();
                self.search(&prose);
            }
            Standing::Open | Standing::Violated => {
                is_open = true;
                self.contract.cut(&mut said);
            }
            Standing::Closed => {}
        }
        self.take_said(said);
        if !is_open {
            self.answer = self.contract.answer().or(aside_answer);
        }
        is_open
    }

    fn error_of_clean_end(&self, is_contract_open: bool) -> Option<ModelError> {
        let ready = self.calls.ready_count();
        let is_nothing = !self.said && ready == 0;
        let is_cut = is_contract_open || self.calls.incomplete_count() > 0 || is_nothing;
        let error = |kind, retryable, words| Some(in_words(kind, retryable, words));
        match self.reason {
            Some(Reason::ContentFilter) => {
                error(ModelErrorKind::ContentFilter, false, "the provider's filter cut the reply")
            }
            Some(Reason::Length) if is_cut => {
                error(ModelErrorKind::Length, true, "the reply ran into its token limit")
            }
            _ if is_contract_open => {
                let words = "the reply is not the object that was asked for";
                error(ModelErrorKind::ContractViolation, true, words)
            }
            _ if self.text_calls.saw_unread_markup() && ready == 0 => {
                let words =
                    "the reply holds the markup of a tool call, but no call to a known tool";
                error(ModelErrorKind::ContractViolation, true, words)
            }
            _ if is_nothing && self.calls.broken_count() == 0 => {
                error(ModelErrorKind::EmptyResponse, true, "the model answered nothing")
            }
            _ => None,
        }
    }

    fn reply_end(&mut self) -> ReplyEnd {
        let wire = self.reason.and_then(Reason::finish);
        let has_calls = self.calls.ready_count() > 0;
        let finish = match wire {
            Some(Finish::Stop) | None if has_calls => Some(Finish::ToolCalls),
            other => other,
        };
        ReplyEnd {
            finish,
            usage: self.usage,
            model: self.model.take(),
            confidence: self.contract.confidence(),
            answer: self.answer.take().filter(|_| !self.calls.any_begun()),
            opaque: self.opaque(),
        }
    }

    /// What the provider wants to see again with this reply.
    fn opaque(&mut self) -> Option<Value> {
        let mut fields = Map::new();
        if let Some(field) = self.thoughts.field {
            let whole = std::mem::take(&mut self.thoughts.whole);
            fields.insert(field.to_owned(), Value::String(whole));
        }
        if !self.thoughts.details.is_empty() {
            let details = std::mem::take(&mut self.thoughts.details);
            fields.insert("reasoning_details".to_owned(), Value::Array(details));
        }
        if !self.refusal.is_empty() {
            let refusal = std::mem::take(&mut self.refusal);
            fields.insert("refusal".to_owned(), Value::String(refusal));
        }
        (!fields.is_empty()).then_some(Value::Object(fields))
    }
}

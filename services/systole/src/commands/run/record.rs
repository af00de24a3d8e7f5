//! A run as a rehearsal: what the model said becomes rules, what the tools said stand-ins, what came
//! of it the expectation. Secrets are replaced before anything is written.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use planner_core::Thread;
use planner_core::thread::{Call, Logged};
use proto::event::Event;
use proto::fact::Outcome;
use proto::ids::ToolCallId;
use serde_json::{Map, Value, json};
use tool_core::redact::{Redactor, Rules};

use crate::failure::Failure;
use crate::screen::text::{cut, one_line};
use crate::settings::Environment;

/// Endings of variables that hold secrets.
const SECRET_NAMES: [&str; 5] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASS"];
/// A shorter value may be a word that stands anywhere.
const SHORTEST_SECRET: usize = 8;

/// Nothing that is there is replaced; told before the run, not after it.
pub(super) fn check(file: &Path) -> Result<(), Failure> {
    if file.exists() {
        let why = format!("--record {}: the file is there already", file.display());
        return Err(Failure::input(why).and("Name another one, or remove it first."));
    }
    Ok(())
}

/// Writes it; answers whether there was something to write.
pub(super) fn write(
    file: &Path,
    environment: &Environment,
    (thread, finished): (&Thread, Option<&Event>),
) -> Result<bool, Failure> {
    let redactor = redactor(environment)?;
    let Some(text) = recording(&redactor, thread, finished) else { return Ok(false) };
    let wrong = |error: io::Error| Failure::other(&format!("--record {}", file.display()), error);
    let mut out = fs::File::create_new(file).map_err(wrong)?;
    out.write_all(text.as_bytes()).map_err(wrong)?;
    Ok(true)
}

/// The usual rules, and the values of variables that are secrets by their names.
fn redactor(environment: &Environment) -> Result<Redactor, Failure> {
    let secrets = environment.all().iter().filter_map(|(name, value)| {
        let (name, value) = (name.to_str()?.to_ascii_uppercase(), value.to_str()?);
        let is_secret = SECRET_NAMES.iter().any(|ending| name.ends_with(ending));
        (is_secret && value.len() >= SHORTEST_SECRET).then(|| literally(value))
    });
    let rules = Rules { patterns: secrets.collect(), ..Rules::default() };
    Redactor::new(&rules).map_err(|error| Failure::other("--record", error))
}

/// A pattern that matches exactly this text.
fn literally(text: &str) -> String {
    let escaped = text.chars().flat_map(|c| {
        let mark = (c.is_ascii_punctuation()).then_some('\\');
        mark.into_iter().chain([c])
    });
    escaped.collect()
}

/// What is written, if the thread's newest run was answered.
fn recording(redactor: &Redactor, thread: &Thread, finished: Option<&Event>) -> Option<String> {
    let Some(Event::RunFinished { run, outcome: Outcome::Answered, answer, .. }) = finished else {
        return None;
    };
    let record = Record { redactor, thread, run: *run };
    let input = record.input()?;
    let name = cut(&one_line(&redactor.redact(input)), 60);
    let (rules, made) = (record.rules(), record.made());
    let mut text = String::from(
        "# Recorded by `systole run --record`; secrets are replaced. docs/rehearsals.md explains the\n\
         # fields. `systole rehearse AGENT THIS_FILE` plays it.\nrules:\n",
    );
    for rule in rules {
        text.push_str(&block(&rule, 2));
    }
    let expect = json!({
        "outcome": "answered",
        "calls": made.iter().map(|call| record.expected(call)).collect::<Vec<Value>>(),
        "answer": redactor.redact(answer.trim_end()),
    });
    let mut case =
        vec![("name", Value::from(name)), ("input", Value::from(redactor.redact(input)))];
    let steers = record.steers();
    if !steers.is_empty() {
        case.push(("steer", Value::Array(steers)));
    }
    case.push(("approve", json!(record.approved())));
    case.push(("tools", record.stand_ins(&made)));
    case.push(("expect", expect));
    text.push_str("cases:\n");
    text.push_str(&block(&case, 2));
    Some(text)
}

/// A field and its value.
type Field = (&'static str, Value);

struct Record<'a> {
    redactor: &'a Redactor,
    thread: &'a Thread,
    run: u32,
}

impl<'a> Record<'a> {
    fn input(&self) -> Option<&'a str> {
        self.said().next().map(|(_, text)| text)
    }

    /// What the user said, each with the number of turns before it.
    fn said(&self) -> impl Iterator<Item = (u32, &'a str)> {
        let (mut turns, number) = (0_u32, self.run);
        self.thread.log.iter().filter_map(move |logged| match logged {
            Logged::User { run, text } if *run == number => Some((turns, text.as_str())),
            Logged::Turn { run, .. } if *run == number => {
                turns = turns.saturating_add(1);
                None
            }
            Logged::User { .. } | Logged::Note { .. } | Logged::Turn { .. } => None,
        })
    }

    /// All but the first words: a turn reads what came during the one before it.
    fn steers(&self) -> Vec<Value> {
        let later = self.said().skip(1);
        later
            .map(|(during, text)| json!({"during": during, "text": self.redactor.redact(text)}))
            .collect()
    }

    /// When the reply with this number is given. Words that come later begin no new count.
    fn when(&self, turn: usize) -> Value {
        if self.said().nth(1).is_some() {
            json!({"turn": turn, "since": "start"})
        } else {
            json!({"turn": turn})
        }
    }

    /// One rule a turn.
    fn rules(&self) -> Vec<Vec<Field>> {
        let turns = self.thread.log.iter().filter_map(|logged| match logged {
            Logged::Turn { run, text, reasoning, calls, .. } if *run == self.run => {
                Some((text, reasoning, calls))
            }
            Logged::Turn { .. } | Logged::User { .. } | Logged::Note { .. } => None,
        });
        let rules = turns.enumerate().map(|(index, (text, reasoning, calls))| {
            let words = |text: &str| self.template(&Value::from(text));
            let mut rule = vec![("when", self.when(index.saturating_add(1)))];
            if !reasoning.is_empty() {
                rule.push(("reasoning", words(reasoning)));
            }
            if !text.is_empty() || calls.is_empty() {
                rule.push(("say", words(text)));
            }
            if !calls.is_empty() {
                rule.push(("calls", self.calls_of(calls)));
            }
            rule
        });
        rules.collect()
    }

    fn calls_of(&self, ids: &[ToolCallId]) -> Value {
        let calls = ids.iter().filter_map(|id| self.thread.calls.get(id));
        calls
            .map(|call| {
                let arguments = Value::Object(call.requested.arguments.clone());
                json!({"tool": call.requested.tool, "arguments": self.template(&arguments)})
            })
            .collect()
    }

    /// The run's calls, in the order of the replies.
    fn made(&self) -> Vec<&'a Call> {
        let mut made: Vec<&Call> =
            self.thread.calls.values().filter(|call| call.run == self.run).collect();
        made.sort_by_key(|call| (call.turn, call.position));
        made
    }

    fn approved(&self) -> Vec<&'a str> {
        let approved = self.made().into_iter().filter(|call| {
            call.decision.as_ref().is_some_and(|decision| decision.approve)
                || call.dispatched.as_ref().is_some_and(|sent| sent.approved.is_some())
        });
        let mut names: Vec<&str> = approved.map(|call| call.requested.tool.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Answers of the calls that reached a worker; the others are answered again in the same way.
    fn stand_ins(&self, made: &[&Call]) -> Value {
        let mut tools = Map::new();
        for call in made.iter().filter(|call| call.dispatched.is_some()) {
            let Some(seen) = &call.closed else { continue };
            let says = if seen.code.is_none() { "says" } else { "fails" };
            let content = self.redactor.redact(&seen.content);
            let stand_in = json!({"arguments": self.tests(call), says: content});
            let answers =
                tools.entry(call.requested.tool.clone()).or_insert_with(|| Value::Array(vec![]));
            if let Value::Array(answers) = answers {
                answers.push(stand_in);
            }
        }
        Value::Object(tools)
    }

    fn expected(&self, call: &Call) -> Value {
        let failed = call.closed.as_ref().and_then(|seen| seen.code);
        let code = match failed {
            None => "ok",
            // A stand-in fails in one way only.
            Some(_) if call.dispatched.is_some() => "tool_failed",
            Some(code) => code.as_str(),
        };
        json!({"tool": call.requested.tool, "arguments": self.tests(call), "code": code})
    }

    fn tests(&self, call: &Call) -> Value {
        let arguments = call.requested.arguments.iter();
        let tests = arguments.map(|(name, value)| {
            (name.clone(), json!({"equals": redacted(self.redactor, Some(name), value)}))
        });
        Value::Object(tests.collect())
    }

    /// Redacted, and with its braces written so that they are no holes.
    fn template(&self, value: &Value) -> Value {
        escaped(&redacted(self.redactor, None, value))
    }
}

/// A value without its secrets; the name of a field may be what tells that one is there.
fn redacted(redactor: &Redactor, name: Option<&str>, value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(redacted_text(redactor, name, text)),
        Value::Array(items) => items.iter().map(|item| redacted(redactor, name, item)).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields =
                fields.map(|(name, value)| (name.clone(), redacted(redactor, Some(name), value)));
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn redacted_text(redactor: &Redactor, name: Option<&str>, text: &str) -> String {
    let plain = redactor.redact(text);
    let Some(name) = name else { return plain };
    let pair = json!({name: text}).to_string();
    let clean = redactor.redact(&pair);
    if clean == pair {
        return plain;
    }
    let read: Option<Map<String, Value>> = serde_json::from_str(&clean).ok();
    let value = read.and_then(|mut read| read.remove(name));
    value
        .and_then(|value| value.as_str().map(str::to_owned))
        .unwrap_or_else(|| "[redacted]".to_owned())
}

fn escaped(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace("{{", "{{open}}")),
        Value::Array(items) => items.iter().map(escaped).collect(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), escaped(value)));
            Value::Object(fields.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// An item of a list as YAML: its fields one a line, what is in them as JSON, which is YAML too.
fn block(fields: &[Field], indent: usize) -> String {
    let margin = " ".repeat(indent);
    let lines = fields.iter().enumerate().map(|(index, (name, value))| {
        let mark = if index == 0 { "- " } else { "  " };
        format!("{margin}{mark}{name}:{}\n", below(value, indent.saturating_add(4)))
    });
    lines.collect()
}

fn below(value: &Value, indent: usize) -> String {
    let margin = " ".repeat(indent);
    match value {
        Value::Array(items) if items.iter().any(Value::is_object) => {
            let lines = items.iter().map(|item| format!("\n{margin}- {item}"));
            lines.collect()
        }
        Value::Object(fields) if fields.values().any(Value::is_array) => {
            let lines = fields.iter().map(|(name, field)| {
                let name = Value::from(name.as_str());
                format!("\n{margin}{name}:{}", below(field, indent.saturating_add(2)))
            });
            lines.collect()
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => format!(" {value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redactor_with(name: &str, value: &str) -> Redactor {
        redactor(&Environment::default().with(name, value)).unwrap()
    }

    #[test]
    fn secrets_are_found_by_their_form_by_their_name_and_by_their_variable() {
        let redactor = redactor_with("CRM_API_TOKEN", "a.b*c-long");
        let value = json!({
            "note": "key sk-abcdefghijklmnop1234", "password": "hunter2 x", "list": ["a.b*c-long"],
            "plain": "words {{x}}", "n": 3,
        });
        let clean = escaped(&redacted(&redactor, None, &value));
        assert_eq!(
            clean,
            json!({
                "note": "key [redacted token 1]", "password": "[redacted secret 1]",
                "list": ["[redacted value 1]"], "plain": "words {{open}}x}}", "n": 3,
            })
        );
    }

    #[test]
    fn an_item_is_yaml_that_reads_back() {
        let item = [
            ("name", json!("a: b")),
            ("input", json!("two\nlines # \"x\"")),
            ("approve", json!([])),
            ("tools", json!({"t": [{"says": "- {x}"}]})),
            ("expect", json!({"outcome": "answered", "calls": [{"tool": "t"}]})),
        ];
        let text = format!("cases:\n{}", block(&item, 2));
        let node = definitions::yaml::read("r.yaml", &text).unwrap();
        let item: Map<String, Value> =
            item.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        assert_eq!(node.to_json(), json!({"cases": [item]}));
    }
}

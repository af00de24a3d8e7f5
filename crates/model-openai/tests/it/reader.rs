//! Stories: chunks of a reply in, events out. Each provider habit has one.

mod calls;
mod contract;
mod ends;
mod leaked;

use expect_test::{Expect, expect};
use model_openai::reader::{EndOfBody, Reader, ReaderConfig, Signal, Think, Tools};
use proto::agent::Protocol;
use proto::model::{ModelError, ModelEvent};

/// A reader that knows the tools `dig`, `fill`, `fill_all` and `tick`.
pub(crate) fn reader(protocol: Protocol) -> Reader {
    let tools = Tools::named(["dig", "fill", "fill_all", "tick"]);
    Reader::new(ReaderConfig { protocol, tools, think: Think::Tagged })
}

/// Signals as lines, neighbouring pieces of text joined.
pub(crate) fn shown(signals: Vec<Signal>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for signal in signals {
        let line = line(signal);
        let joins = ["text ", "thinks "].iter().find(|kind| line.starts_with(**kind));
        match (joins, lines.last_mut()) {
            (Some(kind), Some(last)) if last.starts_with(kind) => {
                last.push_str(&line[kind.len()..]);
            }
            _ => lines.push(line),
        }
    }
    lines.push(String::new());
    lines.iter().map(|line| line.replace('\n', "⏎")).collect::<Vec<_>>().join("\n")
}

fn line(signal: Signal) -> String {
    match signal {
        Ok(ModelEvent::Text { delta }) => format!("text {delta}"),
        Ok(ModelEvent::Reasoning { delta }) => format!("thinks {delta}"),
        Ok(ModelEvent::CallStarted { position, name }) => format!("begins {position} {name}"),
        Ok(ModelEvent::CallReady(call)) => {
            let opaque = call.opaque.map(|opaque| format!(" with {opaque}")).unwrap_or_default();
            let arguments = serde_json::Value::Object(call.arguments);
            format!("calls {} {}({arguments}){opaque}", call.position, call.name)
        }
        Ok(ModelEvent::CallBroken(call)) => {
            format!("broken {} {} {:?}: {}", call.position, call.name, call.raw, call.problem)
        }
        Ok(ModelEvent::End(end)) => {
            let opaque = end.opaque.map(|opaque| format!(" with {opaque}")).unwrap_or_default();
            let answer = end.answer.map(|answer| format!(" answer {answer}")).unwrap_or_default();
            format!("end {:?}{opaque}{answer}", end.finish)
        }
        Err(ModelError { kind, retryable, message, .. }) => {
            format!("{kind:?} retryable={retryable}: {message}")
        }
    }
}

/// A line per event: a delta, `finish WORD`, or a payload as it is.
fn body(lines: &str) -> String {
    let event = |line: &str| {
        let payload = match line.split_once(' ') {
            Some(("finish", word)) => {
                format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{word}"}}]}}"#)
            }
            Some(("delta", delta)) => format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#),
            Some(("call", call)) => {
                format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{call}]}}}}]}}"#)
            }
            Some(("say", text)) => {
                let text = serde_json::Value::from(text.replace('⏎', "\n"));
                format!(r#"{{"choices":[{{"index":0,"delta":{{"content":{text}}}}}]}}"#)
            }
            _ => line.to_owned(),
        };
        format!("data: {payload}\n\n")
    };
    lines.lines().map(str::trim_start).filter(|line| !line.is_empty()).map(event).collect()
}

fn read(protocol: Protocol, lines: &str) -> String {
    let mut reader = reader(protocol);
    let mut signals = reader.push(body(lines).as_bytes());
    signals.extend(reader.end(&EndOfBody::Clean));
    shown(signals)
}

#[expect(clippy::needless_pass_by_value, reason = "expect! makes values")]
fn check(lines: &str, expected: Expect) {
    expected.assert_eq(&read(Protocol::Native, lines));
}

#[expect(clippy::needless_pass_by_value, reason = "expect! makes values")]
fn check_contract(lines: &str, expected: Expect) {
    expected.assert_eq(&read(Protocol::Contract, lines));
}

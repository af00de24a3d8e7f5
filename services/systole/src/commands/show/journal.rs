//! Every record of a thread, one a line.

use std::sync::Arc;

use ports::journal::{Journal, Stored};
use proto::call::Start;
use proto::envelope::Envelope;
use proto::fact::Fact;
use proto::hash::canonical;
use proto::ids::{Sequence, ThreadRef};
use proto::input::InputBody;
use proto::observation::Observation;
use proto::record::Record;
use proto::time::Timestamp;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::screen::call_line::receipt_words;
use crate::screen::style::{Palette, Tone};
use crate::screen::text::{cut, one_line};

/// The longest detail.
const DETAIL: usize = 110;

/// The journal.
pub(super) async fn text(
    journal: &Arc<dyn Journal>,
    place: &ThreadRef,
    json: bool,
    palette: Palette,
) -> Result<String, Failure> {
    let records = journal.read(place, Sequence::NONE, Sequence::NONE).await?;
    let line = |stored: &Stored| if json { as_json(stored) } else { as_text(stored, palette) };
    let lines: Vec<String> = records.iter().map(line).collect();
    Ok(lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect())
}

fn as_json(stored: &Stored) -> String {
    let envelope: Value = serde_json::from_slice(&stored.payload)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&stored.payload).into_owned()));
    let value = json!({
        "sequence": stored.sequence,
        "at": stored.at,
        "subject": stored.subject.to_string(),
        "envelope": envelope,
    });
    value.to_string()
}

fn as_text(stored: &Stored, palette: Palette) -> String {
    let (kind, detail) = match Envelope::decode(&stored.payload) {
        Ok(envelope) => described(&envelope.body),
        Err(error) => ("unreadable".to_owned(), error.to_string()),
    };
    let tone = if kind == "unreadable" { Tone::Bad } else { Tone::Strong };
    format!(
        "{:>5}  {}  {}  {}",
        stored.sequence.0,
        palette.paint(Tone::Faint, &clock(stored.at)),
        palette.paint(tone, &format!("{kind:<14}")),
        cut(&one_line(&detail), DETAIL)
    )
}

/// In UTC, so that hosts can be compared.
fn clock(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(time) => time.strftime("%F %T%.3f").to_string(),
        Err(_) => at.to_string(),
    }
}

fn described(record: &Record) -> (String, String) {
    match record {
        Record::Input(input) => input_line(&input.body),
        Record::Fact(fact) => fact_line(fact),
        Record::ToolCall(call) => {
            let arguments = canonical(&Value::Object(call.arguments.clone()));
            (format!("call {}", call.tool_call_id), format!("{} {arguments}", call.tool))
        }
        Record::Start(Start::Started(start)) => {
            let detail = format!("attempt {} on {} by {}", start.attempt, start.host, start.worker);
            (format!("start {}", start.tool_call_id), detail)
        }
        Record::Start(Start::Barred(bar)) => {
            (format!("bar {}", bar.tool_call_id), "it never starts".to_owned())
        }
        Record::Start(Start::Held(hold)) => {
            let state = match &hold.holder {
                Some(by) => format!("held by {} for call {}", by.worker, by.tool_call_id),
                None => "free".to_owned(),
            };
            (format!("resource {}", hold.resource), state)
        }
        Record::Observation(observation) => observation_line(observation),
        Record::Tick => ("tick".to_owned(), "a deadline was reached".to_owned()),
    }
}

fn input_line(body: &InputBody) -> (String, String) {
    let (kind, detail) = match body {
        InputBody::Message(message) => ("message", message.text.clone()),
        InputBody::Steer(message) => ("steer", message.text.clone()),
        InputBody::Interrupt(message) => ("interrupt", message.text.clone()),
        InputBody::Cancel { reason } => ("cancel", reason.clone()),
        InputBody::Decision(decision) => {
            let word = if decision.approve { "approved" } else { "denied" };
            let detail =
                format!("{} {word} by {} {}", decision.tool_call_id, decision.by, decision.note);
            ("decision", detail)
        }
    };
    (kind.to_owned(), detail)
}

fn observation_line(observation: &Observation) -> (String, String) {
    let verdict = observation.code.map_or("ok", proto::error_code::ErrorCode::as_str);
    let receipt = observation.receipt.map(|receipt| format!(" ({})", receipt_words(receipt)));
    let detail = format!("{verdict}{}: {}", receipt.unwrap_or_default(), observation.content);
    (format!("obs {}", observation.tool_call_id), detail)
}

fn fact_line(fact: &Fact) -> (String, String) {
    match fact {
        Fact::TurnStarted(turn) => {
            let detail = format!(
                "run {} turn {} start {}, seen {}",
                turn.run, turn.turn, turn.start, turn.seen
            );
            ("turn started".to_owned(), detail)
        }
        Fact::TurnCompleted(turn) => {
            let detail = format!("turn {}, {} calls: {}", turn.turn, turn.calls.len(), turn.text);
            ("turn completed".to_owned(), detail)
        }
        Fact::TurnSealed(turn) => {
            let detail = format!("turn {}, {} calls: {}", turn.turn, turn.calls.len(), turn.text);
            ("turn sealed".to_owned(), detail)
        }
        Fact::CallClosed { observation } => {
            let (_, detail) = observation_line(observation);
            (format!("close {}", observation.tool_call_id), detail)
        }
        Fact::ApprovalAsked(asked) => {
            (format!("ask {}", asked.tool_call_id), format!("approval of {}", asked.tool))
        }
        Fact::RunFinished(run) => {
            let outcome = crate::screen::summary::outcome_word(run.outcome);
            ("run finished".to_owned(), format!("run {} {outcome}: {}", run.run, run.answer))
        }
        Fact::Parked { sequence, why } => {
            ("parked".to_owned(), format!("record {sequence}: {why}"))
        }
        Fact::Checkpoint(checkpoint) => {
            let (folded, runs) = (checkpoint.standing.folded, checkpoint.standing.runs);
            let detail = format!("{runs} runs; records up to {folded} are kept as a state only");
            ("checkpoint".to_owned(), detail)
        }
        Fact::Restored(restored) => {
            let (again, doubts) = (restored.again.len(), restored.doubts.len());
            let detail = format!(
                "what was known after record {}: {again} calls made again, {doubts} in doubt",
                restored.after
            );
            ("restored".to_owned(), detail)
        }
    }
}

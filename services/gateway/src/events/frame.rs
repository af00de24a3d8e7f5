//! Server-sent events as bytes. JSON has no line breaks, so each event is one `data` line.

use bytes::Bytes;
use proto::event::{Event, ThreadEvent};
use serde::Serialize;
use serde_json::{Value, json};

use super::id::EventId;
use crate::problem::Problem;

/// How soon a reader that lost its connection comes back, in milliseconds.
const RETRY: u32 = 1000;

/// One event of a thread; the last one of a record carries its id.
pub(crate) fn event(told: &ThreadEvent, id: Option<&EventId>) -> Bytes {
    frame(name(&told.event), id.map(ToString::to_string).as_deref(), told)
}

/// The first words.
pub(crate) fn hello() -> Bytes {
    Bytes::from(format!("retry: {RETRY}\n\n"))
}

/// What was read before is not there any more: all that is left follows. Takes the reader's last
/// id away.
pub(crate) fn reset(why: &str) -> Bytes {
    frame("reset", Some(""), &json!({ "type": "reset", "why": why }))
}

/// The reader was too slow for some live text.
pub(crate) fn lagged(missed: &Value) -> Bytes {
    frame("lagged", None, missed)
}

/// Why the stream ends.
pub(crate) fn failed(problem: &Problem) -> Bytes {
    frame("error", None, &problem.as_json())
}

/// A sign of life.
pub(crate) fn still_here() -> Bytes {
    Bytes::from_static(b": still here\n\n")
}

/// The last words of a gateway that is being stopped.
pub(crate) fn farewell() -> Bytes {
    Bytes::from(format!(": the gateway is being stopped, come back\nretry: {RETRY}\n\n"))
}

fn frame(name: &str, id: Option<&str>, data: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(data)
        .unwrap_or_else(|_| unreachable!("events have string keys only"));
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    Bytes::from(format!("{id}event: {name}\ndata: {data}\n\n"))
}

/// The same word as in the event's field `type`.
fn name(event: &Event) -> &'static str {
    match event {
        Event::Input { .. } => "input",
        Event::TurnStarted { .. } => "turn_started",
        Event::Phase { .. } => "phase",
        Event::Delta { .. } => "delta",
        Event::DeadlinePassed { .. } => "deadline_passed",
        Event::Waiting { .. } => "waiting",
        Event::WithoutMemory { .. } => "without_memory",
        Event::TurnCompleted { .. } => "turn_completed",
        Event::TurnSealed { .. } => "turn_sealed",
        Event::ToolCall { .. } => "tool_call",
        Event::ToolStarted { .. } => "tool_started",
        Event::ToolBarred { .. } => "tool_barred",
        Event::Observation { .. } => "observation",
        Event::ApprovalAsked { .. } => "approval_asked",
        Event::RunFinished { .. } => "run_finished",
        Event::Parked { .. } => "parked",
        Event::Restored { .. } => "restored",
        Event::Checkpoint { .. } => "checkpoint",
    }
}

#[cfg(test)]
mod tests {
    use proto::ids::{Nonce, Sequence, ThreadId};

    use super::*;

    #[test]
    fn an_event_is_one_line_of_data_under_its_own_name() {
        let text = "one\ntwo\r\nthree\u{2028}".to_owned();
        let event = Event::Input { input: "message".to_owned(), text };
        let thread = ThreadId::from_parts(1, 2);
        let told = ThreadEvent { thread, sequence: Sequence(3), at: None, event };
        let id = EventId::new(Sequence(3), &Nonce::new("0a1b2c3d4e5f6071").unwrap());
        let bytes = super::event(&told, Some(&id));
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let lines: Vec<_> = text.split('\n').collect();
        assert_eq!(lines[..2], ["id: 3-0a1b2c3d", "event: input"]);
        let data: ThreadEvent =
            serde_json::from_str(lines[2].strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!((data, &lines[3..]), (told, ["", ""].as_slice()));
    }
}

//! Records as lines of a story.

use ports::journal::Stored;
use proto::call::Start;
use proto::envelope::Envelope;
use proto::fact::Fact;
use proto::ids::ThreadRef;
use proto::input::InputBody;
use proto::record::Record;

/// A record in one line.
pub fn of(stored: &Stored) -> String {
    let what = match Envelope::decode(&stored.payload) {
        Ok(envelope) => record(&envelope.body),
        Err(error) => format!("unreadable: {error}"),
    };
    format!("{} #{} {what}", thread(&stored.subject.thread), stored.sequence)
}

/// The last letters of a thread's name.
pub fn thread(place: &ThreadRef) -> String {
    let name = place.thread.to_string();
    name.chars().skip(name.len().saturating_sub(2)).collect()
}

fn record(record: &Record) -> String {
    match record {
        Record::Input(input) => match &input.body {
            InputBody::Message(message) => format!("message {}: {}", input.key, message.text),
            InputBody::Steer(message) => format!("steer {}: {}", input.key, message.text),
            InputBody::Interrupt(message) => format!("interrupt {}: {}", input.key, message.text),
            InputBody::Cancel { .. } => format!("cancel {}", input.key),
            InputBody::Decision(word) => format!("decision {} {}", word.tool_call_id, word.approve),
        },
        Record::Fact(said) => fact(said),
        Record::ToolCall(call) => format!("tool_call {} {}", call.tool, call.tool_call_id),
        Record::Start(Start::Started(start)) => {
            format!("start {} attempt {} by {}", start.tool_call_id, start.attempt, start.worker)
        }
        Record::Start(Start::Barred(bar)) => format!("bar {} by {}", bar.tool_call_id, bar.by),
        Record::Start(Start::Held(hold)) => format!("hold {} {:?}", hold.resource, hold.holder),
        Record::Observation(seen) => {
            let (id, code) = (&seen.tool_call_id, seen.code);
            format!("observation {id} attempt {} {code:?} {:?}", seen.attempt, seen.receipt)
        }
        Record::Tick => "tick".to_owned(),
    }
}

fn fact(fact: &Fact) -> String {
    match fact {
        Fact::TurnStarted(turn) => format!(
            "turn_started {}.{} start {} by {} held_by {} seen {}",
            turn.run, turn.turn, turn.start, turn.owner, turn.held_by, turn.seen
        ),
        Fact::TurnCompleted(turn) => format!(
            "turn_completed {}.{} calls {:?}",
            turn.run,
            turn.turn,
            turn.calls.iter().map(|call| call.tool_call_id.as_str()).collect::<Vec<_>>()
        ),
        Fact::TurnSealed(turn) => format!(
            "turn_sealed {}.{} {:?} calls {:?}",
            turn.run,
            turn.turn,
            turn.why,
            turn.calls.iter().map(|call| call.tool_call_id.as_str()).collect::<Vec<_>>()
        ),
        Fact::CallClosed { observation } => format!(
            "call_closed {} {:?} {:?}",
            observation.tool_call_id, observation.code, observation.receipt
        ),
        Fact::ApprovalAsked(asked) => format!("approval_asked {}", asked.tool_call_id),
        Fact::RunFinished(end) => format!(
            "run_finished {} {:?} {:?} {:?} seen {}",
            end.run, end.outcome, end.reason, end.code, end.seen
        ),
        Fact::Parked { sequence, why } => format!("parked {sequence}: {why}"),
        Fact::Checkpoint(c) => format!("checkpoint {:?}", c.standing),
        Fact::Restored(r) => format!(
            "restored after {} again {:?} doubts {:?} standing {:?}",
            r.after, r.again, r.doubts, r.standing
        ),
    }
}

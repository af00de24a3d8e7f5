//! `POST /v1/threads/{thread}/approvals/{call}`: a person's word on one call.

use axum::Json;
use axum::extract::{Path, Request, State};
use proto::error_code::ErrorCode;
use proto::ids::{ArgumentsHash, Fingerprint, InputKey, ThreadRef, ToolCallId};
use proto::input::{Decision, InputBody};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::body;
use crate::caller::Caller;
use crate::gateway::App;
use crate::inputs::{Offer, accept, choose_key, thread_id};
use crate::problem::Problem;
use crate::reading::Reading;

/// The longest note, and the longest name of who decided.
const LONGEST: usize = 4096;

/// A person's word.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewDecision {
    /// Whether the call may be made.
    approve: bool,
    /// What the person was shown.
    arguments_hash: ArgumentsHash,
    /// The tool that the person was shown; not compared when it is left out.
    #[serde(default)]
    fingerprint: Option<Fingerprint>,
    /// Who decided.
    #[serde(default)]
    by: Option<String>,
    /// Why; the model reads it when the call is denied.
    #[serde(default)]
    note: String,
    /// The idempotency key, if it is not in the header.
    #[serde(default)]
    key: Option<InputKey>,
}

pub(crate) async fn post(
    State(app): State<App>,
    caller: Caller,
    Path((thread, call)): Path<(String, String)>,
    request: Request,
) -> Result<Json<Value>, Problem> {
    let place = app.place(&caller.tenant, thread_id(&thread)?);
    let fix = "Use the id that the event `approval_asked` named.";
    let call: ToolCallId = call.parse().map_err(|error| Problem::input(format!("{error}"), fix))?;
    let new: NewDecision = body::read(&app, request).await?;
    let by = new.by.unwrap_or_else(|| format!("tenant {}", caller.tenant));
    if new.note.len() > LONGEST || by.len() > LONGEST {
        return Err(Problem::input("`note` or `by` is longer than 4096 bytes", "Say it shorter."));
    }
    let decision = Decision {
        tool_call_id: call,
        approve: new.approve,
        arguments_hash: new.arguments_hash,
        fingerprint: new.fingerprint,
        by,
        note: new.note,
    };
    let key = choose_key(&app, caller.key, new.key)?;
    let traceparent = caller.traceparent;
    app.in_time(decide(&app, place, key, decision, traceparent)).await.map(Json)
}

async fn decide(
    app: &App,
    place: ThreadRef,
    key: InputKey,
    decision: Decision,
    traceparent: Option<String>,
) -> Result<Value, Problem> {
    let before = Reading::find(app, &place).await?;
    if let Some(approve) = decided(&before, &decision)? {
        return answer(&place, &decision, approve);
    }
    let body = InputBody::Decision(decision.clone());
    let offer = Offer { place, key, body, traceparent, only_at_rest: false };
    let accepted = accept(app, &offer).await?;
    // Another word may have been first.
    let after = Reading::load(app, &offer.place, accepted.sequence).await?;
    let approve = decided(&after, &decision)?.unwrap_or(decision.approve);
    answer(&offer.place, &decision, approve)
}

/// What was decided; `None` while the call waits for a word like this one.
fn decided(reading: &Reading, decision: &Decision) -> Result<Option<bool>, Problem> {
    let id = &decision.tool_call_id;
    let Some(call) = reading.thread.calls.get(id) else {
        let fix = "Use the id that the event `approval_asked` named.";
        return Err(Problem::not_found(format!("the thread has no call {id}"), fix));
    };
    if let Some(decision) = &call.decision {
        return Ok(Some(decision.approve));
    }
    let (None, Some(asked)) = (&call.closed, &call.asked) else {
        return Err(not_waiting(format!("the call {id} does not wait for a decision")));
    };
    let other_tool = decision.fingerprint.as_ref().is_some_and(|shown| *shown != asked.fingerprint);
    if asked.arguments_hash != decision.arguments_hash || other_tool {
        let name = if other_tool { "fingerprint" } else { "arguments_hash" };
        let message = format!("`{name}` is not that of the call: something else was shown");
        return Err(Problem::conflict(
            ErrorCode::NotWaiting,
            message,
            "Show the call as it is now and decide again.",
        ));
    }
    Ok(None)
}

fn not_waiting(message: String) -> Problem {
    let fix = "GET /v1/threads/{thread} tells which calls wait.";
    Problem::conflict(ErrorCode::NotWaiting, message, fix)
}

fn answer(place: &ThreadRef, decision: &Decision, approve: bool) -> Result<Value, Problem> {
    if approve != decision.approve {
        let word = if approve { "approved" } else { "denied" };
        let id = &decision.tool_call_id;
        return Err(not_waiting(format!("the call {id} was {word} before")));
    }
    let call = &decision.tool_call_id;
    Ok(json!({ "thread": place.thread, "tool_call_id": call, "approve": approve }))
}

//! `POST /v1/threads/{thread}/cancel`: stops the run and answers with receipts.

use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use planner_core::thread::Call;
use proto::ids::{InputKey, Sequence, ThreadRef};
use proto::input::InputBody;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::body;
use crate::caller::Caller;
use crate::gateway::App;
use crate::inputs::{Offer, accept, choose_key, thread_id};
use crate::problem::Problem;
use crate::reading::Reading;

/// The longest that a cancel waits.
const LONGEST_WAIT: Duration = Duration::from_mins(1);
/// Between two looks at the thread.
const PAUSE: Duration = Duration::from_millis(50);
/// The longest reason.
const LONGEST_REASON: usize = 4096;

/// A wish to stop.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct NewCancel {
    /// Why, for people.
    reason: String,
    /// How long to wait for the end of the run.
    wait_ms: Option<u64>,
    /// The idempotency key, if it is not in the header.
    key: Option<InputKey>,
}

pub(crate) async fn post(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let place = app.place(&caller.tenant, thread_id(&thread)?);
    let NewCancel { reason, wait_ms, key } = body::read_or_default(&app, request).await?;
    if reason.len() > LONGEST_REASON {
        return Err(Problem::input("`reason` is longer than 4096 bytes", "Say it in a sentence."));
    }
    let key = choose_key(&app, caller.key, key)?;
    let before = app.in_time(Reading::find(&app, &place)).await?;
    if before.thread.is_at_rest() && !before.inputs.contains_key(&key) {
        return Ok(Json(receipt(&before, None)).into_response());
    }
    let body = InputBody::Cancel { reason };
    let (traceparent, only_at_rest) = (caller.traceparent, false);
    let offer = Offer { place, key, body, traceparent, only_at_rest };
    let accepted = app.in_time(accept(&app, &offer)).await?;
    let wait = wait_ms.map_or(app.settings.cancel_wait, Duration::from_millis).min(LONGEST_WAIT);
    let (reading, run) = until_over(&app, &offer.place, accepted.sequence, wait).await?;
    let is_over = reading.ends.contains_key(&run);
    let status = if is_over { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(receipt(&reading, Some(run)))).into_response())
}

/// Reads until the run that the cancel means is over, or time is.
async fn until_over(
    app: &App,
    place: &ThreadRef,
    cancel: Sequence,
    wait: Duration,
) -> Result<(Reading, u32), Problem> {
    let deadline = tokio::time::Instant::now() + wait;
    loop {
        let reading = app.in_time(Reading::load(app, place, cancel)).await?;
        let run = meant(&reading, cancel);
        if reading.ends.contains_key(&run) || tokio::time::Instant::now() >= deadline {
            return Ok((reading, run));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The first run that did not end before the cancel.
fn meant(reading: &Reading, cancel: Sequence) -> u32 {
    let ended_before = reading.ends.values().filter(|end| end.sequence < cancel).count();
    u32::try_from(ended_before).unwrap_or(u32::MAX).saturating_add(1)
}

fn receipt(reading: &Reading, run: Option<u32>) -> Value {
    let thread = reading.thread.place.thread;
    let Some(run) = run else {
        return json!({ "thread": thread, "cancelled": false, "state": "at_rest", "calls": [] });
    };
    let finished = reading.ends.get(&run);
    let state = if finished.is_some() { "ended" } else { "stopping" };
    let calls: Vec<Value> = reading.thread.receipts(run).into_iter().map(call).collect();
    json!({
        "thread": thread,
        "cancelled": true,
        "state": state,
        "run": run,
        "calls": calls,
        "finished": finished.map(|told| &told.event),
    })
}

fn call(call: &Call) -> Value {
    let closed = call.closed.as_ref();
    json!({
        "tool_call_id": call.id(),
        "tool": call.requested.tool,
        "code": closed.and_then(|closed| closed.code),
        "receipt": closed.and_then(|closed| closed.receipt),
    })
}

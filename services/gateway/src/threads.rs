//! `POST /v1/threads` and `GET /v1/threads/{thread}`.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use planner_core::phase::phase;
use planner_core::thread::{Call, StartState};
use proto::hash::sha256_hex;
use proto::ids::{AgentName, InputKey, TenantId, ThreadId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::body;
use crate::caller::Caller;
use crate::events::id::EventId;
use crate::gateway::App;
use crate::inputs::{Mode, NewInput, Offer, accept, check_agent, choose_key, thread_id};
use crate::problem::Problem;
use crate::reading::Reading;

/// What begins a thread.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewThread {
    /// Who answers.
    agent: AgentName,
    /// What is said first.
    #[serde(default)]
    input: Option<NewInput>,
    /// The idempotency key, if it is not in the header; it names the thread too.
    #[serde(default)]
    key: Option<InputKey>,
}

/// A thread without a record is an id only: the first input names the agent again.
pub(crate) async fn create(
    State(app): State<App>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let NewThread { agent, input, key } = body::read(&app, request).await?;
    check_agent(&app, &agent)?;
    let inner = input.as_ref().and_then(|input| input.key.clone());
    let key = match (caller.key, key.or(inner)) {
        (None, None) => None,
        (header, field) => Some(choose_key(&app, header, field)?),
    };
    let thread = match &key {
        Some(key) => thread_of(&caller.tenant, key),
        None => app.ports.ids.thread_id(app.ports.clock.now()),
    };
    let accepted = match input {
        None => None,
        Some(input) => {
            let input = NewInput { agent: Some(agent.clone()), mode: Mode::Enqueue, ..input };
            let offer = Offer {
                place: app.place(&caller.tenant, thread),
                key: choose_key(&app, key, None)?,
                body: input.body(&app)?,
                traceparent: caller.traceparent,
                only_at_rest: false,
            };
            Some(app.in_time(accept(&app, &offer)).await?)
        }
    };
    let path = format!("/v1/threads/{thread}");
    let events = format!("{path}/events");
    let body = json!({ "thread": thread, "agent": agent, "input": accepted, "events": events });
    Ok((StatusCode::CREATED, [(header::LOCATION, path)], Json(body)).into_response())
}

/// The one thread that a key begins.
fn thread_of(tenant: &TenantId, key: &InputKey) -> ThreadId {
    let hash = sha256_hex(format!("thread/{tenant}/{key}").as_bytes());
    let part = |from: usize, to: usize| {
        let digits = hash.get(from..to).unwrap_or_default();
        u128::from_str_radix(digits, 16).unwrap_or_default()
    };
    // Forty-eight bits stand for the time, eighty for chance.
    ThreadId::from_parts(u64::try_from(part(0, 12)).unwrap_or_default(), part(12, 32))
}

pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path<String>,
) -> Result<Json<Value>, Problem> {
    let place = app.place(&caller.tenant, thread_id(&thread)?);
    let reading = app.in_time(Reading::find(&app, &place)).await?;
    Ok(Json(standing(&reading)))
}

/// How a thread stands.
fn standing(reading: &Reading) -> Value {
    let thread = &reading.thread;
    let head = &thread.head;
    let id = head.nonce.as_ref().map(|nonce| EventId::new(head.sequence, nonce));
    let run = thread.run.as_ref();
    let waiting = thread.unread.iter().rev().find_map(|input| input.message.agent.as_ref());
    json!({
        "thread": thread.place.thread,
        "agent": waiting.or(thread.agent.as_ref()),
        "active": !thread.is_at_rest(),
        "state": phase(thread).as_str(),
        "stopping": thread.is_stopping(),
        "run": run.map(|run| run.number),
        "turn": run.map(|run| run.turns),
        "runs": thread.runs,
        "waiting_inputs": thread.unread.len(),
        "sequence": head.sequence,
        "id": id,
        "at": head.at,
        "usage": run.map(|run| run.usage),
        "open_calls": thread.open_calls().map(call).collect::<Vec<_>>(),
        "finished": reading.ends.values().next_back(),
    })
}

fn call(call: &Call) -> Value {
    let asked = call.asked.as_ref().filter(|_| call.decision.is_none());
    let approval = asked
        .map(|asked| json!({ "arguments_hash": asked.arguments_hash, "expires": asked.expires }));
    json!({
        "tool_call_id": call.id(),
        "tool": call.requested.tool,
        "arguments": call.requested.arguments,
        "turn": call.turn,
        "dispatched": call.dispatched.is_some(),
        "started": matches!(call.start, StartState::Started { .. }),
        "approval": approval,
    })
}

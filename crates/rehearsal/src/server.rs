//! The rehearsal over HTTP: `POST /v1/chat/completions`, `GET /v1/models`, `GET /livez`.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use proto::error_code::ErrorCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Mutex;

use crate::engine::{NoReply, Plan};
use crate::heard::Heard;
use crate::script::{Fail, Pace, Script};
use crate::wire::{self, Head};

/// Requests hold whole conversations.
const MOST_BODY: usize = 64 * 1024 * 1024;

/// A rehearsal that can be served.
#[derive(Clone)]
pub struct Rehearsal {
    script: Arc<Script>,
    speed: f64,
    /// How often each conversation was refused, for failures that happen a number of times.
    refused: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl Rehearsal {
    /// The script at its own pace.
    pub fn new(script: Script) -> Self {
        Self { script: Arc::new(script), speed: 1.0, refused: Arc::default() }
    }

    /// The same, `speed` times as fast; infinity leaves out every pause.
    #[must_use]
    pub fn at_speed(self, speed: f64) -> Self {
        Self { speed: speed.max(0.001), ..self }
    }

    /// The routes, for servers that have others too.
    pub fn router(self) -> Router {
        Router::new()
            .route("/v1/chat/completions", post(complete))
            .route("/chat/completions", post(complete))
            .route("/v1/models", get(models))
            .route("/livez", get(async || "ok"))
            .layer(DefaultBodyLimit::max(MOST_BODY))
            .with_state(self)
    }

    /// Serves on a bound listener until `stop` is ready; replies under way are finished first.
    pub async fn serve(
        self,
        listener: TcpListener,
        stop: impl Future<Output = ()> + Send + 'static,
    ) -> io::Result<()> {
        axum::serve(listener, self.router()).with_graceful_shutdown(stop).await
    }

    /// The plan, with a failure that has happened often enough taken out of it.
    async fn spend_failure(&self, mut plan: Plan, request: &Value) -> Plan {
        let Some(times) = plan.fail_times else { return plan };
        let key = request.get("messages").map(Value::to_string).unwrap_or_default();
        let mut refused = self.refused.lock().await;
        let count = refused.entry(key).or_default();
        if *count >= times {
            plan.fail = None;
        } else {
            *count = count.saturating_add(1);
        }
        plan
    }

    fn pause(&self, millis: f64) -> Duration {
        let millis = millis / self.speed;
        Duration::try_from_secs_f64(millis / 1000.0).unwrap_or_default()
    }
}

async fn models() -> Response {
    let model =
        json!({ "id": "rehearsal", "object": "model", "created": 0, "owned_by": "systole" });
    axum::Json(json!({ "object": "list", "data": [model] })).into_response()
}

async fn complete(State(rehearsal): State<Rehearsal>, body: Bytes) -> Response {
    let request: Value = match serde_json::from_slice(&body) {
        Ok(request) => request,
        Err(error) => {
            let message = format!("the request is not JSON: {error}");
            return refusal(StatusCode::BAD_REQUEST, &message, Some(ErrorCode::InvalidInput));
        }
    };
    let heard = Heard::read(&request);
    match rehearsal.script.reply(&heard) {
        Ok(plan) => {
            tracing::debug!(rule = plan.rule, calls = plan.calls.len(), "rehearsed reply");
            let plan = rehearsal.spend_failure(plan, &request).await;
            send(rehearsal, plan, &heard, &request).await
        }
        Err(error) => {
            tracing::info!(%error, "rehearsal has no reply");
            let code = match error {
                NoReply::NoRule(_) => ErrorCode::NoRuleMatched,
                NoReply::Unfilled { .. } => ErrorCode::InvalidRehearsal,
            };
            refusal(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string(), Some(code))
        }
    }
}

async fn send(rehearsal: Rehearsal, plan: Plan, heard: &Heard, request: &Value) -> Response {
    if let Some(Fail::Status { status, retry_after }) = plan.fail {
        return rehearsed_failure(status, retry_after);
    }
    let frame =
        Head { id: format!("rehearsal-{}", plan.rule), model: heard.model.clone(), created: 0 };
    let is_streamed = request.get("stream").and_then(Value::as_bool).unwrap_or(false);
    if is_streamed {
        let wants_usage = request.pointer("/stream_options/include_usage").and_then(Value::as_bool);
        let usage = wants_usage.unwrap_or(false).then_some(heard.characters);
        return streamed(rehearsal, &plan, &frame, usage);
    }
    let pieces = wire::pieces(&plan).len();
    let beats = u32::try_from(pieces).map_or(f64::MAX, f64::from);
    let wait = first(plan.pace) + beats * beat(plan.pace);
    tokio::time::sleep(rehearsal.pause(wait)).await;
    axum::Json(wire::completion(&plan, &frame, heard.characters)).into_response()
}

/// Milliseconds before the first piece.
fn first(pace: Pace) -> f64 {
    u32::try_from(pace.first_token_ms).map_or(f64::MAX, f64::from)
}

/// Milliseconds between two pieces.
fn beat(pace: Pace) -> f64 {
    pace.tokens_per_second.map_or(0.0, |tokens| 1000.0 / tokens)
}

/// One step of a stream: wait, then send; a break ends the body with an error.
enum Step {
    Send(f64, Value),
    Done,
    Break,
}

fn streamed(rehearsal: Rehearsal, plan: &Plan, head: &Head, usage: Option<usize>) -> Response {
    let steps = steps(plan, head, usage);
    let body = stream::iter(steps).then(move |step| {
        let rehearsal = rehearsal.clone();
        async move { play(&rehearsal, step).await }
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, Body::from_stream(body)).into_response()
}

fn steps(plan: &Plan, head: &Head, usage: Option<usize>) -> Vec<Step> {
    let cut = match plan.fail {
        Some(Fail::CutAfter(pieces)) => Some(pieces),
        Some(Fail::Status { .. }) | None => None,
    };
    let (first, beat) = (first(plan.pace), beat(plan.pace));
    let pieces = wire::pieces(plan).into_iter().enumerate();
    let mut steps: Vec<Step> = pieces
        .take(cut.unwrap_or(usize::MAX))
        .map(|(index, piece)| {
            let wait = if index == 0 { first } else { beat };
            Step::Send(wait, wire::chunk(head, &piece))
        })
        .collect();
    if cut.is_some() {
        steps.push(Step::Break);
        return steps;
    }
    steps.push(Step::Send(0.0, wire::last_chunk(head, plan)));
    steps
        .extend(usage.map(|characters| Step::Send(0.0, wire::usage_chunk(head, plan, characters))));
    steps.push(Step::Done);
    steps
}

async fn play(rehearsal: &Rehearsal, step: Step) -> Result<Bytes, io::Error> {
    match step {
        Step::Send(wait, chunk) => {
            let wait = rehearsal.pause(wait);
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            Ok(Bytes::from(format!("data: {chunk}\n\n")))
        }
        Step::Done => Ok(Bytes::from_static(b"data: [DONE]\n\n")),
        Step::Break => Err(io::Error::new(io::ErrorKind::ConnectionReset, "rehearsed break")),
    }
}

fn rehearsed_failure(status: u16, retry_after: Option<u64>) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = refusal(status, "a rehearsed failure", None);
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

fn refusal(status: StatusCode, message: &str, code: Option<ErrorCode>) -> Response {
    let kind = if status.is_server_error() { "server_error" } else { "invalid_request_error" };
    let kind = if status == StatusCode::TOO_MANY_REQUESTS { "rate_limit_error" } else { kind };
    let code = code.map(ErrorCode::as_str);
    let error = json!({ "message": message, "type": kind, "param": null, "code": code });
    (status, axum::Json(json!({ "error": error }))).into_response()
}

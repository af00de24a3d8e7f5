//! `systole bench-model`: the bench's model, a process of its own that speaks the wire of an
//! OpenAI-compatible endpoint.
//!
//! It is no rehearsal: rules and templates would take the processor that is being measured. It counts
//! what it was asked and how long it worked on it.

use std::convert::Infallible;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior};

use super::script::{Asked, Step, reply, talk, talk_chunk, talk_end};
use crate::arguments::BenchModel;
use crate::failure::Failure;

/// What the model counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Counts {
    /// Requests.
    pub(crate) requests: u64,
    /// Nanoseconds from a request's body to the reply's, of replies without pauses.
    pub(crate) busy_ns: u64,
    /// Chunks of replies that go on and on.
    #[serde(default)]
    pub(crate) chunks: u64,
}

struct Counting {
    requests: watch::Sender<u64>,
    busy_ns: AtomicU64,
    chunks: AtomicU64,
}

/// Serves until standard input ends: whoever started it is gone then.
pub(crate) async fn serve(asked: &BenchModel) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::other("the bench's model", error);
    let listener = TcpListener::bind(("127.0.0.1", asked.port)).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let line = json!({"url": format!("http://{address}/v1")});
    writeln!(io::stdout(), "{line}").map_err(failed)?;
    // Without this the pieces of a paced reply wait for each other's acknowledgement.
    let listener = listener.tap_io(|stream| stream.set_nodelay(true).unwrap_or_default());
    let counting = Counting {
        requests: watch::Sender::new(0),
        busy_ns: AtomicU64::new(0),
        chunks: AtomicU64::new(0),
    };
    let routes = Router::new()
        .route("/v1/chat/completions", post(complete))
        .route("/v1/counts", get(counts))
        .route("/v1/arrived/{number}", get(arrived))
        .with_state(Arc::new(counting));
    tokio::select! {
        served = axum::serve(listener, routes).into_future() => served.map_err(failed),
        _ = tokio::task::spawn_blocking(until_alone) => Ok(()),
    }
}

pub(crate) fn until_alone() {
    // Whatever is said does not matter, only that nobody can say anything any more.
    io::copy(&mut io::stdin(), &mut io::sink()).unwrap_or_default();
}

async fn complete(State(counting): State<Arc<Counting>>, body: Bytes) -> Response {
    let began = Instant::now();
    counting.requests.send_modify(|requests| *requests = requests.saturating_add(1));
    let asked = match serde_json::from_slice::<Asked>(&body) {
        Ok(asked) => asked,
        Err(error) => return (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    };
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    if let Some((beat, chunks)) = talk(&asked) {
        return ([kind], talking(counting, beat, chunks)).into_response();
    }
    let steps = reply(&asked);
    let body = if steps.iter().all(|step| step.pause.is_zero()) {
        let whole: String = steps.into_iter().map(|step| step.bytes).collect();
        let busy = u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        counting.busy_ns.fetch_add(busy, Ordering::Relaxed);
        Body::from(whole)
    } else {
        Body::from_stream(stream::iter(steps).then(say))
    };
    ([kind], body).into_response()
}

/// A reply of so many chunks; one that is late is made up for.
fn talking(counting: Arc<Counting>, beat: Duration, chunks: u64) -> Body {
    let mut beats = tokio::time::interval(beat);
    beats.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let chunk = Bytes::from(talk_chunk());
    let said = stream::unfold((beats, chunks), move |(mut beats, left)| {
        let (counting, chunk) = (Arc::clone(&counting), chunk.clone());
        async move {
            let left = left.checked_sub(1)?;
            beats.tick().await;
            counting.chunks.fetch_add(1, Ordering::Relaxed);
            Some((chunk, (beats, left)))
        }
    });
    let said = said.chain(stream::once(async { Bytes::from(talk_end()) }));
    Body::from_stream(said.map(Ok::<_, Infallible>))
}

async fn say(step: Step) -> Result<Bytes, Infallible> {
    if !step.pause.is_zero() {
        tokio::time::sleep(step.pause).await;
    }
    Ok(Bytes::from(step.bytes))
}

async fn counts(State(counting): State<Arc<Counting>>) -> Response {
    let requests = *counting.requests.borrow();
    let busy_ns = counting.busy_ns.load(Ordering::Relaxed);
    let chunks = counting.chunks.load(Ordering::Relaxed);
    axum::Json(Counts { requests, busy_ns, chunks }).into_response()
}

/// Answers once this many requests have come.
async fn arrived(
    State(counting): State<Arc<Counting>>,
    axum::extract::Path(number): axum::extract::Path<u64>,
) -> Response {
    let mut requests = counting.requests.subscribe();
    let enough = requests.wait_for(|requests| *requests >= number);
    match tokio::time::timeout(Duration::from_mins(1), enough).await {
        Ok(Ok(_)) => "arrived".into_response(),
        Ok(Err(_)) | Err(_) => StatusCode::REQUEST_TIMEOUT.into_response(),
    }
}

/// The same from outside.
#[derive(Clone, Debug)]
pub(crate) struct ModelClient {
    pub(crate) url: String,
    http: reqwest::Client,
}

impl ModelClient {
    pub(crate) fn new(url: &str) -> Result<Self, Failure> {
        let http = reqwest::Client::builder().no_proxy().build();
        let http = http.map_err(|error| Failure::other("an HTTP client", error))?;
        Ok(Self { url: url.to_owned(), http })
    }

    /// What was counted up to now.
    pub(crate) async fn counts(&self) -> Result<Counts, Failure> {
        let failed = |error: reqwest::Error| Failure::other("the bench's model", error);
        let answer = self.http.get(format!("{}/counts", self.url)).send().await.map_err(failed)?;
        answer.json().await.map_err(failed)
    }

    /// Waits until it has been asked that often.
    pub(crate) async fn arrived(&self, requests: u64) -> Result<(), Failure> {
        let failed = |error: reqwest::Error| Failure::other("the bench's model", error);
        let url = format!("{}/arrived/{requests}", self.url);
        let answer = self.http.get(url).send().await.map_err(failed)?;
        answer.error_for_status().map(drop).map_err(failed)
    }

    /// Asks and reads the whole reply; answers its length.
    pub(crate) async fn ask(&self, body: Vec<u8>) -> Result<usize, Failure> {
        let failed = |error: reqwest::Error| Failure::other("the bench's model", error);
        let request = self.http.post(format!("{}/chat/completions", self.url)).body(body);
        let answer = request.send().await.map_err(failed)?;
        let answer = answer.error_for_status().map_err(failed)?;
        Ok(answer.bytes().await.map_err(failed)?.len())
    }
}

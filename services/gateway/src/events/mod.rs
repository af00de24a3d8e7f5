//! `GET /v1/threads/{thread}/events`: a thread as it happens, as server-sent events.
//!
//! A record's last event has the record's sequence and the beginning of its nonce as id, so a
//! reader that comes back with it misses nothing; sequences of a lost tail are used again, and
//! then the nonce differs: the reader is told `reset`, and all that is left, from the beginning.
//! Live text has no id: what was missed of it is in the record that completes the turn.
//!
//! Nothing waits for a reader: its next event is made when it has taken the last one.

mod frame;
pub(crate) mod id;
mod reader;
mod spoken;

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use crate::caller::Caller;
use crate::gateway::App;
use crate::inputs::thread_id;
use crate::problem::Problem;
use id::EventId;
use reader::{Reader, Seat};

const LAST_ID: &str = "last-event-id";

pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let place = app.place(&caller.tenant, thread_id(&thread)?);
    let last = last_id(&headers)?;
    let Ok(permit) = Arc::clone(&app.readers).try_acquire_owned() else {
        return Err(Problem::overloaded("too many readers of events at once"));
    };
    if app.shutdown.is_draining() {
        return Err(Problem::overloaded("the gateway is being stopped"));
    }
    let seat = Seat::take(app.metrics.clone(), permit);
    let opening = Reader::open(app.clone(), place, last, seat);
    let reader = app.in_time(opening).await?;
    let frames = stream::unfold(reader, async |mut reader| {
        let frame = reader.next().await?;
        Some((Ok::<_, Infallible>(frame), reader))
    });
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        // A proxy that gathers what it passes on would hold events back.
        (header::HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no")),
    ];
    Ok((headers, Body::from_stream(frames)).into_response())
}

/// What a reader saw last. An empty id is none: readers send it after a reset.
fn last_id(headers: &HeaderMap) -> Result<Option<EventId>, Problem> {
    let Some(value) = headers.get(LAST_ID).filter(|value| !value.is_empty()) else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(value.as_bytes());
    let id = text.parse().map_err(|_refused| {
        let fix = "Send the id of an event as it came, or none to read from the beginning.";
        Problem::input(format!("`{text}` is not the id of an event"), fix)
    })?;
    Ok(Some(id))
}

//! `systole cancel`: stops a run, wherever it runs, and prints the receipts.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use planner_core::Thread;
use planner_core::thread::Call;
use ports::journal::Journal;
use proto::event::Event;
use proto::ids::ThreadRef;
use proto::input::InputBody;
use serde_json::{Value, json};

use super::Context;
use crate::arguments::{Cancel, Common};
use crate::control::{self, Ask, Reply};
use crate::engine::Engine;
use crate::failure::{Exit, Failure};
use crate::follow::{Follower, Told, fold};
use crate::inputs;
use crate::launch::real;
use crate::screen::call_line::receipt_words;
use crate::screen::summary::outcome_word;
use crate::screen::text::one_line;
use crate::threads::find;
use crate::wiring::{Store, read_store};

/// How long to wait for the run to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// Cancels it.
pub(crate) async fn cancel(context: &Context, cancel: &Cancel) -> Result<Exit, Failure> {
    let store = &context.common.store;
    if !store.exists() {
        return Err(Failure::not_found(format!("{} does not exist", store.display())));
    }
    let place = find(&read_store(store)?, &cancel.thread).await?;
    let before = fold(&read_store(store)?, &place).await?;
    if before.is_at_rest() {
        return report(&before, None, cancel.json);
    }
    let run = before.run.as_ref().map_or_else(|| before.runs.saturating_add(1), |run| run.number);
    let request = Ask::Cancel { thread: place.thread, reason: cancel.reason.clone() };
    let (after, finished) = match control::ask(&real(store), request).await {
        Ok(Some(Reply::Accepted(_))) => until_over(read_store(store)?, &place, run).await?,
        Ok(Some(Reply::Refused { why, .. })) => {
            return Err(Failure::other("the cancel was refused", why));
        }
        Ok(Some(Reply::Status(_) | Reply::Live(_) | Reply::Beat)) => {
            return Err(Failure::other("the cancel", "an answer to another question"));
        }
        Ok(None) => cancel_here(&context.common, &place, run, &cancel.reason).await?,
        Err(error) => return Err(Failure::other("the process that holds the store", error)),
    };
    report(&after, Some((run, finished)), cancel.json)
}

/// Nobody holds the store: a planner is started for as long as the end takes.
async fn cancel_here(
    common: &Common,
    place: &ThreadRef,
    run: u32,
    reason: &str,
) -> Result<(Thread, Event), Failure> {
    let store = Store::open(common)?;
    let ports = store.ports();
    let (ids, key) = (ports.ids.as_ref(), inputs::fresh_key(ports.ids.as_ref()));
    let body = InputBody::Cancel { reason: reason.to_owned() };
    inputs::append(&ports.journal, ids, place, key, body).await?;
    let mut engine = Engine::new(store.trouble());
    store.start_planner_alone(&mut engine).await?;
    let after = until_over(Arc::clone(&ports.journal), place, run).await;
    engine.stop().await;
    store.close().await?;
    after
}

/// Waits until the run is over; answers how it ended.
async fn until_over(
    journal: Arc<dyn Journal>,
    place: &ThreadRef,
    wanted: u32,
) -> Result<(Thread, Event), Failure> {
    let mut follower = Follower::new(journal, place.clone());
    let mut finished = None;
    let over = async {
        loop {
            let mut take = |(event, _): Told<'_>| {
                if matches!(event.event, Event::RunFinished { run, .. } if run == wanted) {
                    finished = Some(event.event.clone());
                }
            };
            follower.next(&mut take).await?;
            if let Some(finished) = finished.take() {
                return Ok::<_, Failure>((follower.thread().clone(), finished));
            }
        }
    };
    tokio::time::timeout(PATIENCE, over).await.unwrap_or_else(|_| {
        let why = "the cancel is in the journal, but the run has not ended yet";
        Err(Failure::other("cancel", why).and("`systole show` tells how it stands"))
    })
}

fn report(thread: &Thread, cancelled: Option<(u32, Event)>, json: bool) -> Result<Exit, Failure> {
    let text = if json { as_json(thread, cancelled) } else { as_text(thread, cancelled) };
    match io::stdout().write_all(text.as_bytes()) {
        Ok(()) => Ok(Exit::Done),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        Err(error) => Err(Failure::other("standard output", error)),
    }
}

fn as_text(thread: &Thread, cancelled: Option<(u32, Event)>) -> String {
    let id = thread.place.thread;
    let Some((run, finished)) = cancelled else {
        return format!("thread {id} has no active run: there is nothing to cancel\n");
    };
    let outcome = if let Event::RunFinished { outcome, .. } = &finished {
        outcome_word(*outcome)
    } else {
        "ended"
    };
    let mut text = format!("run {run} of thread {id}: {outcome}\n");
    for call in thread.receipts(run) {
        let receipt = call.closed.as_ref().and_then(|closed| closed.receipt);
        let receipt = receipt.map_or("", receipt_words);
        let tool = one_line(&call.requested.tool);
        // Writing to a string cannot fail.
        writeln!(text, "  {tool} ({}): {receipt}", call.id()).unwrap_or_default();
    }
    text
}

fn as_json(thread: &Thread, cancelled: Option<(u32, Event)>) -> String {
    let id = thread.place.thread;
    let value = match cancelled {
        None => json!({"thread": id, "cancelled": false, "calls": []}),
        Some((run, finished)) => {
            let calls: Vec<Value> = thread.receipts(run).into_iter().map(call_json).collect();
            json!({"thread": id, "cancelled": true, "run": run, "calls": calls, "finished": finished})
        }
    };
    format!("{value}\n")
}

fn call_json(call: &Call) -> Value {
    let closed = call.closed.as_ref();
    json!({
        "tool_call_id": call.id(),
        "tool": call.requested.tool,
        "code": closed.and_then(|closed| closed.code),
        "receipt": closed.and_then(|closed| closed.receipt),
    })
}

//! `systole cancel`: stops a run, wherever it runs, and prints the receipts.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use planner_core::Thread;
use planner_core::thread::Call;
use ports::BusError;
use ports::journal::Journal;
use proto::event::Event;
use proto::ids::ThreadRef;
use proto::input::InputBody;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::Context;
use crate::arguments::Cancel;
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
/// How long the store may be held by somebody who cannot be asked.
const BUSY: Duration = Duration::from_secs(10);
/// Between two tries.
const AGAIN: Duration = Duration::from_millis(50);

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
    let over = end(context, cancel, &place, run).await?;
    let exit = report(&over.thread, Some((run, over.finished)), cancel.json)?;
    if let Some(store) = over.held {
        // Printed just now: the command that began the run may begin another.
        store.endings().shown(&place).await?;
        store.close().await?;
    }
    Ok(exit)
}

/// A run that is over.
struct Over {
    thread: Thread,
    finished: Event,
    /// The store, if this process ended the run.
    held: Option<Store>,
}

/// Ends it. Whoever holds the store may have no door yet, or none any more; that passes.
async fn end(
    context: &Context,
    cancel: &Cancel,
    place: &ThreadRef,
    run: u32,
) -> Result<Over, Failure> {
    let latest = Instant::now() + BUSY;
    loop {
        let why = match try_end(context, cancel, place, run).await? {
            Ok(over) => return Ok(over),
            Err(why) => why,
        };
        if Instant::now() > latest {
            return Err(why);
        }
        tokio::time::sleep(AGAIN).await;
        if let Some((thread, finished)) = ended(&context.common.store, place, run).await? {
            return Ok(Over { thread, finished, held: None });
        }
    }
}

/// Asks the holder of the store, or becomes it; the inner error may pass.
async fn try_end(
    context: &Context,
    cancel: &Cancel,
    place: &ThreadRef,
    run: u32,
) -> Result<Result<Over, Failure>, Failure> {
    let store = &context.common.store;
    let request = Ask::Cancel { thread: place.thread, reason: cancel.reason.clone() };
    match control::ask(&real(store), request).await {
        Ok(Some(Reply::Accepted(_))) => {
            let (thread, finished) = until_over(read_store(store)?, place, run).await?;
            Ok(Ok(Over { thread, finished, held: None }))
        }
        Ok(Some(Reply::Refused { why, .. })) => Err(Failure::other("the cancel was refused", why)),
        Ok(Some(Reply::Status(_) | Reply::Live(_) | Reply::Beat)) => {
            Err(Failure::other("the cancel", "an answer to another question"))
        }
        Ok(None) => match Store::open(&context.common) {
            Ok(store) => end_here(store, place, run, &cancel.reason).await.map(Ok),
            Err(error @ BusError::Locked(_)) => Ok(Err(error.into())),
            Err(error) => Err(error.into()),
        },
        Err(error) => Ok(Err(Failure::other("the process that holds the store", error))),
    }
}

/// Nobody holds the store: a planner is started for as long as the end takes.
async fn end_here(
    store: Store,
    place: &ThreadRef,
    run: u32,
    reason: &str,
) -> Result<Over, Failure> {
    store.scope().only(place.thread);
    let ports = store.ports();
    let (ids, key) = (ports.ids.as_ref(), inputs::fresh_key(ports.ids.as_ref()));
    let body = InputBody::Cancel { reason: reason.to_owned() };
    inputs::append(&ports.journal, ids, place, key, body).await?;
    let mut engine = Engine::new(store.trouble());
    store.start_planner_alone(&mut engine).await?;
    let after = until_over(Arc::clone(&ports.journal), place, run).await;
    engine.stop().await;
    let (thread, finished) = after?;
    Ok(Over { thread, finished, held: Some(store) })
}

/// The end of the run, if somebody brought it about meanwhile.
async fn ended(
    store: &Path,
    place: &ThreadRef,
    wanted: u32,
) -> Result<Option<(Thread, Event)>, Failure> {
    let mut follower = Follower::new(read_store(store)?, place.clone());
    let mut finished = None;
    follower.look(&mut |told| take_end(told, wanted, &mut finished)).await?;
    Ok(finished.map(|finished| (follower.thread().clone(), finished)))
}

fn take_end((event, _): Told<'_>, wanted: u32, finished: &mut Option<Event>) {
    if matches!(event.event, Event::RunFinished { run, .. } if run == wanted) {
        *finished = Some(event.event.clone());
    }
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
            follower.next(&mut |told| take_end(told, wanted, &mut finished)).await?;
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

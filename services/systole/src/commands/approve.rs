//! `systole approve`: a person's word on a call that waits for it, whoever runs the thread.

use std::path::Path;
use std::sync::Arc;

use planner_core::Thread;
use planner_core::next_turn::next_agent;
use planner_core::thread::Call;
use proto::ids::ThreadRef;
use proto::input::Decision;
use serde_json::{Value, json};

use super::threads::file_of;
use super::{Context, print};
use crate::arguments::{Approve, Common};
use crate::control::{self, Ask, Reply};
use crate::failure::{Exit, Failure};
use crate::follow::fold;
use crate::inputs::{Inbox, OwnInbox};
use crate::launch::real;
use crate::screen::text::{clean, one_line};
use crate::shell;
use crate::threads::find;
use crate::wiring::{Store, read_store};

/// Decides it.
pub(crate) async fn approve(context: &Context, asked: &Approve) -> Result<Exit, Failure> {
    let store = &context.common.store;
    if !store.exists() {
        return Err(Failure::not_found(format!("{} does not exist", store.display())));
    }
    let journal = read_store(store)?;
    let place = find(&journal, &asked.thread).await?;
    let thread = fold(&journal, &place).await?;
    let call = chosen(&thread, asked.call.as_deref())?;
    let Some(question) = &call.asked else { return Err(nothing(&thread)) };
    let person = context.environment.text("USER").filter(|name| !name.is_empty());
    let decision = Decision {
        tool_call_id: call.id().clone(),
        approve: !asked.deny,
        arguments_hash: question.arguments_hash.clone(),
        fingerprint: Some(question.fingerprint.clone()),
        by: person.unwrap_or_else(|| "command line".to_owned()),
        note: asked.reason.clone(),
    };
    let held = decide(&context.common, store, &place, &decision).await?;
    let text = if asked.json {
        as_json(&thread, call, &decision, held)
    } else {
        as_text(context, &thread, call, (asked.deny, held))
    };
    print(&text)?;
    Ok(Exit::Done)
}

/// Calls that wait for a word.
fn waiting(thread: &Thread) -> Vec<&Call> {
    let open = thread.open_calls();
    open.filter(|call| call.asked.is_some() && call.decision.is_none()).collect()
}

fn chosen<'t>(thread: &'t Thread, word: Option<&str>) -> Result<&'t Call, Failure> {
    let waiting = waiting(thread);
    let fits = |call: &&&Call| word.is_none_or(|word| call.id().as_str().starts_with(word));
    let fitting: Vec<&&Call> = waiting.iter().filter(fits).collect();
    match (fitting.as_slice(), word) {
        ([one], _) => Ok(one),
        ([], None) => Err(nothing(thread)),
        ([], Some(word)) => {
            let why = format!("no call of thread {} that waits begins with {word}", id(thread));
            Err(listing(Failure::not_found(why), &waiting))
        }
        (_, _) => Err(listing(Failure::input("several calls wait; name one of them"), &waiting)),
    }
}

fn id(thread: &Thread) -> String {
    thread.place.thread.to_string()
}

fn nothing(thread: &Thread) -> Failure {
    Failure::not_found(format!("no call of thread {} waits for a word", id(thread)))
        .and("`systole threads --state waiting` lists threads that do")
}

fn listing(failure: Failure, waiting: &[&Call]) -> Failure {
    let line = |call: &&Call| format!("  {} {}", call.id(), one_line(&call.requested.tool));
    waiting.iter().map(line).fold(failure, Failure::and)
}

/// Puts it where the thread's planner finds it; answers whether somebody runs the store.
async fn decide(
    common: &Common,
    store: &Path,
    place: &ThreadRef,
    decision: &Decision,
) -> Result<bool, Failure> {
    let ask = Ask::Decide { thread: place.thread, decision: decision.clone() };
    match control::ask(&real(store), ask).await {
        Ok(Some(Reply::Accepted(_))) => Ok(true),
        Ok(Some(Reply::Refused { why, .. })) => Err(Failure::other("the word was refused", why)),
        Ok(Some(Reply::Status(_) | Reply::Live(_) | Reply::Beat)) => {
            Err(Failure::other("the word", "an answer to another question"))
        }
        Ok(None) => decide_here(common, place, decision).await.map(|()| false),
        Err(error) => Err(Failure::other("the process that holds the store", error)),
    }
}

async fn decide_here(
    common: &Common,
    place: &ThreadRef,
    decision: &Decision,
) -> Result<(), Failure> {
    let store = Store::open(common)?;
    let ports = store.ports();
    let inbox = OwnInbox { journal: Arc::clone(&ports.journal), ids: Arc::clone(&ports.ids) };
    let decided = inbox.decide(place, decision.clone()).await;
    store.close().await?;
    Ok(decided?)
}

fn as_text(context: &Context, thread: &Thread, call: &Call, (deny, held): (bool, bool)) -> String {
    let word = if deny { "denied" } else { "approved" };
    let arguments = Value::Object(call.requested.arguments.clone());
    let arguments = serde_json::to_string_pretty(&arguments).unwrap_or_default();
    let tool = one_line(&call.requested.tool);
    let first = format!("{word}: {tool} ({}) of thread {}", call.id(), id(thread));
    let arguments = clean(&arguments);
    let shown = arguments.lines().map(|line| format!("  {line}"));
    let next = if held {
        format!("look: {}", context.same_store(&format!("show {}", id(thread))))
    } else {
        let file = next_agent(thread).and_then(|agent| file_of(context, &agent));
        let agent = file.map_or_else(|| "AGENT".to_owned(), shell::word);
        let command = format!("run {agent} --thread {}", id(thread));
        format!("nothing runs on this store; go on with: {}", context.same_store(&command))
    };
    let lines = std::iter::once(first).chain(shown).chain([next]);
    lines.map(|line| line + "\n").collect()
}

fn as_json(thread: &Thread, call: &Call, decision: &Decision, held: bool) -> String {
    let value = json!({
        "thread": thread.place.thread,
        "tool_call_id": call.id(),
        "tool": call.requested.tool,
        "approved": decision.approve,
        "by": decision.by,
        "runs": held,
    });
    format!("{value}\n")
}

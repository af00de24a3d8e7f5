//! `systole run`: an agent on a text, or its unfinished run.

use std::io::{self, IsTerminal, Read};

use proto::ids::ThreadRef;

use super::Context;
use crate::agent_files::{Disk, LoadedAgent, load, with_model};
use crate::arguments::Run;
use crate::failure::{Exit, Failure};
use crate::follow::fold;
use crate::inputs::{fresh_key, place};
use crate::interrupts::Interrupts;
use crate::launch::{Aim, Launch, message};
use crate::threads::{unfinished, words};
use crate::wiring::{Store, choose_model};

/// The largest text.
const LARGEST: u64 = 512 * 1024;

/// Runs it.
pub(crate) async fn run(context: &Context, run: &Run) -> Result<Exit, Failure> {
    let mut loaded = load(&Disk, &run.agent, &context.environment)?;
    if let Some(model) = &run.model.model {
        loaded.agent = with_model(loaded.agent, model);
    }
    let model = choose_model(&loaded, &run.model)?;
    let text = text(run)?;
    let mut interrupts =
        Interrupts::listen().map_err(|error| Failure::other("signals cannot be heard", error))?;
    let store = Store::open(&context.common)?;
    let aim = aim(run, text, &loaded, &store).await?;
    let launch = Launch {
        common: &context.common,
        environment: &context.environment,
        loaded: &loaded,
        model: &model,
        approve: &run.approve,
        command: context.same_store(&format!("run {}", run.agent.display())),
        names_thread: true,
        json: run.json,
    };
    let ended = launch.run(&store, aim, context.view(run.json), &mut interrupts).await;
    store.close().await?;
    let mut ended = ended?;
    let exit = ended.exit();
    if matches!(exit, Exit::Done | Exit::Stopped | Exit::Failed) {
        let id = ended.place.thread;
        let hint = format!(
            "look back: {} · go on: {} --thread {id} \"…\"",
            context.same_store(&format!("show {id}")),
            launch.command
        );
        // Nobody is left to read it: that is no failure.
        ended.session.view().hint(&hint).unwrap_or_default();
    }
    Ok(exit)
}

/// The words of the user, if there are any.
fn text(run: &Run) -> Result<Option<String>, Failure> {
    match run.text.as_deref() {
        Some("-") => Ok(Some(read_input()?)),
        Some(text) if text.trim().is_empty() => Err(Failure::input("the text is empty")),
        Some(text) => Ok(Some(text.to_owned())),
        None if io::stdin().is_terminal() || run.thread.is_some() => Ok(None),
        None => Ok(Some(read_input()?).filter(|text| !text.trim().is_empty())),
    }
}

fn read_input() -> Result<String, Failure> {
    let mut text = String::new();
    let read = io::stdin().take(LARGEST.saturating_add(1)).read_to_string(&mut text);
    read.map_err(|error| Failure::input(format!("standard input: {error}")))?;
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > LARGEST {
        return Err(Failure::input(format!("the text is longer than {LARGEST} bytes")));
    }
    Ok(text)
}

async fn aim(
    run: &Run,
    text: Option<String>,
    loaded: &LoadedAgent,
    store: &Store,
) -> Result<Aim, Failure> {
    let ports = store.ports();
    let agent = &loaded.agent.name;
    let begin = |place: ThreadRef, text: String| Aim::Begin {
        place,
        key: fresh_key(ports.ids.as_ref()),
        message: message(text, agent, &run.approve, run.complexity),
    };
    match (run.thread, text) {
        (Some(id), Some(text)) => Ok(begin(known(store, place(id)).await?, text)),
        (Some(id), None) => go_on(store, place(id)).await,
        (None, Some(text)) => {
            let same = |thread: &planner_core::Thread| words(thread) == Some(text.as_str());
            let earlier =
                if run.new { None } else { unfinished(&ports.journal, agent, same).await? };
            let fresh = || place(ports.ids.thread_id(ports.clock.now()));
            Ok(match earlier {
                Some(thread) => Aim::GoOn { place: thread.place },
                None => begin(fresh(), text),
            })
        }
        (None, None) => match unfinished(&ports.journal, agent, |_| true).await? {
            Some(thread) => Ok(Aim::GoOn { place: thread.place }),
            None => Err(Failure::input(format!(
                "{agent} has no unfinished run; say what to do: systole run {} \"…\"",
                run.agent.display()
            ))),
        },
    }
}

async fn known(store: &Store, place: ThreadRef) -> Result<ThreadRef, Failure> {
    let thread = fold(&store.ports().journal, &place).await?;
    if thread.head.sequence == proto::ids::Sequence::NONE {
        let why = format!("there is no thread {}; `systole show` lists them all", place.thread);
        return Err(Failure::not_found(why));
    }
    Ok(place)
}

async fn go_on(store: &Store, place: ThreadRef) -> Result<Aim, Failure> {
    let place = known(store, place).await?;
    let thread = fold(&store.ports().journal, &place).await?;
    if thread.is_at_rest() {
        let why = format!("thread {} has no unfinished run; add what to do next", place.thread);
        return Err(Failure::input(why));
    }
    Ok(Aim::GoOn { place })
}

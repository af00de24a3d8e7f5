//! `systole run`: an agent on a text, or its unfinished run.

use std::io::{self, IsTerminal, Read};

use argument_check::nearest;
use proto::agent::Agent;
use proto::ids::{ThreadId, ThreadRef, ToolName};

use super::Context;
use crate::agent_files::{Disk, LoadedAgent, load, with_model};
use crate::arguments::Run;
use crate::failure::{Exit, Failure};
use crate::follow::fold;
use crate::inputs::{fresh_key, place};
use crate::interrupts::Interrupts;
use crate::launch::{Aim, Launch, message};
use crate::screen::View;
use crate::shell;
use crate::threads::{find, unfinished, words};
use crate::wiring::{Store, choose_model};

/// The largest text.
const LARGEST: u64 = 512 * 1024;

/// Runs it.
pub(crate) async fn run(context: &Context, run: &Run) -> Result<Exit, Failure> {
    let mut loaded = load(&Disk, &run.agent, &context.environment)?;
    check_approved(&run.approve, &loaded.agent)?;
    if let Some(model) = run.model.model() {
        loaded.agent = with_model(loaded.agent, model);
    }
    let model = choose_model(&loaded, &run.model)?;
    let text = text(run)?;
    let mut interrupts =
        Interrupts::listen().map_err(|error| Failure::other("signals cannot be heard", error))?;
    let store = Store::open(&context.common)?;
    let aim = aim(context, run, text, &loaded, &store).await?;
    let launch = Launch {
        common: &context.common,
        environment: &context.environment,
        loaded: &loaded,
        model: &model,
        approve: &run.approve,
        command: again(context, run),
        names_thread: true,
        json: run.json,
    };
    let ended = launch.run(&store, aim, context.view(run.json), &mut interrupts).await;
    store.close().await?;
    let mut ended = ended?;
    let exit = ended.exit();
    if matches!(exit, Exit::Done | Exit::Stopped | Exit::Failed) {
        hint(context, run, ended.place.thread, ended.session.view());
    }
    Ok(exit)
}

/// The command that goes on with an agent.
fn again(context: &Context, run: &Run) -> String {
    context.same_store(&shell::line(run.again(&context.environment)))
}

/// What to do next: one command a line, so that it can be copied whole.
fn hint(context: &Context, run: &Run, id: ThreadId, view: &mut dyn View) {
    let hints = [
        format!("look back: {}", context.same_store(&format!("show {id}"))),
        format!("go on:     {} --thread {id} \"…\"", again(context, run)),
    ];
    for hint in hints {
        // Nobody is left to read it: that is no failure.
        view.hint(&hint).unwrap_or_default();
    }
}

/// Tools that are approved beforehand have to be tools of the agent.
fn check_approved(approved: &[ToolName], agent: &Agent) -> Result<(), Failure> {
    let Some(unknown) = approved.iter().find(|tool| !agent.tools.contains(tool)) else {
        return Ok(());
    };
    let known = || agent.tools.iter().map(ToolName::as_str);
    let all = known().collect::<Vec<_>>().join(", ");
    let fix = match nearest(unknown.as_str(), known()) {
        Some(meant) => format!("did you mean --approve {meant}?"),
        None if all.is_empty() => "it has no tools".to_owned(),
        None => format!("its tools: {all}"),
    };
    Err(Failure::input(format!("--approve {unknown}: {} has no such tool; {fix}", agent.name)))
}

/// The words of the user, if there are any.
fn text(run: &Run) -> Result<Option<String>, Failure> {
    match run.text.as_deref() {
        Some("-") => said(read_input()?).map(Some),
        Some(text) => said(text.to_owned()).map(Some),
        None if io::stdin().is_terminal() || run.thread.is_some() => Ok(None),
        None => Ok(Some(read_input()?).filter(|text| !text.trim().is_empty())),
    }
}

fn said(text: String) -> Result<String, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::input("the text is empty: say what to do"));
    }
    Ok(text)
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
    context: &Context,
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
    match (&run.thread, text) {
        (Some(word), Some(text)) => Ok(begin(find(&ports.journal, word).await?, text)),
        (Some(word), None) => go_on(store, word).await,
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
                "{agent} has no unfinished run; say what to do: {} \"…\"",
                again(context, run)
            ))),
        },
    }
}

async fn go_on(store: &Store, word: &str) -> Result<Aim, Failure> {
    let journal = &store.ports().journal;
    let place = find(journal, word).await?;
    let thread = fold(journal, &place).await?;
    if thread.is_at_rest() {
        let why = format!("thread {} has no unfinished run; add what to do next", place.thread);
        return Err(Failure::input(why));
    }
    Ok(Aim::GoOn { place })
}

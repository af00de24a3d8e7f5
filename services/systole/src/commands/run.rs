//! `systole run`: an agent on a text, or its unfinished run; in this process, or in the `dev` that
//! holds the store.

mod attached;
mod record;

use std::io::{self, IsTerminal, Read};
use std::sync::Arc;

use argument_check::nearest;
use ports::clock::{Clock, Ids};
use ports::journal::Journal;
use proto::agent::Agent;
use proto::ids::{AgentName, ThreadId, ThreadRef, ToolName};

use self::attached::Visit;

use super::Context;
use crate::agent_files::{Disk, load, with_model};
use crate::arguments::Run;
use crate::failure::{Exit, Failure};
use crate::follow::{fold, fold_to_end};
use crate::inputs::{fresh_key, place};
use crate::interrupts::Interrupts;
use crate::launch::{Aim, Launch, message};
use crate::screen::View;
use crate::shell;
use crate::staff::Hands;
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
    let text = text(run)?;
    if let Some(file) = &run.record {
        record::check(file)?;
    }
    let mut interrupts =
        Interrupts::listen().map_err(|error| Failure::other("signals cannot be heard", error))?;
    if let Some(status) = attached::dev(&context.common.store).await {
        let visit = Visit { context, run, loaded: &loaded, status };
        return visit.run(text, &mut interrupts).await;
    }
    let model = choose_model(&loaded, &run.model)?;
    let store = Store::open(&context.common)?;
    let ports = store.ports();
    let desk = Desk {
        context,
        journal: &ports.journal,
        ids: ports.ids.as_ref(),
        clock: ports.clock.as_ref(),
        run,
        agent: &loaded.agent.name,
    };
    let aim = desk.aim(text).await?;
    let launch = Launch {
        common: &context.common,
        environment: &context.environment,
        loaded: &loaded,
        model: &model,
        approve: &run.approve,
        command: again(context, run),
        names_thread: true,
        json: run.json,
        hands: Hands::of(run.dry_run),
    };
    let mut ended = launch.run(&store, aim, context.view(run.json), &mut interrupts).await;
    if let Ok(ended) = &mut ended {
        keep(context, run, (&store.ports().journal, &ended.place), ended.session.view()).await?;
    }
    store.close().await?;
    let mut ended = ended?;
    let exit = ended.exit();
    if matches!(exit, Exit::Done | Exit::Stopped | Exit::Failed) {
        hint(context, run, ended.place.thread, ended.session.view());
    }
    Ok(exit)
}

/// Records the run, if that was asked for.
async fn keep(
    context: &Context,
    run: &Run,
    (journal, place): (&Arc<dyn Journal>, &ThreadRef),
    view: &mut dyn View,
) -> Result<(), Failure> {
    let Some(file) = &run.record else { return Ok(()) };
    let (thread, finished) = fold_to_end(journal, place).await?;
    let is_over = thread.is_at_rest();
    let finished = finished.as_ref().filter(|_| is_over);
    let written = record::write(file, &context.environment, (&thread, finished))?;
    let words = if written {
        let (agent, file) = (shell::word(&run.agent), shell::word(file));
        format!("recorded:  {} rehearse {agent} {file}", shell::word(&context.program))
    } else {
        format!("not recorded, because the run was not answered: {}", file.display())
    };
    // Nobody is left to read it: that is no failure.
    view.hint(&words).unwrap_or_default();
    Ok(())
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

/// What is needed to find out what a run is about.
struct Desk<'a> {
    context: &'a Context,
    journal: &'a Arc<dyn Journal>,
    ids: &'a dyn Ids,
    clock: &'a dyn Clock,
    run: &'a Run,
    agent: &'a AgentName,
}

impl Desk<'_> {
    async fn aim(&self, text: Option<String>) -> Result<Aim, Failure> {
        match (&self.run.thread, text) {
            (Some(word), Some(text)) => Ok(self.begin(find(self.journal, word).await?, text)),
            (Some(word), None) => self.go_on(word).await,
            (None, Some(text)) => self.same_or_new(text).await,
            (None, None) => match unfinished(self.journal, self.agent, |_| true).await? {
                Some(thread) => Ok(Aim::GoOn { place: thread.place }),
                None => Err(Failure::input(format!(
                    "{} has no unfinished run; say what to do: {} \"…\"",
                    self.agent,
                    again(self.context, self.run)
                ))),
            },
        }
    }

    fn begin(&self, place: ThreadRef, text: String) -> Aim {
        let key = fresh_key(self.ids);
        let message = message(text, self.agent, &self.run.approve, self.run.complexity);
        Aim::Begin { place, key, message }
    }

    /// An unfinished run that began with the same text goes on.
    async fn same_or_new(&self, text: String) -> Result<Aim, Failure> {
        let same = |thread: &planner_core::Thread| words(thread) == Some(text.as_str());
        let earlier =
            if self.run.new { None } else { unfinished(self.journal, self.agent, same).await? };
        Ok(match earlier {
            Some(thread) => Aim::GoOn { place: thread.place },
            None => self.begin(place(self.ids.thread_id(self.clock.now())), text),
        })
    }

    async fn go_on(&self, word: &str) -> Result<Aim, Failure> {
        let place = find(self.journal, word).await?;
        let thread = fold(self.journal, &place).await?;
        if thread.is_at_rest() {
            let why = format!("thread {} has no unfinished run; add what to do next", place.thread);
            return Err(Failure::input(why));
        }
        Ok(Aim::GoOn { place })
    }
}

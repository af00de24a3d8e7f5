//! `systole run`: an agent on a text, or its unfinished run; in this process, or in the `dev` that
//! holds the store.

mod attached;
mod record;

use std::io::{self, IsTerminal, Read};
use std::sync::Arc;

use argument_check::nearest;
use planner_core::Thread;
use planner_core::next_turn::next_agent;
use ports::clock::{Clock, Ids};
use ports::journal::Journal;
use proto::agent::Agent;
use proto::ids::{AgentName, ThreadId, ThreadRef, ToolName};

use self::attached::Visit;

use super::Context;
use crate::agent_files::{Disk, agent_file, load, with_choice};
use crate::arguments::Run;
use crate::failure::{Exit, Failure};
use crate::follow::{fold, fold_to_end};
use crate::inputs::{fresh_key, place, tenant};
use crate::interrupts::Interrupts;
use crate::launch::{Aim, Launch, message};
use crate::screen::View;
use crate::shell;
use crate::staff::Hands;
use crate::threads::{MOST, find, words};
use crate::wiring::endings::AllAwaited;
use crate::wiring::{Store, choose_model};

/// The largest text.
const LARGEST: u64 = 512 * 1024;

/// Runs it.
pub(crate) async fn run(context: &Context, run: &Run) -> Result<Exit, Failure> {
    let loaded = load(&Disk, &agent_file(&run.agent), &context.environment)?;
    let mut loaded = loaded.fit_for_work()?;
    check_approved(&run.approve, &loaded.agent)?;
    loaded.agent = with_choice(loaded.agent, &run.model)?;
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
    let awaited = store.endings().all().await?;
    let desk = Desk {
        awaited: &awaited,
        context,
        journal: &ports.journal,
        ids: ports.ids.as_ref(),
        clock: ports.clock.as_ref(),
        run,
        agent: &loaded.agent.name,
    };
    let (aim, waiting) = desk.aim(text).await?;
    let mut view = context.view(run.json);
    tell_waiting(context, waiting, view.as_mut());
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
    let mut ended = launch.run(&store, aim, view, &mut interrupts).await;
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

/// Other runs are left as they are; people hear how many.
fn tell_waiting(context: &Context, waiting: usize, view: &mut dyn View) {
    let other = match waiting {
        0 => return,
        1 => "1 other run is not finished and waits for its own command".to_owned(),
        many => format!("{many} other runs are not finished and wait for their own commands"),
    };
    let note = format!("{other}: {}", context.same_store("threads"));
    // A view that nobody looks at is noticed with the first event.
    view.note(&note).unwrap_or_default();
}

/// What is needed to find out what a run is about.
struct Desk<'a> {
    awaited: &'a AllAwaited,
    context: &'a Context,
    journal: &'a Arc<dyn Journal>,
    ids: &'a dyn Ids,
    clock: &'a dyn Clock,
    run: &'a Run,
    agent: &'a AgentName,
}

impl Desk<'_> {
    /// The run that is meant, and how many others of the store are not finished, as far as that was
    /// seen on the way.
    async fn aim(&self, text: Option<String>) -> Result<(Aim, usize), Failure> {
        match (&self.run.thread, text) {
            (Some(word), text) => {
                let thread = fold(self.journal, &find(self.journal, word).await?).await?;
                Ok((self.in_thread(&thread, text)?, 0))
            }
            (None, Some(text)) if self.run.new => Ok((self.fresh(text), 0)),
            (None, Some(text)) => self.same_or_new(text).await,
            (None, None) => match self.newest(|thread| self.is_open(thread)).await? {
                (Some(thread), _) => Ok((Aim::GoOn { place: thread.place }, 0)),
                (None, _) => Err(Failure::input(format!(
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

    fn fresh(&self, text: String) -> Aim {
        self.begin(place(self.ids.thread_id(self.clock.now())), text)
    }

    /// A run that began with the same text goes on, or is shown if it ended and nobody saw how.
    async fn same_or_new(&self, text: String) -> Result<(Aim, usize), Failure> {
        let (same, waiting) = self.newest(|thread| self.is_same(thread, &text)).await?;
        Ok(match same {
            Some(thread) => (Aim::GoOn { place: thread.place }, 0),
            None => (self.fresh(text), waiting),
        })
    }

    fn in_thread(&self, thread: &Thread, text: Option<String>) -> Result<Aim, Failure> {
        let place = thread.place.clone();
        match text {
            Some(text) if self.is_same(thread, &text) => Ok(Aim::GoOn { place }),
            Some(text) => Ok(self.begin(place, text)),
            None if thread.is_at_rest() && !self.is_noted(thread, None) => {
                let why = "has no unfinished run; add what to do next";
                Err(Failure::input(format!("thread {} {why}", place.thread)))
            }
            None => Ok(Aim::GoOn { place }),
        }
    }

    /// The newest thread that `wanted` agrees to; how many unfinished ones are newer.
    async fn newest(
        &self,
        wanted: impl Fn(&Thread) -> bool,
    ) -> Result<(Option<Thread>, usize), Failure> {
        let mut unfinished = 0_usize;
        for place in self.journal.threads(&tenant(), MOST).await? {
            let thread = fold(self.journal, &place).await?;
            if wanted(&thread) {
                return Ok((Some(thread), unfinished));
            }
            unfinished = unfinished.saturating_add(usize::from(!thread.is_at_rest()));
        }
        Ok((None, unfinished))
    }

    /// A run of this agent that is unfinished, or that ended and nobody saw how.
    fn is_open(&self, thread: &Thread) -> bool {
        if thread.is_at_rest() {
            self.is_noted(thread, None)
        } else {
            next_agent(thread).as_ref() == Some(self.agent)
        }
    }

    /// Such a run that was asked for with the same text.
    fn is_same(&self, thread: &Thread, text: &str) -> bool {
        let began_so = !thread.is_at_rest() && words(thread) == Some(text);
        self.is_open(thread) && (began_so || self.is_noted(thread, Some(text)))
    }

    fn is_noted(&self, thread: &Thread, text: Option<&str>) -> bool {
        let note = self.awaited.get(&thread.place.thread);
        note.is_some_and(|note| note.fits(self.agent, text, thread))
    }
}

//! `systole rehearse`: an agent's rehearsals as tests. Each case is a run of its own, in a store of
//! its own that is gone afterwards.

mod find;
mod report;
mod scratch;
mod serve;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use planner_core::Thread;
use planner_core::thread::Call;
use proto::event::Event;
use proto::fact::Outcome;
use proto::ids::ToolName;
use rehearsal::case::Case;
use rehearsal::compare::{Happened, Line, MadeCall, compare};

use self::find::{Rehearsed, cases};
use self::report::Report;
use self::scratch::Scratch;
use super::Context;
use crate::agent_files::{Disk, LoadedAgent, load};
use crate::arguments::{Common, Rehearse, RehearseTask};
use crate::failure::{Exit, Failure};
use crate::follow::fold_to_end;
use crate::inputs::{fresh_key, place};
use crate::interrupts::Interrupts;
use crate::launch::{Aim, Launch, message};
use crate::screen::json::JsonView;
use crate::settings::Environment;
use crate::staff::Hands;
use crate::stand_ins::StandIns;
use crate::wiring::{ChosenModel, Store, rehearsed};

/// The longest that one case may take.
const LONGEST: Duration = Duration::from_mins(2);

/// Runs them all.
pub(crate) async fn rehearse(context: &Context, asked: &Rehearse) -> Result<Exit, Failure> {
    if let Some(RehearseTask::Serve { file, listen, pace }) = &asked.task {
        return serve::serve(file, *listen, *pace).await;
    }
    let named = asked.agent.clone().unwrap_or_default();
    let (path, files) = find::agent_and_files(&named, &asked.files)?;
    let agent = load(&Disk, &path, &context.environment)?;
    let cases = cases(asked, &files, (&path, &agent))?;
    let mut interrupts =
        Interrupts::listen().map_err(|error| Failure::other("signals cannot be heard", error))?;
    let mut report = Report::new(context, asked.json, &path);
    for rehearsed in &cases {
        report.begins(&rehearsed.case)?;
        let stage = Stage { context, agent: &path, rehearsed };
        let happened = match tokio::time::timeout(LONGEST, stage.play(&mut interrupts)).await {
            Ok(happened) => happened?,
            Err(_) => return Err(overdue(&rehearsed.case)),
        };
        let Some(happened) = happened else { return Ok(Exit::Interrupted) };
        let difference: Vec<Line> = compare(&rehearsed.case.expect, &happened);
        report.ended(rehearsed, &happened, &difference)?;
    }
    report.closes()
}

fn overdue(case: &Case) -> Failure {
    let why = format!("it was not over after {} s", LONGEST.as_secs());
    Failure::other(&format!("case {}", case.name), why)
        .and("A tool without stand-ins runs for real; give it some under `tools:`.")
}

/// What one case is played on.
struct Stage<'a> {
    context: &'a Context,
    agent: &'a Path,
    rehearsed: &'a Rehearsed,
}

impl Stage<'_> {
    /// Plays it; nothing when somebody interrupts.
    async fn play(&self, interrupts: &mut Interrupts) -> Result<Option<Happened>, Failure> {
        let scratch = Scratch::new(self.rehearsed)?;
        let environment = scratch.environment(&self.context.environment);
        // Read anew: a manifest may name the copies.
        let agent = load(&Disk, self.agent, &environment)?;
        self.all_known(&agent)?;
        // What is rehearsed is remembered by nobody.
        let common = Common { store: scratch.store(), qdrant: None, ..self.context.common.clone() };
        let store = Store::open(&common)?;
        let played = self.run(&store, &common, &agent, &environment, interrupts).await;
        store.close().await?;
        played
    }

    /// A misspelt tool would otherwise never speak.
    fn all_known(&self, agent: &LoadedAgent) -> Result<(), Failure> {
        let case = &self.rehearsed.case;
        let known = |name: &str| agent.agent.tools.iter().any(|tool| tool.as_str() == name);
        let named = case.tools.iter().map(|(tool, _)| tool).chain(&case.approve).chain(&case.real);
        let named = named.map(String::as_str);
        let unknown: Vec<&str> = named.filter(|name| !known(name)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        Err(Failure::input(format!(
            "{}:{}: case {} names tools that {} does not have: {}",
            self.rehearsed.file,
            case.line,
            case.name,
            agent.agent.name,
            unknown.join(", ")
        )))
    }

    async fn run(
        &self,
        store: &Store,
        common: &Common,
        agent: &LoadedAgent,
        environment: &Environment,
        interrupts: &mut Interrupts,
    ) -> Result<Option<Happened>, Failure> {
        let case = &self.rehearsed.case;
        let model: ChosenModel = rehearsed(&self.rehearsed.script);
        let ports = store.ports();
        let place = place(ports.ids.thread_id(ports.clock.now()));
        let launch = Launch {
            common,
            environment,
            loaded: agent,
            model: &model,
            approve: &[],
            command: String::new(),
            names_thread: false,
            json: true,
            hands: Hands::Rehearsed(Arc::new(StandIns::new(case, place.clone()))),
        };
        let approve: Vec<ToolName> =
            case.approve.iter().filter_map(|tool| ToolName::new(tool).ok()).collect();
        let text = self.rehearsed.input.clone();
        let aim = Aim::Begin {
            place,
            key: fresh_key(ports.ids.as_ref()),
            message: message(text, &agent.agent.name, &approve, None),
        };
        let view = Box::new(JsonView::new(std::io::sink()));
        let ended = launch.run(store, aim, view, interrupts).await?;
        if ended.exit() == Exit::Interrupted {
            return Ok(None);
        }
        let (thread, finished) = fold_to_end(&ports.journal, &ended.place).await?;
        Ok(Some(happened(&thread, finished.as_ref())))
    }
}

fn happened(thread: &Thread, finished: Option<&Event>) -> Happened {
    let mut calls: Vec<&Call> = thread.calls.values().collect();
    calls.sort_by_key(|call| (call.run, call.turn, call.position));
    let calls = calls.into_iter().map(|call| MadeCall {
        tool: call.requested.tool.clone(),
        arguments: call.requested.arguments.clone(),
        code: call.closed.as_ref().and_then(|seen| seen.code).map(|code| code.to_string()),
    });
    let calls = calls.collect();
    match finished {
        Some(Event::RunFinished { outcome, code, answer, turns, .. }) => Happened {
            outcome: word(*outcome).to_owned(),
            code: code.map(|code| code.to_string()),
            turns: *turns,
            calls,
            answer: answer.clone(),
        },
        Some(_) | None => Happened { calls, ..Happened::default() },
    }
}

fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Answered => "answered",
        Outcome::Failed => "failed",
        Outcome::Stopped => "stopped",
    }
}

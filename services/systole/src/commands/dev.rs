//! `systole dev`: one process that stays up. It holds the store and runs every thread of its agents;
//! other commands on the same store ask it. Started again, it goes on where it was.

pub(super) mod find;
mod screen;

use std::sync::Arc;
use std::time::Duration;

use ports::BusError;
use ports::journal::{Journal, Stored};
use tokio::sync::mpsc;

use self::screen::Screen;
use super::Context;
use crate::agent_files::{LoadedAgent, with_model};
use crate::arguments::Dev;
use crate::control::{self, Role};
use crate::engine::Engine;
use crate::failure::{Exit, Failure};
use crate::follow::fold;
use crate::heard::HeardJournal;
use crate::inputs::tenant;
use crate::interrupts::Interrupts;
use crate::launch::{open_door, real, remember, status};
use crate::shell;
use crate::staff::{Hands, Member, Staff};
use crate::wiring::{ChosenModel, Store, choose_model, clock};

/// Between two looks for trouble with the store.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The most threads that are looked at.
const MOST: usize = 1000;

/// Stays up until it is told to stop.
pub(crate) async fn dev(context: &Context, dev: &Dev) -> Result<Exit, Failure> {
    let mut agents = find::agents(&dev.agents, &context.environment)?;
    if let Some(model) = dev.model.model() {
        agents = agents.into_iter().map(|agent| named(agent, model)).collect();
    }
    let models: Result<Vec<ChosenModel>, Failure> =
        agents.iter().map(|agent| choose_model(agent, &dev.model)).collect();
    let models = models?;
    let members = agents.iter().zip(&models);
    let members = members.map(|(loaded, model)| Member { loaded, model }).collect();
    let staff = Staff { members, environment: &context.environment, hands: Hands::of(dev.dry_run) };
    staff.tools()?;
    let mut interrupts =
        Interrupts::listen().map_err(|error| Failure::other("signals cannot be heard", error))?;
    let (store, told) = match open(context) {
        Ok(opened) => opened,
        Err(BusError::Locked(why)) => return Err(held(context, why).await),
        Err(error) => return Err(error.into()),
    };
    let command = context.same_store(&shell::line(dev.again(&context.environment)));
    interrupts.goes_on_with(&command);
    let up = Up { context, store: &store, staff: &staff, command };
    let ended = up.run(Screen::new(context, dev.json), told, &mut interrupts).await;
    store.close().await?;
    ended
}

fn named(mut agent: LoadedAgent, model: &str) -> LoadedAgent {
    agent.agent = with_model(agent.agent, model);
    agent
}

/// The store, and its records from now on.
fn open(context: &Context) -> Result<(Store, mpsc::Receiver<Stored>), BusError> {
    let (tell, told) = std::sync::mpsc::channel();
    let store = Store::open_measured(&context.common, true, |inner| {
        let (journal, records) = HeardJournal::new(inner, clock());
        // The other end lives until this function returns.
        tell.send(records).unwrap_or_default();
        let journal: Arc<dyn Journal> = Arc::new(journal);
        journal
    })?;
    let told = told.try_recv();
    told.map(|told| (store, told)).map_err(|error| BusError::Unavailable(error.to_string()))
}

/// Somebody else holds the store: who, and what to do.
async fn held(context: &Context, why: String) -> Failure {
    let failure = Failure::from(BusError::Locked(why));
    match control::status(&real(&context.common.store)).await {
        Ok(Some(holder)) if holder.role == Role::Dev => {
            let names: Vec<&str> = holder.agents.iter().map(|agent| agent.name.as_str()).collect();
            let line = format!(
                "A dev is up on this store already (process id {}, agents: {}). `{}` hands work to \
                 it; stop it with Ctrl-C to start another.",
                holder.pid,
                names.join(", "),
                context.same_store("run AGENT \"…\"")
            );
            Failure { lines: failure.lines.into_iter().take(1).collect(), ..failure }.and(line)
        }
        Ok(Some(holder)) => failure.and(format!("It runs one run as process id {}.", holder.pid)),
        Ok(None) | Err(_) => failure,
    }
}

struct Up<'a> {
    context: &'a Context,
    store: &'a Store,
    staff: &'a Staff<'a>,
    /// Starts it again.
    command: String,
}

impl Up<'_> {
    async fn run(
        &self,
        mut screen: Screen,
        mut told: mpsc::Receiver<Stored>,
        interrupts: &mut Interrupts,
    ) -> Result<Exit, Failure> {
        let path = &self.context.common.store;
        for member in &self.staff.members {
            remember(member.loaded, path);
        }
        let mut engine = Engine::new(self.store.trouble());
        let words = self.store.start(&mut engine, self.staff).await?;
        let status = status(Role::Dev, self.staff, &words);
        open_door(path, self.store, &mut engine, status.clone());
        let unfinished = self.unfinished().await?;
        screen.up(self.context, &status, unfinished);
        screen.frozen(&self.store.frozen());
        let trouble = watch(&engine, &mut screen, &mut told, interrupts).await;
        screen.stopping();
        engine.stop().await;
        while let Ok(stored) = told.try_recv() {
            screen.record(&stored);
        }
        if let Some(error) = trouble {
            return Err(error.into());
        }
        screen.down(&self.command, self.unfinished().await?);
        Ok(Exit::Done)
    }

    async fn unfinished(&self) -> Result<usize, Failure> {
        let journal = &self.store.ports().journal;
        let mut unfinished = 0_usize;
        for place in journal.threads(&tenant(), MOST).await? {
            if !fold(journal, &place).await?.is_at_rest() {
                unfinished = unfinished.saturating_add(1);
            }
        }
        Ok(unfinished)
    }
}

/// Shows what happens until somebody says stop, or the store is in trouble, or nobody reads.
async fn watch(
    engine: &Engine,
    screen: &mut Screen,
    told: &mut mpsc::Receiver<Stored>,
    interrupts: &mut Interrupts,
) -> Option<BusError> {
    loop {
        tokio::select! {
            biased;
            () = interrupts.asked() => return None,
            record = told.recv() => match record {
                Some(stored) => screen.record(&stored),
                None => return None,
            },
            () = tokio::time::sleep(LOOK_EVERY) => {}
        }
        if let Some(error) = engine.trouble() {
            return Some(error);
        }
        if screen.is_closed() {
            return None;
        }
    }
}

//! `systole dev`: one process that stays up. It holds the store and runs every thread of its agents;
//! other commands on the same store ask it. Started again, it goes on where it was.

mod changes;
mod crew;
pub(super) mod find;
mod http;
mod joined;
mod screen;
mod shift;

use std::sync::Arc;
use std::time::Duration;

use ports::BusError;
use ports::journal::{Journal, Stored};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use self::changes::Seen;
use self::crew::Crew;
use self::http::Address;
use self::screen::Screen;
use self::shift::{Shift, unfinished};
use super::Context;
use crate::arguments::Dev;
use crate::control::{self, Asked, Fresh, Role};
use crate::engine::Engine;
use crate::failure::{Exit, Failure};
use crate::heard::HeardJournal;
use crate::interrupts::Interrupts;
use crate::launch::{open_door, real};
use crate::notices::Notices;
use crate::shell;
use crate::wiring::{Store, clock};

/// Between two looks at the files and for trouble with the store.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Stays up until it is told to stop.
pub(crate) async fn dev(context: &Context, dev: &Dev) -> Result<Exit, Failure> {
    if dev.bus.names_one(&context.environment) {
        return Box::pin(joined::dev(context, dev)).await;
    }
    if !dev.roles.is_empty() {
        let why = "--roles says which part of a deployment this is, and none is named";
        return Err(Failure::input(why).and("Name its NATS with --nats."));
    }
    let address = http::take(dev).await?;
    let (crew, seen) = Crew::read(context, dev, &[]);
    let crew = crew?;
    let mut interrupts =
        Interrupts::listen().map_err(|error| Failure::other("signals cannot be heard", error))?;
    let (store, told) = match open(context) {
        Ok(opened) => opened,
        Err(BusError::Locked(why)) => return Err(held(context, why).await),
        Err(error) => return Err(error.into()),
    };
    let command = context.same_store(&shell::line(dev.again(&context.environment)));
    interrupts.goes_on_with(&command);
    let up = Up { context, dev, store: &store, command };
    let ended = up.run((crew, seen), address, told, &mut interrupts).await;
    store.close().await?;
    ended
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
    dev: &'a Dev,
    store: &'a Store,
    /// Starts it again.
    command: String,
}

impl Up<'_> {
    async fn run(
        &self,
        read: (Crew, Seen),
        address: Address,
        told: mpsc::Receiver<Stored>,
        interrupts: &mut Interrupts,
    ) -> Result<Exit, Failure> {
        let mut screen = Screen::new(self.context, self.dev.json);
        let mut shift = Shift::begin(self.context, self.dev, self.store, read).await?;
        // The door stays open while versions of agents come and go.
        let mut front = Engine::new(self.store.trouble());
        let (fresh, asked) = Fresh::new();
        let path = &self.context.common.store;
        open_door(path, self.store, &mut front, shift.status(), Some(fresh));
        let http = http::serve(&mut front, self.store, address);
        let journal = &self.store.ports().journal;
        let status = shift.status().borrow().clone();
        screen.up(self.context, &status, unfinished(journal).await?.len(), &http);
        screen.frozen(&self.store.frozen().await);
        let mut heard = Heard { told, asked, notices: self.store.notices() };
        let watched = watch(&front, &mut screen, &mut heard, &mut shift, interrupts).await;
        screen.stopping();
        shift.end().await;
        front.stop().await;
        while let Ok(stored) = heard.told.try_recv() {
            screen.record(&stored);
        }
        watched?;
        screen.down(&self.command, unfinished(journal).await?.len());
        Ok(Exit::Done)
    }
}

/// What comes while it is up.
struct Heard {
    told: mpsc::Receiver<Stored>,
    asked: Asked,
    notices: Notices,
}

/// Shows what happens until somebody says stop, or the store is in trouble, or nobody reads.
async fn watch(
    front: &Engine,
    screen: &mut Screen,
    heard: &mut Heard,
    shift: &mut Shift<'_>,
    interrupts: &mut Interrupts,
) -> Result<(), Failure> {
    let mut next = Instant::now() + LOOK_EVERY;
    loop {
        tokio::select! {
            biased;
            () = interrupts.asked() => return Ok(()),
            asked = heard.asked.next() => {
                shift.look(screen).await?;
                asked.answer();
            }
            () = sleep_until(next) => {
                shift.look(screen).await?;
                next = Instant::now() + LOOK_EVERY;
            }
            record = heard.told.recv() => match record {
                Some(stored) => screen.record(&stored),
                None => return Ok(()),
            },
        }
        for words in heard.notices.take() {
            screen.notice(&words);
        }
        if let Some(error) = front.trouble() {
            return Err(error.into());
        }
        if screen.is_closed() {
            return Ok(());
        }
    }
}

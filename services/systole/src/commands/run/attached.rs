//! A run in the `dev` that holds the store: the message is handed over, the run is watched.

use std::path::Path;
use std::sync::Arc;

use ports::journal::Journal;
use proto::ids::{ThreadId, ThreadRef};

use super::{Desk, again, hint, keep};
use crate::agent_files::LoadedAgent;
use crate::arguments::Run;
use crate::commands::Context;
use crate::control::{self, Ask, DoorInbox, DoorLive, Reply, Role, Status};
use crate::engine::Engine;
use crate::failure::{Exit, Failure};
use crate::follow::Follower;
use crate::interrupts::Interrupts;
use crate::launch::{Aim, Found, look_back, real};
use crate::notices::Notices;
use crate::screen::View;
use crate::session::{Attached, Ending, Parts, Session};
use crate::watched::Trouble;
use crate::wiring::endings::awaited_in;
use crate::wiring::{clock, ids, read_store};

/// The `dev` that holds a store. One that does not answer counts as none: the store's lock tells.
pub(super) async fn dev(store: &Path) -> Option<Status> {
    match control::status(&real(store)).await {
        Ok(status) => status.filter(|status| status.role == Role::Dev),
        Err(error) => {
            tracing::warn!(%error, "the process that holds the store was asked and did not answer");
            None
        }
    }
}

/// A run that another process carries out.
pub(super) struct Visit<'a> {
    pub(super) context: &'a Context,
    pub(super) run: &'a Run,
    pub(super) loaded: &'a LoadedAgent,
    pub(super) status: Status,
}

impl Visit<'_> {
    pub(super) async fn run(
        &self,
        text: Option<String>,
        interrupts: &mut Interrupts,
    ) -> Result<Exit, Failure> {
        if self.run.dry_run && !self.status.dry_run {
            return Err(Failure::input(format!(
                "the dev with process id {} runs its tools for real; start it with --dry-run, or run \
                 this on another store (--store)",
                self.status.pid
            )));
        }
        let journal = read_store(&self.context.common.store)?;
        let (ids, clock) = (ids(), clock());
        let awaited = awaited_in(&self.context.common.store).await?;
        let desk = Desk {
            awaited: &awaited,
            context: self.context,
            journal: &journal,
            ids: ids.as_ref(),
            clock: clock.as_ref(),
            run: self.run,
            agent: &self.loaded.agent.name,
        };
        // Other runs go on in the dev too.
        let (aim, _) = desk.aim(text).await?;
        let place = aim.place().clone();
        interrupts.goes_on_with(&format!(
            "{} --thread {}",
            again(self.context, self.run),
            place.thread
        ));
        // Opened before the message is there, so that nothing of the run is missed.
        let live = self.listen(&place).await?;
        let found = self.hand_over(aim, &journal).await?;
        let mut parts = self.parts(Arc::clone(&journal), &place, live, &found);
        self.tell_kept_back(parts.view.as_mut()).await;
        let mut session = Session::new(parts);
        let mut engine = Engine::new(Trouble::none());
        let ending = session.watch(&mut engine, interrupts).await?;
        Ok(match ending {
            Ending::Finished(exit) => {
                self.shown(place.thread).await;
                keep(self.context, self.run, (&journal, &place), session.view()).await?;
                hint(self.context, self.run, place.thread, session.view());
                exit
            }
            Ending::Unseen(exit) => exit,
            Ending::Interrupted | Ending::PipeClosed => Exit::Interrupted,
        })
    }

    async fn listen(&self, place: &ThreadRef) -> Result<DoorLive, Failure> {
        let live = DoorLive::open(&real(&self.context.common.store), place).await;
        let live = live.map_err(|error| Failure::other("the dev that holds the store", error))?;
        live.ok_or_else(gone)
    }

    /// Files that the dev could not take up: this run has them as they were before.
    async fn tell_kept_back(&self, view: &mut dyn View) {
        let kept_back = match control::status(&real(&self.context.common.store)).await {
            Ok(status) => status.map(|status| status.kept_back).unwrap_or_default(),
            Err(error) => {
                tracing::debug!(%error, "whether files were kept back is not known");
                return;
            }
        };
        if kept_back.is_empty() {
            return;
        }
        let head = "the dev goes on with files as they were before they changed, for they cannot \
                    be used:";
        for words in std::iter::once(head).chain(kept_back.iter().map(String::as_str)) {
            // A view that nobody looks at is noticed with the first event.
            view.notice(words).unwrap_or_default();
        }
    }

    /// The next command with the same words is about another run. When this is not heard the end is
    /// shown once more, which harms nobody.
    async fn shown(&self, thread: ThreadId) {
        let told = control::ask(&real(&self.context.common.store), Ask::Shown { thread }).await;
        if let Err(error) = told {
            tracing::debug!(%error, "the dev was not told that the end was shown");
        }
    }

    /// Answers what is known of the run.
    async fn hand_over(&self, aim: Aim, journal: &Arc<dyn Journal>) -> Result<Found, Failure> {
        let Aim::Begin { place, key, message } = aim else {
            return Ok(look_back(journal, aim.place()).await?);
        };
        let fingerprint = self.loaded.agent.fingerprint.clone();
        let (thread, file) = (place.thread, Some(self.loaded.file.clone()));
        let ask = Ask::Post { thread, key, message, fingerprint, file };
        match control::ask(&real(&self.context.common.store), ask).await {
            Ok(Some(Reply::Accepted(at))) => Ok(Found::beginning(at, None)),
            Ok(Some(Reply::Refused { code, why })) => {
                Err(Failure { exit: Exit::BadInput, code, lines: vec![why] })
            }
            Ok(Some(Reply::Status(_) | Reply::Live(_) | Reply::Beat)) => {
                Err(Failure::other("the dev", "an answer to another question"))
            }
            Ok(None) => Err(gone()),
            Err(error) => Err(Failure::other("the dev that holds the store", error)),
        }
    }

    fn parts(
        &self,
        journal: Arc<dyn Journal>,
        place: &ThreadRef,
        live: DoorLive,
        found: &Found,
    ) -> Parts {
        let Status { pid, agents, .. } = &self.status;
        let known = agents.iter().find(|agent| agent.name == self.loaded.agent.name);
        let model = known.map_or("", |known| known.model.as_str());
        let mut view = self.context.view(self.run.json);
        let name = &self.loaded.agent.name;
        let intro = format!("{name} · thread {} · in dev (pid {pid}) · {model}", place.thread);
        // A view that nobody looks at is noticed with the first event.
        view.note(&intro).unwrap_or_default();
        let attached = Attached { pid: *pid, lives: live.holder() };
        let follower = Follower::new(Arc::clone(&journal), place.clone());
        Parts {
            journal,
            clock: clock(),
            inbox: Box::new(DoorInbox { store: real(&self.context.common.store) }),
            follower: follower.with_pieces(Box::new(live)),
            view,
            approve: self.run.approve.clone(),
            shown_to: found.shown_to,
            ends_after: found.ends_after,
            command: format!("{} --thread {}", again(self.context, self.run), place.thread),
            may_ask: !self.run.json,
            notices: Notices::none(),
            attached: Some(attached),
        }
    }
}

fn gone() -> Failure {
    Failure::other("the dev that held the store", "it ended in this moment")
        .and("Run the same command again.")
}

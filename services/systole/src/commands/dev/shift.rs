//! The versions of agents that a `dev` has at work: the newest takes what begins, an older one stays
//! until its runs are over.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use ports::journal::Journal;
use proto::error_code::ErrorCode;
use proto::ids::{InstanceId, ThreadId};
use service_runtime::tasks::TaskSet;
use tokio::sync::watch;

use super::changes::{Change, Seen};
use super::crew::Crew;
use super::screen::Screen;
use crate::arguments::Dev;
use crate::commands::Context;
use crate::control::{Role, Status};
use crate::engine::{Engine, Ports};
use crate::failure::{Exit, Failure};
use crate::follow::fold;
use crate::inputs::{place, tenant};
use crate::launch::{remember, status};
use crate::versions::{OwnRegistry, Sorter, Version, Versions};
use crate::wiring::Store;

/// The most threads that are looked at.
const MOST: usize = 1000;
/// How long a version may take to leave.
const LATEST: Duration = Duration::from_secs(15);
/// The most versions at work at once.
const MOST_VERSIONS: usize = 8;

/// All versions at work.
pub(super) struct Shift<'a> {
    context: &'a Context,
    dev: &'a Dev,
    store: &'a Store,
    worker: InstanceId,
    versions: Versions,
    sorter: Arc<Sorter>,
    engines: BTreeMap<Version, Engine>,
    /// Versions without runs, on their way out.
    leaving: TaskSet,
    paths: Vec<PathBuf>,
    seen: Seen,
    /// A change was read for which there was no room.
    is_behind: bool,
    status: watch::Sender<Status>,
}

impl<'a> Shift<'a> {
    /// The first version begins to work.
    pub(super) async fn begin(
        context: &'a Context,
        dev: &'a Dev,
        store: &'a Store,
        (crew, seen): (Crew, Seen),
    ) -> Result<Self, Failure> {
        let versions = Versions::one();
        let sorter = Sorter::new(Arc::clone(&store.ports().queues), versions.clone());
        let worker = store.begin().await?;
        let status = watch::Sender::new(status(Role::Dev, &crew.staff(context, dev), &[]));
        let (engines, paths) = (BTreeMap::new(), Vec::new());
        let (leaving, is_behind) = (TaskSet::new(), false);
        let mut shift = Self {
            context,
            dev,
            store,
            worker,
            versions,
            sorter,
            engines,
            leaving,
            paths,
            seen,
            is_behind,
            status,
        };
        let (engine, status) = shift.start(1, &crew).await?;
        shift.status.send_replace(status);
        shift.engines.insert(1, engine);
        shift.paths = crew.paths;
        Ok(shift)
    }

    /// What this process says of itself.
    pub(super) fn status(&self) -> watch::Receiver<Status> {
        self.status.subscribe()
    }

    fn ports(&self, version: Version) -> Ports {
        Ports {
            queues: self.sorter.of(version),
            registry: Arc::new(OwnRegistry::new()),
            ..self.store.ports().clone()
        }
    }

    /// Starts a version; answers also with what this process then says of itself.
    async fn start(&self, version: Version, crew: &Crew) -> Result<(Engine, Status), Failure> {
        for agent in &crew.agents {
            remember(agent, &self.context.common.store);
        }
        let mut engine = Engine::new(self.store.trouble());
        let staff = crew.staff(self.context, self.dev);
        let ports = self.ports(version);
        let words = self.store.start_as(&mut engine, &staff, &ports, self.worker.clone()).await?;
        Ok((engine, status(Role::Dev, &staff, &words)))
    }

    /// Ends versions whose runs are over and takes up files that have changed.
    pub(super) async fn look(&mut self, screen: &mut Screen) -> Result<(), Failure> {
        self.retire().await?;
        if self.is_behind || self.seen.is_old() {
            self.read_again(screen).await?;
        }
        Ok(())
    }

    async fn read_again(&mut self, screen: &mut Screen) -> Result<(), Failure> {
        let (crew, seen) = Crew::read(self.context, self.dev, &self.paths);
        let changed = seen.changed_since(&self.seen);
        self.seen = seen;
        let change = Change { at: self.store.ports().clock.now(), files: changed };
        // A script that was missing may be there: that changes no file that is read.
        let may_be_mended = self.is_behind || !self.status.borrow().kept_back.is_empty();
        if change.files.is_empty() && !may_be_mended {
            return Ok(());
        }
        match crew {
            Err(failure) => {
                self.is_behind = false;
                self.keep_back(&failure, &change, screen);
            }
            Ok(_) if self.engines.len() >= MOST_VERSIONS => {
                self.is_behind = true;
                self.keep_back(&crowded(), &change, screen);
            }
            Ok(crew) => {
                self.is_behind = false;
                self.change(crew, &change, screen).await?;
            }
        }
        Ok(())
    }

    /// The files stay as they were read before: told here, and to whoever asks for a run.
    fn keep_back(&self, failure: &Failure, change: &Change, screen: &mut Screen) {
        if self.status.borrow().kept_back == failure.lines {
            return;
        }
        screen.kept(failure, change);
        self.status.send_modify(|status| status.kept_back.clone_from(&failure.lines));
    }

    /// Runs under way stay with the version that began them. Until it is known which those are,
    /// nothing begins.
    async fn change(
        &mut self,
        crew: Crew,
        change: &Change,
        screen: &mut Screen,
    ) -> Result<(), Failure> {
        let version = self.versions.newest().saturating_add(1);
        let (engine, status) = match self.start(version, &crew).await {
            Ok(started) => started,
            Err(failure) => {
                self.keep_back(&failure, change, screen);
                return Ok(());
            }
        };
        self.engines.insert(version, engine);
        self.versions.pause();
        match unfinished(&self.store.ports().journal).await {
            Ok(threads) => self.versions.renew(threads),
            Err(failure) => {
                self.versions.keep();
                return Err(failure);
            }
        }
        self.paths = crew.paths;
        // Whoever asks for the new files from now on gets them.
        self.status.send_replace(status);
        screen.taken_up(&self.status.borrow(), change);
        self.retire().await
    }

    /// Lets go of threads at rest, and of versions without any.
    async fn retire(&mut self) -> Result<(), Failure> {
        let older: Vec<Version> = self
            .engines
            .keys()
            .copied()
            .filter(|version| *version != self.versions.newest())
            .collect();
        for version in older {
            for thread in self.versions.held_by(version) {
                if fold(&self.store.ports().journal, &place(thread)).await?.is_at_rest() {
                    self.versions.release(thread);
                }
            }
            if self.versions.held_by(version).is_empty()
                && let Some(mut engine) = self.engines.remove(&version)
            {
                let sorter = Arc::clone(&self.sorter);
                self.leaving.start("version", async move {
                    engine.stop().await;
                    sorter.retire(version).await;
                });
            }
        }
        Ok(())
    }

    /// Lets all finish what they hold, then ends the rest.
    pub(super) async fn end(&mut self) {
        join_all(self.engines.values_mut().map(Engine::stop)).await;
        self.leaving.finish(LATEST).await;
    }
}

fn crowded() -> Failure {
    let why = format!(
        "{MOST_VERSIONS} versions of these agents have runs under way; the files are taken up when \
         one of them is done. `systole threads` lists what waits."
    );
    Failure { exit: Exit::BadInput, code: ErrorCode::VersionMismatch, lines: vec![why] }
}

/// The threads whose runs are not over.
pub(super) async fn unfinished(journal: &Arc<dyn Journal>) -> Result<Vec<ThreadId>, Failure> {
    let mut unfinished = Vec::new();
    for place in journal.threads(&tenant(), MOST).await? {
        if !fold(journal, &place).await?.is_at_rest() {
            unfinished.push(place.thread);
        }
    }
    Ok(unfinished)
}

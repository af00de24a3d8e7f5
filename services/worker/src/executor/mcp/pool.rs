//! The instances of one server: started before they are needed, used one call at a time, replaced when
//! they die.

use std::sync::Arc;
use std::time::Duration;

use definitions::mcp::{LiveTool, McpServer};
use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{Instant, sleep_until};

use super::super::NotStarted;
use super::super::http::Tls;
use super::super::settings::ExecutorSettings;
use super::instance::Instance;

/// The pause after the first failure; it doubles up to the longest.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// An instance that lived so long did not die of how it was started.
const STEADY: Duration = Duration::from_mins(1);

/// The instances of one server.
pub(super) struct Pool {
    server: McpServer,
    settings: ExecutorSettings,
    tls: Tls,
    slots: Arc<Semaphore>,
    idle: Mutex<Vec<Instance>>,
    rest: watch::Sender<Rest>,
    changes: Arc<watch::Sender<u64>>,
    /// Counts instances that are gone.
    lost: watch::Sender<u64>,
}

/// When the server may be started again.
#[derive(Clone, Copy, Debug, Default)]
struct Rest {
    failures: u32,
    until: Option<Instant>,
    begun: Option<Instant>,
}

impl Rest {
    fn failed(&mut self, now: Instant) {
        if self.begun.is_some_and(|begun| now.duration_since(begun) >= STEADY) {
            self.failures = 0;
        }
        let pause = PAUSE.saturating_mul(1 << self.failures.min(10)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.until = Some(now + pause);
    }

    /// A server that answered a call is well.
    fn is_well(&mut self) {
        (self.failures, self.until) = (0, None);
    }
}

impl Pool {
    pub(super) fn new(server: McpServer, settings: &ExecutorSettings) -> Self {
        let instances = usize::try_from(server.instances).unwrap_or(1).max(1);
        Self {
            server,
            // Its own servers would hold the settings that hold the servers.
            settings: ExecutorSettings { mcp: super::McpServers::default(), ..settings.clone() },
            tls: Tls::default(),
            slots: Arc::new(Semaphore::new(instances)),
            idle: Mutex::default(),
            rest: watch::Sender::default(),
            changes: Arc::default(),
            lost: watch::Sender::default(),
        }
    }

    pub(super) fn is_of(&self, server: &McpServer) -> bool {
        self.server == *server
    }

    pub(super) fn server(&self) -> &McpServer {
        &self.server
    }

    /// Counts how often the server said that its tools have changed.
    pub(super) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Counts instances that are gone.
    pub(super) fn lost(&self) -> watch::Receiver<u64> {
        self.lost.subscribe()
    }

    /// An instance for one call: a warm one, else a fresh one. Waits for a slot, and while the server
    /// rests; how long, its caller says.
    pub(super) async fn take(self: &Arc<Self>) -> Result<Lease, NotStarted> {
        let permit = Arc::clone(&self.slots).acquire_owned().await.map_err(|_closed| {
            NotStarted { why: "the MCP server is closed".to_owned(), retryable: false }
        })?;
        loop {
            let Some(warm) = self.idle.lock().await.pop() else { break };
            if warm.is_fit().await {
                return Ok(self.lease(warm, permit));
            }
            self.gone(warm, true).await;
        }
        let fresh = self.start().await?;
        Ok(self.lease(fresh, permit))
    }

    fn lease(self: &Arc<Self>, instance: Instance, permit: OwnedSemaphorePermit) -> Lease {
        Lease { instance: Some(instance), pool: Arc::clone(self), begun: false, _permit: permit }
    }

    async fn start(&self) -> Result<Instance, NotStarted> {
        let until = self.rest.borrow().until;
        if let Some(until) = until {
            sleep_until(until).await;
        }
        let changes = Arc::clone(&self.changes);
        let started = Instance::start(&self.server, &self.settings, &self.tls, changes).await;
        let now = Instant::now();
        match &started {
            Ok(_) => self.rest.send_modify(|rest| rest.begun = Some(now)),
            Err(_) => self.rest.send_modify(|rest| rest.failed(now)),
        }
        started
    }

    /// An instance is no more; one that died by itself lets the next one wait.
    async fn gone(&self, instance: Instance, died: bool) {
        if died {
            let errors = instance.errors();
            tracing::warn!(server = super::named(&self.server), errors, "an MCP server died");
            self.rest.send_modify(|rest| rest.failed(Instant::now()));
        }
        instance.end().await;
        self.lost.send_modify(|lost| *lost = lost.saturating_add(1));
    }

    /// Starts what is missing, one after another, so that every free slot has an instance.
    pub(super) async fn warm(self: &Arc<Self>) -> Result<(), NotStarted> {
        self.bury().await;
        while let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned() {
            let warm = self.idle.lock().await.len();
            if warm > self.slots.available_permits() {
                break;
            }
            let fresh = self.start().await?;
            self.lease(fresh, permit).give_back(false).await;
        }
        Ok(())
    }

    /// Puts instances aside that died while nobody used them.
    async fn bury(&self) {
        let mut idle = self.idle.lock().await;
        let (dead, living) =
            std::mem::take(&mut *idle).into_iter().partition::<Vec<_>, _>(Instance::is_dead);
        *idle = living;
        drop(idle);
        for instance in dead {
            self.gone(instance, true).await;
        }
    }

    /// What the server says of its tools.
    pub(super) async fn tools(self: &Arc<Self>) -> Result<Vec<LiveTool>, String> {
        let limit = Duration::from_millis(self.server.start_timeout_ms);
        let lease = self.take().await.map_err(|not_started| not_started.why)?;
        let listed = match lease.instance() {
            Some(instance) => instance.tools(limit).await,
            None => Err("no instance".to_owned()),
        };
        match &listed {
            Ok(_) => lease.give_back(false).await,
            Err(_) => lease.discard(true).await,
        }
        listed
    }

    /// Ends every instance that waits.
    pub(super) async fn close(&self) {
        let idle = std::mem::take(&mut *self.idle.lock().await);
        for instance in idle {
            instance.end().await;
        }
    }
}

/// An instance that works for one call. Dropping it ends the instance, if the call had begun.
pub(super) struct Lease {
    instance: Option<Instance>,
    pool: Arc<Pool>,
    begun: bool,
    _permit: OwnedSemaphorePermit,
}

impl Lease {
    pub(super) fn instance(&self) -> Option<&Instance> {
        self.instance.as_ref()
    }

    pub(super) fn server(&self) -> &McpServer {
        &self.pool.server
    }

    /// Its call may have begun from here on.
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    /// It is free again; `well` when it answered a call.
    pub(super) async fn give_back(mut self, well: bool) {
        let Some(mut instance) = self.instance.take() else { return };
        if well {
            instance.was_used();
            self.pool.rest.send_if_modified(|rest| {
                let was_ill = rest.failures > 0;
                rest.is_well();
                was_ill
            });
        }
        self.pool.idle.lock().await.push(instance);
    }

    /// It is not used again; when this returns, nothing of its process is left.
    pub(super) async fn discard(mut self, died: bool) {
        if let Some(instance) = self.instance.take() {
            self.pool.gone(instance, died).await;
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(instance) = self.instance.take() else { return };
        // One that nobody has asked for anything is as good as it was.
        let idle = self.pool.idle.try_lock().ok().filter(|_| !self.begun);
        if let Some(mut idle) = idle {
            idle.push(instance);
        } else {
            // Its socket closes, and the guard ends the process.
            drop(instance);
            self.pool.lost.send_modify(|lost| *lost = lost.saturating_add(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_pause_grows_while_a_server_keeps_dying_and_ends_when_it_is_well() {
        let now = Instant::now();
        let mut rest = Rest::default();
        let mut pauses = Vec::new();
        for _ in 0..10 {
            rest.failed(now);
            pauses.push(rest.until.map(|until| (until - now).as_millis()).unwrap_or_default());
        }
        assert_eq!(pauses, [200, 400, 800, 1600, 3200, 6400, 12_800, 25_600, 30_000, 30_000]);
        rest.is_well();
        rest.failed(now);
        assert_eq!(rest.until, Some(now + PAUSE));
        rest.begun = Some(now);
        rest.failed(now + STEADY);
        assert_eq!(rest.until, Some(now + STEADY + PAUSE), "one that lived long begins anew");
    }
}

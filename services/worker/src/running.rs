//! Calls that this process works on: each once, each with the token that stops it.

use std::collections::BTreeMap;
use std::sync::Arc;

use ports::reads::ReadKey;
use proto::ids::{ThreadRef, ToolCallId, ToolName};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Names a call across threads.
pub(crate) type CallKey = (ThreadRef, ToolCallId);

#[derive(Clone, Debug)]
struct Entry {
    cancel: CancellationToken,
    leased: bool,
    upkeep: Vec<Upkeep>,
}

/// What is kept for a call besides its lease.
#[derive(Clone, Debug)]
pub(crate) struct Upkeep {
    /// The call and its worker.
    pub(crate) who: String,
    /// The read that others wait for.
    pub(crate) read: Option<ReadKey>,
    /// A place of its tool, which has so many.
    pub(crate) place: Option<(ToolName, u32)>,
}

/// All calls in work.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    calls: Arc<watch::Sender<BTreeMap<CallKey, Entry>>>,
}

/// Keeps one call in the table until it is dropped, also by a panic.
#[derive(Debug)]
pub(crate) struct RunningGuard {
    running: Running,
    key: CallKey,
    cancel: CancellationToken,
}

impl Running {
    pub(crate) fn new() -> Self {
        Self { calls: Arc::new(watch::Sender::new(BTreeMap::new())) }
    }

    /// Takes a call into work, unless it is already.
    pub(crate) fn begin(&self, key: &CallKey) -> Option<RunningGuard> {
        let cancel = CancellationToken::new();
        let begun = self.calls.send_if_modified(|calls| {
            let is_new = !calls.contains_key(key);
            if is_new {
                let entry = Entry { cancel: cancel.clone(), leased: false, upkeep: Vec::new() };
                calls.insert(key.clone(), entry);
            }
            is_new
        });
        begun.then(|| RunningGuard { running: self.clone(), key: key.clone(), cancel })
    }

    /// Stops a call, if it is here.
    pub(crate) fn cancel(&self, key: &CallKey) {
        if let Some(entry) = self.calls.borrow().get(key) {
            entry.cancel.cancel();
        }
    }

    /// The calls in work, whether each holds a lease, and what else is kept for it.
    pub(crate) fn all(&self) -> Vec<(CallKey, bool, Vec<Upkeep>)> {
        let calls = self.calls.borrow();
        calls.iter().map(|(key, call)| (key.clone(), call.leased, call.upkeep.clone())).collect()
    }
}

impl RunningGuard {
    /// Fires when the call is to stop.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    /// The call holds a lease from here on, or no more.
    pub(crate) fn set_leased(&self, leased: bool) {
        self.running.calls.send_modify(|calls| {
            if let Some(entry) = calls.get_mut(&self.key) {
                entry.leased = leased;
            }
        });
    }
}

impl RunningGuard {
    /// Something more is kept for the call from here on, until its end.
    pub(crate) fn keep_up(&self, upkeep: Upkeep) {
        self.running.calls.send_modify(|calls| {
            if let Some(entry) = calls.get_mut(&self.key) {
                entry.upkeep.push(upkeep);
            }
        });
    }
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.running.calls.send_modify(|calls| {
            calls.remove(&self.key);
        });
    }
}

//! What all tasks of a worker share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ports::BusError;
use proto::freeze::Freeze;
use proto::ids::Nonce;
use service_runtime::held::Held;
use service_runtime::server_time::ServerTime;
use service_runtime::shutdown::Shutdown;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::config::{WorkerConfig, WorkerPorts};
use crate::room::RoomView;
use crate::running::Running;

pub(crate) struct Shared {
    pub(crate) ports: WorkerPorts,
    pub(crate) config: WorkerConfig,
    pub(crate) time: ServerTime,
    pub(crate) held: Held,
    pub(crate) running: Running,
    pub(crate) unused: UnusedStarts,
    pub(crate) shutdown: Shutdown,
    pub(crate) room: RoomView,
    /// What was frozen when it was last asked for.
    freezes: watch::Sender<Option<(Instant, Arc<[Freeze]>)>>,
}

impl Shared {
    pub(crate) fn new(ports: WorkerPorts, config: WorkerConfig, shutdown: Shutdown) -> Self {
        let room = RoomView::new(config.least_room);
        let time =
            ServerTime::new(Arc::clone(&ports.clock)).telling(config.metrics.clock_ahead.clone());
        Self {
            ports,
            config,
            time,
            held: Held::default(),
            running: Running::new(),
            unused: UnusedStarts::new(),
            shutdown,
            room,
            freezes: watch::Sender::default(),
        }
    }

    /// What is frozen, as it was asked for no longer than `age` ago. Whoever finds it older asks
    /// anew: nobody waits for the answer of somebody else.
    pub(crate) async fn frozen(&self, age: Duration) -> Result<Arc<[Freeze]>, BusError> {
        let known = self.freezes.borrow().clone().filter(|(at, _)| at.elapsed() < age);
        if let Some((_, frozen)) = known {
            return Ok(frozen);
        }
        let asked = Instant::now();
        let frozen: Arc<[Freeze]> = self.ports.freezes.frozen().await?.into();
        self.freezes.send_if_modified(|known| {
            let newer = known.as_ref().is_none_or(|(at, _)| *at < asked);
            if newer {
                *known = Some((asked, Arc::clone(&frozen)));
            }
            newer
        });
        Ok(frozen)
    }
}

/// Start records of this process that may have landed and whose effect certainly never began.
pub(crate) struct UnusedStarts {
    nonces: watch::Sender<BTreeSet<Nonce>>,
}

impl UnusedStarts {
    fn new() -> Self {
        Self { nonces: watch::Sender::new(BTreeSet::new()) }
    }

    pub(crate) fn add(&self, nonce: Nonce) {
        self.nonces.send_modify(|nonces| {
            nonces.insert(nonce);
        });
    }

    pub(crate) fn contains(&self, nonce: &Nonce) -> bool {
        self.nonces.borrow().contains(nonce)
    }

    pub(crate) fn remove(&self, nonce: &Nonce) {
        self.nonces.send_modify(|nonces| {
            nonces.remove(nonce);
        });
    }
}

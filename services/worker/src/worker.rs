//! The worker's tasks, and how they stop.

use std::sync::Arc;
use std::time::Duration;

use service_runtime::shutdown::Shutdown;
use service_runtime::tasks::TaskSet;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use crate::config::{WorkerConfig, WorkerPorts};
use crate::handling::handle;
use crate::intake::{Intake, Taken, queues};
use crate::report::{keep_telling, tell_all};
use crate::shared::Shared;
use crate::tools::Tools;
use crate::{hints, keeper, offer};

/// Before the first measurement of the bus's time is tried again.
const MEASURE_AGAIN: Duration = Duration::from_millis(500);
/// How long the bus may take to have heard the last acknowledgements.
const LAST_WORD: Duration = Duration::from_secs(2);

/// Executes tool calls until it is told to stop.
pub struct Worker {
    ports: WorkerPorts,
    tools: Tools,
    config: WorkerConfig,
}

impl Worker {
    /// A worker that serves `tools`.
    pub fn new(ports: WorkerPorts, tools: Tools, config: WorkerConfig) -> Self {
        Self { ports, tools, config }
    }

    /// Works until `shutdown` drains: takes nothing new, ends what runs within the grace, gives the
    /// rest back. Dropping the future is like a crash of the process.
    pub async fn run(self, shutdown: Shutdown) {
        let Self { ports, tools, config } = self;
        let shared = Arc::new(Shared::new(ports, config, shutdown));
        let mut upkeep = TaskSet::new();
        let queues = Arc::clone(&shared.ports.queues);
        upkeep.start("keep deliveries", shared.held.clone().keep_alive(queues));
        upkeep.start("keep leases", keeper::keep_calls(Arc::clone(&shared)));
        upkeep.start("hear hints", hints::listen(Arc::clone(&shared)));
        upkeep.start("tell outcomes", keep_telling(Arc::clone(&shared), tools.clone()));
        let mut offers = TaskSet::new();
        offers.start("offer tools", offer::keep(Arc::clone(&shared), tools.clone()));
        for source in tools.sources() {
            upkeep.start("keep a tool server", source.clone().follow(tools.clone()));
        }
        if !know_the_time(&shared).await {
            return;
        }
        upkeep.start("measure time", measure(Arc::clone(&shared)));
        let rest = work(&shared, &tools).await;
        drop(offers);
        offer::withdraw(&shared).await;
        drain(&shared, rest).await;
        tell_all(&shared, &tools).await;
        be_heard(&shared).await;
        drop(upkeep);
        for source in tools.sources() {
            source.close().await;
        }
    }
}

/// What is under way when the worker drains.
struct Rest {
    taken: mpsc::Receiver<Taken>,
    calls: TaskSet,
}

/// Nothing is decided before the bus's time is known; answers whether it is.
async fn know_the_time(shared: &Shared) -> bool {
    loop {
        match shared.time.measure(shared.ports.journal.as_ref()).await {
            Ok(()) => return true,
            Err(error) => tracing::warn!(%error, "the bus's time is not known yet"),
        }
        tokio::select! {
            biased;
            () = shared.shutdown.draining() => return false,
            () = sleep(MEASURE_AGAIN) => {}
        }
    }
}

async fn measure(shared: Arc<Shared>) {
    shared.time.keep_measuring(shared.ports.journal.as_ref()).await;
}

/// Pulls and handles until told to drain.
async fn work(shared: &Arc<Shared>, tools: &Tools) -> Rest {
    let most = shared.config.slots.max(1);
    shared.config.metrics.slots.set(i64::try_from(most).unwrap_or(i64::MAX));
    let slots = Arc::new(Semaphore::new(most));
    let (sender, mut taken) = mpsc::channel(most);
    let mut pulls = TaskSet::new();
    let queues = queues(shared, tools);
    let share = shared.config.slots.checked_div(queues.len()).unwrap_or(1).max(1);
    for (queue, tool) in queues {
        let intake = Intake {
            shared: Arc::clone(shared),
            queue,
            tool,
            tools: tools.clone(),
            slots: Arc::clone(&slots),
            share,
            sender: sender.clone(),
        };
        pulls.start("pull", intake.pull());
    }
    drop(sender);
    let mut calls = TaskSet::new();
    while let Some(Taken { delivery, tool, permit }) = next(shared, &mut taken, &mut calls).await {
        calls.start("tool call", handle(Arc::clone(shared), tool, delivery, permit));
    }
    Rest { taken, calls }
}

/// The next delivery; `None` when there will be none.
async fn next(
    shared: &Shared,
    taken: &mut mpsc::Receiver<Taken>,
    calls: &mut TaskSet,
) -> Option<Taken> {
    loop {
        tokio::select! {
            biased;
            () = shared.shutdown.draining() => return None,
            next = taken.recv() => return next,
            () = calls.ended() => {}
        }
    }
}

/// Ends what runs within the grace and gives the rest back.
async fn drain(shared: &Shared, rest: Rest) {
    let Rest { mut taken, mut calls } = rest;
    taken.close();
    while let Ok(late) = taken.try_recv() {
        give_back(shared, &late.delivery.token).await;
    }
    let all_ended = async {
        while !calls.is_empty() {
            calls.ended().await;
        }
    };
    tokio::select! {
        biased;
        () = shared.shutdown.abandoned() => {}
        () = all_ended => {}
        () = sleep(shared.config.drain) => {}
    }
    let held = shared.held.all();
    drop(calls);
    for token in held {
        give_back(shared, &token).await;
    }
}

/// Acknowledgements are said and not answered: a process that ends at once takes the last ones with
/// it, and the calls come again. When the bus has answered what was asked after them, it has them.
async fn be_heard(shared: &Shared) {
    let asked = shared.ports.journal.server_time();
    if !matches!(timeout(LAST_WORD, asked).await, Ok(Ok(_))) {
        tracing::debug!("the bus may have missed the last acknowledgements; calls come again");
    }
}

async fn give_back(shared: &Shared, token: &ports::queues::DeliveryToken) {
    if let Err(error) = shared.ports.queues.nak(token, Duration::ZERO).await {
        tracing::debug!(%error, "a delivery was not given back; it comes back by itself");
    }
}

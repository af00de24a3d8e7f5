//! A process of its own: it says that it lives while it still waits for its servers, works, and
//! stops in two steps when it is told to.

use std::future::Future;
use std::io::{self, Write};
use std::time::Duration;

use ports::BusError;
use prometheus::Registry;
use service_runtime::health::Health;
use service_runtime::probes;
use service_runtime::shutdown::Shutdown;
use service_runtime::tasks::TaskSet;
use tokio::net::TcpListener;

use super::settings::Life;
use crate::failure::{Exit, Failure};
use crate::interrupts::Interrupts;

/// How long after its grace a service may take to be gone.
const LAST: Duration = Duration::from_secs(5);

/// A process that was started and does not work yet.
pub(crate) struct Process {
    life: Life,
    interrupts: Interrupts,
    pub(crate) health: Health,
    listener: Option<TcpListener>,
}

impl Process {
    /// Takes its address and hears signals from now on.
    pub(crate) async fn start(life: Life) -> Result<Self, Failure> {
        let interrupts = Interrupts::listen()
            .map_err(|error| Failure::other("signals cannot be heard", error))?;
        let listener = match life.listen {
            Some(address) => Some(TcpListener::bind(address).await.map_err(|error| {
                Failure::input(format!("{address} cannot be listened on: {error}"))
                    .and("Choose another address with --listen, or `--listen off`.")
            })?),
            None => None,
        };
        Ok(Self { life, interrupts, health: Health::starting(), listener })
    }

    /// Its address once more, for a service that takes over when it is ready.
    pub(crate) fn listener(&mut self) -> Result<TcpListener, Failure> {
        let again = |listener: TcpListener| {
            let first = listener.into_std()?;
            let second = first.try_clone()?;
            io::Result::Ok((TcpListener::from_std(first)?, TcpListener::from_std(second)?))
        };
        let taken = self.listener.take().ok_or_else(|| io::Error::other("nothing is listened on"));
        let (first, second) = taken
            .and_then(again)
            .map_err(|error| Failure::other("the address to listen on", error))?;
        self.listener = Some(first);
        Ok(second)
    }

    /// Serves health and metrics in `tasks`, and says where.
    pub(crate) fn serve(&mut self, tasks: &mut TaskSet, metrics: Vec<Registry>) {
        let Some(listener) = self.listener.take() else { return };
        if let Ok(address) = listener.local_addr() {
            // Nobody may be reading; the address is for whoever chose port 0.
            writeln!(io::stdout(), "listening on http://{address}").unwrap_or_default();
        }
        tasks.start("probes", probes::serve(listener, self.health.clone(), metrics));
    }

    /// What comes of `work`, unless the end is asked for first.
    pub(crate) async fn unless_asked<T>(
        &mut self,
        work: impl Future<Output = Result<T, Failure>>,
    ) -> Result<Option<T>, Failure> {
        tokio::select! {
            biased;
            () = self.interrupts.asked() => Ok(None),
            done = work => done.map(Some),
        }
    }

    /// Runs a service until it is told to stop and has let go of what it held.
    pub(crate) async fn run(
        mut self,
        service: impl Future<Output = Result<(), BusError>>,
        shutdown: Shutdown,
    ) -> Result<Exit, Failure> {
        tokio::pin!(service);
        self.health.started();
        tokio::select! {
            biased;
            () = self.interrupts.asked() => {}
            ended = &mut service => return ended.map(|()| Exit::Done).map_err(Failure::from),
        }
        tracing::info!(grace_s = self.life.grace.as_secs(), "stopping: nothing new is taken");
        let draining = shutdown.clone();
        self.health.needs(move || draining.is_draining().then(|| "draining".to_owned()));
        shutdown.drain();
        let longest = self.life.grace.saturating_add(LAST);
        if let Ok(ended) = tokio::time::timeout(longest, &mut service).await {
            tracing::info!("stopped; nothing is held");
            return ended.map(|()| Exit::Done).map_err(Failure::from);
        }
        tracing::warn!("what is still held comes back to others by itself");
        shutdown.abandon();
        Ok(Exit::Done)
    }
}

//! How the tools of a world are carried out: everything they do is in the ledger.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::observation::Receipt;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use worker::executor::{Ended, Executor, Job, NotStarted, Output, Prepared};

use crate::shared::Shared;
use crate::tools::{Behaviour, duration_of};

/// Runs every tool of a world.
pub struct SimExecutor {
    /// The world.
    pub shared: Arc<Shared>,
}

/// Looks whether a call's effect is there.
pub struct SimProbe {
    /// The world.
    pub shared: Arc<Shared>,
}

struct Attempt {
    shared: Arc<Shared>,
    job: Job,
}

struct Look {
    shared: Arc<Shared>,
    job: Job,
}

fn output(text: &str) -> Output {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    Output { total: u64::try_from(bytes.len()).unwrap_or(0), bytes }
}

#[async_trait]
impl Executor for SimExecutor {
    async fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>, NotStarted> {
        let times = self.shared.state().ledger.prepared(&job.call.tool_call_id);
        if Behaviour::of(&job.call) == Behaviour::NotStarted && times == 1 {
            return Err(NotStarted { why: "it cannot be found".to_owned(), retryable: true });
        }
        Ok(Box::new(Attempt { shared: Arc::clone(&self.shared), job: job.clone() }))
    }
}

#[async_trait]
impl Prepared for Attempt {
    fn process_group(&self) -> Option<i32> {
        None
    }

    async fn run(self: Box<Self>, deadline: Instant, cancel: CancellationToken) -> Ended {
        self.shared.began(&self.job.thread, &self.job.call, self.job.attempt);
        let landed = Arc::new(CancellationToken::new());
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                let began = landed.is_cancelled();
                let receipt =
                    if began { Receipt::StoppedAfterEffectBegan } else { Receipt::Unknown };
                Ended::Cancelled { output: output("stopped"), receipt }
            }
            () = sleep_until(deadline) => Ended::TimedOut { output: output("killed") },
            ended = self.go(&landed) => ended,
        }
    }
}

impl Attempt {
    /// The effect lands half way.
    async fn go(&self, landed: &CancellationToken) -> Ended {
        let (call, half) = (&self.job.call, duration_of(&self.job.call) / 2);
        let behaviour = Behaviour::of(call);
        let first = self.shared.state().ledger.of(&call.tool_call_id).began.len() == 1;
        sleep(half).await;
        let lands = match behaviour {
            Behaviour::Done | Behaviour::Crashes | Behaviour::NotStarted => true,
            Behaviour::Hangs => half.as_millis() % 2 == 0,
            Behaviour::Flaky => !first,
            Behaviour::Fails => false,
        };
        if lands {
            landed.cancel();
            self.shared.landed(call);
        }
        sleep(half).await;
        match behaviour {
            Behaviour::Crashes => {
                Ended::Crashed { output: output("oh"), why: "by signal 9".to_owned() }
            }
            Behaviour::Hangs => loop {
                sleep(Duration::from_hours(1)).await;
            },
            Behaviour::Flaky if first => failed("not this time", true),
            Behaviour::Fails => failed("never", false),
            Behaviour::Done | Behaviour::NotStarted | Behaviour::Flaky => {
                Ended::Done(output(&format!("{} did it", call.tool)))
            }
        }
    }
}

fn failed(why: &str, retryable: bool) -> Ended {
    Ended::Failed { output: output("no"), why: why.to_owned(), retryable }
}

#[async_trait]
impl Executor for SimProbe {
    async fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>, NotStarted> {
        Ok(Box::new(Look { shared: Arc::clone(&self.shared), job: job.clone() }))
    }
}

#[async_trait]
impl Prepared for Look {
    fn process_group(&self) -> Option<i32> {
        None
    }

    async fn run(self: Box<Self>, _: Instant, _: CancellationToken) -> Ended {
        sleep(Duration::from_millis(20)).await;
        if self.shared.has_landed(&self.job.call.tool_call_id) {
            Ended::Done(output("it is there"))
        } else {
            failed("it is not there", false)
        }
    }
}

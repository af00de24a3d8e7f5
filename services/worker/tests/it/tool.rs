//! A tool by script.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use proto::observation::Receipt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use worker::executor::{Ended, Executor, Job, NotStarted, Output, Prepared};

/// What one attempt does.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Writes this after 100 ms.
    Say(&'static str),
    /// Writes `done` after this many seconds.
    Slow(u64),
    /// Is made ready after this many seconds, then writes `done`.
    SlowReady(u64),
    /// Writes this much at once.
    Flood(usize),
    /// Fails in a way that may pass.
    Fail,
    /// Crashes.
    Crash,
    /// Never ends by itself, but keeps its deadline and hears a cancel.
    Hang,
    /// Ended well, and says so only after this many milliseconds: the process stood still.
    Belated(u64),
    /// Never ends and hears nothing.
    Deaf,
    /// Is never made ready.
    Unready,
    /// Cannot be made ready.
    Refused {
        /// Whether another try may succeed.
        retryable: bool,
    },
    /// Is ready and then cannot begin.
    NotBegun,
}

/// Plays its acts one by one, the last one for ever; counts effects.
#[derive(Clone, Debug)]
pub(crate) struct ScriptedTool {
    state: Arc<watch::Sender<State>>,
}

#[derive(Clone, Debug, Default)]
struct State {
    acts: VecDeque<Act>,
    prepared: usize,
    effects: Vec<(String, u32)>,
    now: usize,
    most: usize,
}

/// Counts an effect for as long as it lasts.
struct Lasting(ScriptedTool);

impl Lasting {
    fn of(tool: &ScriptedTool) -> Self {
        tool.state.send_modify(|state| {
            state.now += 1;
            state.most = state.most.max(state.now);
        });
        Self(tool.clone())
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        self.0.state.send_modify(|state| state.now -= 1);
    }
}

struct Ready {
    tool: ScriptedTool,
    act: Act,
    job: Job,
}

impl ScriptedTool {
    pub(crate) fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let state = State { acts: acts.into_iter().collect(), ..State::default() };
        Self { state: Arc::new(watch::Sender::new(state)) }
    }

    /// How often an effect began, with the idempotency key and the attempt.
    pub(crate) fn effects(&self) -> Vec<(String, u32)> {
        self.state.borrow().effects.clone()
    }

    /// The most effects that lasted at one time.
    pub(crate) fn most_at_once(&self) -> usize {
        self.state.borrow().most
    }

    pub(crate) fn prepared(&self) -> usize {
        self.state.borrow().prepared
    }

    fn next(&self) -> Act {
        let mut next = None;
        self.state.send_modify(|state| {
            state.prepared += 1;
            next = if state.acts.len() > 1 {
                state.acts.pop_front()
            } else {
                state.acts.front().cloned()
            };
        });
        next.unwrap()
    }
}

#[async_trait]
impl Executor for ScriptedTool {
    async fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>, NotStarted> {
        let act = self.next();
        if let Act::Unready = act {
            std::future::pending::<()>().await;
        }
        if let Act::SlowReady(seconds) = act {
            sleep(Duration::from_secs(seconds)).await;
        }
        if let Act::Refused { retryable } = act {
            return Err(NotStarted { why: "refused".into(), retryable });
        }
        Ok(Box::new(Ready { tool: self.clone(), act, job: job.clone() }))
    }
}

fn output(text: impl Into<Bytes>) -> Output {
    let bytes = text.into();
    Output { total: u64::try_from(bytes.len()).unwrap(), bytes }
}

#[async_trait]
impl Prepared for Ready {
    fn process_group(&self) -> Option<i32> {
        None
    }

    async fn run(self: Box<Self>, deadline: Instant, cancel: CancellationToken) -> Ended {
        if let Act::NotBegun = self.act {
            return Ended::NotStarted(NotStarted {
                why: "connection refused".into(),
                retryable: true,
            });
        }
        let began = (self.job.call.idempotency_key.clone(), self.job.attempt);
        self.tool.state.send_modify(|state| state.effects.push(began));
        let _lasting = Lasting::of(&self.tool);
        match self.act {
            Act::Say(text) => {
                sleep(Duration::from_millis(100)).await;
                Ended::Done(output(text))
            }
            Act::Slow(seconds) => {
                sleep(Duration::from_secs(seconds)).await;
                Ended::Done(output("done"))
            }
            Act::SlowReady(_) => Ended::Done(output("done")),
            Act::Flood(bytes) => Ended::Done(output("x".repeat(bytes))),
            Act::Fail => {
                Ended::Failed { output: output("busy"), why: "exit 75".into(), retryable: true }
            }
            Act::Crash => Ended::Crashed { output: output("half"), why: "signal 9".into() },
            Act::Belated(millis) => {
                sleep(Duration::from_millis(millis)).await;
                Ended::Done(output("done"))
            }
            Act::Deaf => std::future::pending().await,
            Act::Hang => tokio::select! {
                biased;
                () = cancel.cancelled() => Ended::Cancelled {
                    output: output("so far"),
                    receipt: Receipt::StoppedAfterEffectBegan,
                },
                () = sleep_until(deadline) => Ended::TimedOut { output: output("so far") },
            },
            Act::Unready | Act::Refused { .. } | Act::NotBegun => unreachable!("never ready"),
        }
    }
}

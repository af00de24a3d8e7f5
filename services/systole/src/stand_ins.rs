//! What tools say in a rehearsed case, in place of running.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use ports::model::Model;
use proto::ids::{ThreadRef, ToolCallId};
use proto::observation::Receipt;
use rehearsal::case::{Case, Says, StandIn, Steer};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use worker::executor::{Ended, Executor, Job, NotStarted, Output, Prepared};

use crate::engine::Ports;
use crate::failure::Failure;
use crate::steered::{Steered, say};

/// Stand-ins of one case, by tool.
#[derive(Debug)]
pub(crate) struct StandIns {
    by_tool: BTreeMap<String, Arc<Answers>>,
    real: Vec<String>,
    place: ThreadRef,
    steers: Vec<Steer>,
}

impl StandIns {
    /// Those of a case that is played in this thread.
    pub(crate) fn new(case: &Case, place: ThreadRef) -> Self {
        let answers = |answers: &Vec<StandIn>| {
            Arc::new(Answers { answers: answers.clone(), given: Mutex::default() })
        };
        let tools = case.tools.iter().map(|(tool, said)| (tool.clone(), answers(said)));
        let (real, steers) = (case.real.clone(), case.steer.clone());
        Self { by_tool: tools.collect(), real, place, steers }
    }

    /// The model in a run whose user speaks meanwhile, if the case's does.
    pub(crate) fn steer(&self, model: Arc<dyn Model>, ports: &Ports) -> Arc<dyn Model> {
        if self.steers.is_empty() {
            return model;
        }
        Arc::new(Steered::new(model, ports, self.place.clone(), self.steers.clone()))
    }

    /// Says what comes before the first turn.
    pub(crate) async fn speak_first(&self, ports: &Ports) -> Result<(), Failure> {
        say(&ports.journal, ports.ids.as_ref(), &self.place, &self.steers, 0).await
    }

    /// Those of a tool.
    pub(crate) fn of(&self, tool: &str) -> Option<Arc<dyn Executor>> {
        let answers = Arc::clone(self.by_tool.get(tool)?);
        Some(answers)
    }

    /// Whether a tool runs for real, whatever it does.
    pub(crate) fn is_real(&self, tool: &str) -> bool {
        self.real.iter().any(|real| real == tool)
    }
}

/// The answers of one tool. Each is given once, in the order of the file, to the first call that it
/// is for; the last one that fits answers whatever comes after it. A repeated attempt of a call gets
/// the same answer.
#[derive(Debug)]
struct Answers {
    answers: Vec<StandIn>,
    given: Mutex<BTreeMap<ToolCallId, usize>>,
}

impl Answers {
    async fn answer(&self, job: &Job) -> Option<&StandIn> {
        let mut given = self.given.lock().await;
        let id = &job.call.tool_call_id;
        if let Some(index) = given.get(id) {
            return self.answers.get(*index);
        }
        let fits = |(_, answer): &(usize, &StandIn)| answer.fits(&job.call.arguments);
        let fitting: Vec<usize> =
            self.answers.iter().enumerate().filter(fits).map(|(index, _)| index).collect();
        let is_fresh = |index: &&usize| !given.values().any(|used| used == *index);
        let index = *fitting.iter().find(is_fresh).or_else(|| fitting.last())?;
        given.insert(id.clone(), index);
        self.answers.get(index)
    }
}

#[async_trait]
impl Executor for Answers {
    async fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>, NotStarted> {
        if let Some(answer) = self.answer(job).await {
            return Ok(Box::new(Said(answer.says.clone())));
        }
        let why = format!("the case has no answer of {} for these arguments", job.call.tool);
        Err(NotStarted { why, retryable: false })
    }
}

struct Said(Says);

#[async_trait]
impl Prepared for Said {
    fn process_group(&self) -> Option<i32> {
        None
    }

    async fn run(self: Box<Self>, _: Instant, cancel: CancellationToken) -> Ended {
        if cancel.is_cancelled() {
            let receipt = Receipt::StoppedBeforeEffect;
            return Ended::Cancelled { output: Output::default(), receipt };
        }
        match self.0 {
            Says::Result(text) => Ended::Done(Output::from(text)),
            Says::Failure(why) => {
                Ended::Failed { output: Output::default(), why, retryable: false }
            }
        }
    }
}

//! One model request: from the open turn to the record that ends it.
//!
//! Calls go out as their arguments close. A stream that breaks before any call went out is asked
//! again; one that breaks after is sealed, never asked again.

mod failures;
mod request; // what the model is sent

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use planner_core::accept::Judge;
use planner_core::live_turn::{LiveTurn, Meter};
use planner_core::prompt::PromptError;
use planner_core::thread::OpenTurn;
use planner_core::toolbox::Toolbox;
use planner_core::{Thread, ends};
use ports::BusError;
use ports::append::Landed;
use ports::model::Reply;
use proto::agent::Agent;
use proto::call::ToolCall;
use proto::error_code::ErrorCode;
use proto::fact::{Fact, RunFinished, SealReason, Usage};
use proto::ids::{Sequence, ToolCallId};
use proto::live::Channel;
use proto::model::{
    BrokenCall, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ReadyCall, ReplyEnd,
};
use proto::notice::{Next, Notice};
use proto::time::Timestamp;
use service_runtime::shutdown::Shutdown;
use tokio::time::Instant;

use crate::chain::Chain;
use crate::ear::{Ear, Heard};
use crate::load::Kept;
use crate::metrics::Tally;
use crate::planner::Shared;
use crate::running::RunningGuard;
use crate::speech::Speech;
use failures::{code_of, cut_off, overdue};

/// The longest pause that a provider can ask for.
const LONGEST_PAUSE: Duration = Duration::from_mins(1);

/// How a model request ended for the journal.
#[derive(Debug)]
pub(crate) enum Reasoned {
    /// The turn is over; the fold has to contain this much.
    Landed(Sequence),
    /// Somebody else moved the chain: what was done here is dropped.
    Lost(Sequence),
}

/// How one stream ended.
enum Streamed {
    Ended(ReplyEnd),
    Stopped,
    Lost(Sequence),
    Broken(ModelError),
    /// This process has no time left.
    Abandoned,
}

/// Asks the model for the thread's open turn and records what came.
pub(crate) async fn reason(
    shared: &Shared,
    thread: Arc<Thread>,
    (running, shutdown): (&RunningGuard, &Shutdown),
) -> Result<Reasoned, BusError> {
    let Some(open) = thread.run.as_ref().and_then(|run| run.open.clone()) else {
        return Ok(Reasoned::Lost(thread.head.sequence));
    };
    let name = &open.started.agent;
    let Some(agent) = planner_core::view::Agents::agent(&shared.book, name) else {
        return Err(BusError::Unavailable(format!("the agent {name} is not known here")));
    };
    let toolbox = shared.tools.with(&agent.tools).await;
    let request = request::of(&thread, agent, &toolbox).await;
    let mut turn = Turn::new(shared, &thread, agent, &toolbox, &open, shutdown);
    match request {
        Ok(mut request) => turn.asking(&request, agent).ask_until_done(&mut request, running).await,
        Err(error) => turn.cannot_ask(&error).await,
    }
}

struct Turn<'a> {
    shared: &'a Shared,
    thread: &'a Arc<Thread>,
    judge: Judge<'a>,
    open: &'a OpenTurn,
    live: LiveTurn,
    chain: Sequence,
    speech: Speech<'a>,
    ids: BTreeSet<ToolCallId>,
    deadline: Instant,
    shutdown: &'a Shutdown,
}

impl<'a> Turn<'a> {
    fn new(
        shared: &'a Shared,
        thread: &'a Arc<Thread>,
        agent: &'a Agent,
        toolbox: &'a Toolbox,
        open: &'a OpenTurn,
        shutdown: &'a Shutdown,
    ) -> Self {
        let started = &open.started;
        let (live, working) = (shared.ports.live.as_ref(), shared.ports.working.as_ref());
        let left = started.deadline.since(shared.clock.now(thread.head.at));
        let now = Instant::now();
        Self {
            shared,
            thread,
            judge: Judge { thread, agent, toolbox, tainted: thread.is_tainted() },
            open,
            live: LiveTurn::new(started.run, started.turn, open.sequence),
            chain: thread.plan_last,
            speech: Speech::new(live, working, &thread.place, open.sequence, started.turn),
            ids: BTreeSet::new(),
            deadline: now.checked_add(left).unwrap_or(now),
            shutdown,
        }
    }

    /// Knows what the request costs.
    fn asking(&mut self, request: &ModelRequest, agent: &Agent) -> &mut Self {
        let (prompt_tokens, estimate) = (request.likely_tokens, request.estimate);
        let price = agent.price_of(&agent.model);
        self.live = self.take_live().metered(Meter { prompt_tokens, estimate, price });
        self
    }

    async fn ask_until_done(
        &mut self,
        request: &mut ModelRequest,
        running: &RunningGuard,
    ) -> Result<Reasoned, BusError> {
        let mut tries = 0;
        loop {
            request.failed_rounds = tries;
            let streamed = self.stream(request, running).await?;
            self.speech.flush().await;
            match streamed {
                Streamed::Ended(end) => return self.complete(end, &request.model).await,
                Streamed::Stopped => return self.seal(SealReason::Interrupted).await,
                Streamed::Lost(last) => return Ok(Reasoned::Lost(last)),
                Streamed::Abandoned => return self.seal(SealReason::HandedBack).await,
                Streamed::Broken(error) => {
                    tracing::info!(thread = %self.thread.place, %error, kind = ?error.kind, "the reply broke");
                    let next = self.after(&error, tries);
                    self.tell_late(&error, next).await;
                    match next {
                        Next::TurnSealed => return self.seal(SealReason::StreamBroken).await,
                        Next::RunEnds => return self.give_up(&error).await,
                        Next::AskedAgain | Next::AskedElsewhere | Next::CallClosed => {}
                    }
                    tries += 1;
                    match self.pause(tries, &error, running).await? {
                        Some(Streamed::Abandoned) => {
                            return self.seal(SealReason::HandedBack).await;
                        }
                        Some(_) => return self.seal(SealReason::Interrupted).await,
                        None => {
                            self.live.reset();
                            self.speech.begin_anew();
                        }
                    }
                }
            }
        }
    }

    /// What follows a request that failed.
    fn after(&self, error: &ModelError, tries: u32) -> Next {
        if !self.live.is_untouched() {
            Next::TurnSealed
        } else if !error.retryable || tries >= self.shared.config.model_retries {
            Next::RunEnds
        } else {
            Next::AskedAgain
        }
    }

    /// Readers are told which deadline ran out; the model never is.
    async fn tell_late(&mut self, error: &ModelError, next: Next) {
        if let ModelErrorKind::Timeout(deadline) = error.kind {
            self.shared.config.metrics.deadline_passed(deadline);
            self.speech.notice(Notice::DeadlinePassed { deadline, next }).await;
        }
    }

    async fn hear(&mut self, heard: Heard) {
        if let Some(model) = heard.asks {
            let price = self.judge.agent.price_of(&model);
            self.live.asked(model, price);
        }
        for notice in heard.notices {
            if let Notice::DeadlinePassed { deadline, .. } = notice {
                self.shared.config.metrics.deadline_passed(deadline);
            }
            self.speech.notice(notice).await;
        }
    }

    /// Waits before the next try; answers what ended the turn meanwhile.
    async fn pause(
        &mut self,
        tries: u32,
        error: &ModelError,
        running: &RunningGuard,
    ) -> Result<Option<Streamed>, BusError> {
        let doublings = tries.saturating_sub(1).min(6);
        let own = self.shared.config.model_backoff.saturating_mul(1 << doublings);
        let jitter = self.shared.ports.ids.jitter(own / 4);
        let pause = error.retry_after.unwrap_or(own).min(LONGEST_PAUSE).saturating_add(jitter);
        let seconds = pause.as_secs_f64();
        let because = format!("asking the model again in {seconds:.1} s, because {error}");
        let at_most_ms = u64::try_from(pause.as_millis()).ok();
        self.speech.notice(Notice::Waiting { because, at_most_ms }).await;
        let ended = tokio::select! {
            biased;
            () = self.shutdown.abandoned() => return Ok(Some(Streamed::Abandoned)),
            () = running.nudged() => {
                Box::pin(self.look()).await?.filter(|end| matches!(end, Streamed::Stopped))
            }
            () = tokio::time::sleep(pause) => None,
        };
        self.speech.notice(Notice::waits_no_more()).await;
        Ok(ended)
    }

    async fn stream(
        &mut self,
        request: &ModelRequest,
        running: &RunningGuard,
    ) -> Result<Streamed, BusError> {
        match self.open(request, running).await? {
            Ok(reply) => Box::pin(self.read(reply, running)).await,
            Err(end) => Ok(end),
        }
    }

    /// Asks until a reply has begun; else answers what ended it before. Thousands may wait here at
    /// once: what is rare is in a box, so that none of them makes room for it.
    async fn open(
        &mut self,
        request: &ModelRequest,
        running: &RunningGuard,
    ) -> Result<Result<Reply, Streamed>, BusError> {
        let shutdown = self.shutdown;
        let model = Arc::clone(&self.shared.ports.model);
        let ear = Ear::default();
        let mut ask = model.ask(request, &ear);
        let asked = loop {
            tokio::select! {
                biased;
                () = shutdown.abandoned() => return Ok(Err(Streamed::Abandoned)),
                () = running.nudged() => {
                    if let Some(end) = Box::pin(self.look()).await? { return Ok(Err(end)) }
                }
                heard = ear.heard() => Box::pin(self.hear(heard)).await,
                asked = &mut ask => break asked,
                () = tokio::time::sleep_until(self.deadline) => break Err(overdue()),
            }
        };
        Box::pin(self.hear(ear.take())).await;
        Ok(asked.map_err(Streamed::Broken))
    }

    async fn read(
        &mut self,
        mut reply: Reply,
        running: &RunningGuard,
    ) -> Result<Streamed, BusError> {
        let shutdown = self.shutdown;
        loop {
            let due = self.speech.due();
            tokio::select! {
                biased;
                () = shutdown.abandoned() => return Ok(Streamed::Abandoned),
                () = running.nudged() => if let Some(end) = Box::pin(self.look()).await? { return Ok(end) },
                event = reply.next() => match event {
                    Some(Ok(event)) => if let Some(end) = self.on_event(event).await? { return Ok(end) },
                    Some(Err(error)) => return Ok(Streamed::Broken(error)),
                    None => return Ok(Streamed::Broken(cut_off())),
                },
                () = tokio::time::sleep_until(due.unwrap_or(self.deadline)) => {
                    if due.is_none() { return Ok(Streamed::Broken(overdue())) }
                    self.speech.flush().await;
                }
            }
        }
    }

    async fn on_event(&mut self, event: ModelEvent) -> Result<Option<Streamed>, BusError> {
        match event {
            ModelEvent::Text { .. } | ModelEvent::Reasoning { .. } if self.live.is_overlong() => {
                return Ok(Some(Streamed::Ended(ReplyEnd::cut())));
            }
            ModelEvent::Text { delta } => {
                let offset = self.live.say(&delta);
                self.speech.add(Channel::Text, offset, &delta).await;
                self.speech.keep(self.live.words()).await;
            }
            ModelEvent::Reasoning { delta } => {
                let offset = self.live.think(&delta);
                self.speech.add(Channel::Reasoning, offset, &delta).await;
                self.speech.keep(self.live.words()).await;
            }
            ModelEvent::CallStarted { .. } => {}
            ModelEvent::CallReady(call) => return Box::pin(self.call_ready(call)).await,
            ModelEvent::CallBroken(call) => self.call_broken(call),
            ModelEvent::End(end) => return Ok(Some(Streamed::Ended(end))),
        }
        Ok(None)
    }

    async fn call_ready(&mut self, call: ReadyCall) -> Result<Option<Streamed>, BusError> {
        let (id, now) = (self.fresh_id(), self.now());
        let spans = self.shared.config.spans;
        let record = self.live.call_ready(&self.judge, id, call, now, spans);
        match record {
            Some(record) => self.dispatch(record).await,
            None => Ok(None),
        }
    }

    /// Appends an early call. The words that came before it are kept for whoever may seal the turn.
    async fn dispatch(&mut self, call: ToolCall) -> Result<Option<Streamed>, BusError> {
        let id = call.tool_call_id.clone();
        let landed = match self.append().call(self.chain, call).await {
            // The record that ends the turn names the call too, so it will not fit either and ends
            // the run with a reason.
            Err(BusError::TooLarge { .. }) => return Ok(None),
            other => other?,
        };
        match landed {
            Landed::At(sequence) | Landed::Duplicate(sequence) => {
                self.chain = sequence;
                self.live.dispatched(id);
                self.speech.keep_now(self.live.words()).await;
                Ok(None)
            }
            Landed::Lost { last } => Ok(Some(Streamed::Lost(last.unwrap_or(self.chain)))),
        }
    }

    fn call_broken(&mut self, call: BrokenCall) {
        let id = self.fresh_id();
        self.live.call_broken(&self.judge, id, call);
    }

    fn fresh_id(&mut self) -> ToolCallId {
        loop {
            let id = self.shared.ports.ids.tool_call_id();
            if !self.thread.calls.contains_key(&id) && self.ids.insert(id.clone()) {
                return id;
            }
        }
    }

    fn now(&self) -> Timestamp {
        self.shared.clock.now(self.thread.head.at)
    }

    /// Reads what was written since the turn began: a stop, or somebody else's hand on the chain.
    async fn look(&self) -> Result<Option<Streamed>, BusError> {
        let mut kept = Kept::of(Arc::clone(self.thread));
        let loader = self.shared.loader();
        let latest = match loader.load(&self.thread.place, &mut kept, self.chain).await {
            Ok(latest) => latest,
            Err(crate::load::LoadError::Bus(error)) => return Err(error),
            Err(crate::load::LoadError::TooNew(_)) => return Ok(Some(Streamed::Lost(self.chain))),
        };
        let open = latest.run.as_ref().and_then(|run| run.open.as_ref());
        if open.is_none_or(|open| open.sequence != self.open.sequence) {
            return Ok(Some(Streamed::Lost(latest.head.sequence)));
        }
        Ok(latest.is_stopping().then_some(Streamed::Stopped))
    }

    async fn complete(&mut self, end: ReplyEnd, model: &str) -> Result<Reasoned, BusError> {
        let live = self.take_live();
        let completed = live.complete(end, model);
        Box::pin(self.end(Fact::TurnCompleted(completed))).await
    }

    async fn seal(&mut self, why: SealReason) -> Result<Reasoned, BusError> {
        let live = self.take_live();
        Box::pin(self.end(Fact::TurnSealed(live.seal(why)))).await
    }

    fn take_live(&mut self) -> LiveTurn {
        let started = &self.open.started;
        let empty = LiveTurn::new(started.run, started.turn, self.open.sequence);
        std::mem::replace(&mut self.live, empty)
    }

    async fn give_up(&mut self, error: &ModelError) -> Result<Reasoned, BusError> {
        let why = format!("The model did not answer: {}", error.message);
        self.fail(code_of(error), &why).await
    }

    async fn cannot_ask(&mut self, error: &PromptError) -> Result<Reasoned, BusError> {
        let code = match error {
            PromptError::TooLarge { .. } => ErrorCode::ContextOverflow,
            PromptError::Open(_) | PromptError::Repeated(_) => ErrorCode::Internal,
        };
        tracing::error!(thread = %self.thread.place, %error, "the request cannot be built");
        self.fail(code, &format!("The request to the model cannot be built: {error}.")).await
    }

    async fn fail(&mut self, code: ErrorCode, why: &str) -> Result<Reasoned, BusError> {
        match self.failed(code, why) {
            Some(finished) => Box::pin(self.end(Fact::RunFinished(finished))).await,
            None => Ok(Reasoned::Lost(self.chain)),
        }
    }

    /// The end of a run that cannot go on. A draft that is given then was held against no schema.
    fn failed(&self, code: ErrorCode, why: &str) -> Option<RunFinished> {
        let finished = ends::failed(self.thread, code, why)?;
        let has_schema = self.judge.agent.output_schema.is_some();
        let unevaluated = finished.verification.is_some() && has_schema;
        Some(RunFinished { unevaluated, ..finished })
    }

    /// Appends the record that ends the turn. One that the bus finds too large ends the run.
    async fn end(&mut self, fact: Fact) -> Result<Reasoned, BusError> {
        let mut tally = Tally::of(&fact);
        // What the reply cost is spent, whether it can be written down or not.
        let cost = cost(&fact);
        let landed = match self.append().fact(self.chain, fact).await {
            Err(error @ BusError::TooLarge { .. }) => {
                let why = format!("The model's reply is too large to be recorded: {error}.");
                match self.failed(ErrorCode::MessageTooLarge, &why) {
                    Some(failed) => {
                        let usage = failed.usage.plus(cost);
                        let failed = Fact::RunFinished(RunFinished { usage, ..failed });
                        tally = Tally::of(&failed);
                        self.append().fact(self.chain, failed).await?
                    }
                    None => return Err(error),
                }
            }
            other => other?,
        };
        Ok(match landed {
            Landed::At(sequence) | Landed::Duplicate(sequence) => {
                self.shared.config.metrics.appended(tally);
                Reasoned::Landed(sequence)
            }
            Landed::Lost { last } => Reasoned::Lost(last.unwrap_or(self.chain)),
        })
    }

    fn append(&self) -> Chain<'_> {
        Chain {
            journal: self.shared.ports.journal.as_ref(),
            ids: self.shared.ports.ids.as_ref(),
            patience: self.shared.config.patience,
            place: &self.thread.place,
        }
    }
}

/// What the turn cost that a fact ends.
fn cost(fact: &Fact) -> Usage {
    match fact {
        Fact::TurnCompleted(turn) => turn.usage,
        Fact::TurnSealed(turn) => turn.usage,
        Fact::TurnStarted(_)
        | Fact::CallClosed { .. }
        | Fact::ApprovalAsked(_)
        | Fact::RunFinished(_)
        | Fact::Restored(_)
        | Fact::Checkpoint(_)
        | Fact::Parked { .. } => Usage::default(),
    }
}

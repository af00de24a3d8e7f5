//! One call, step by step: ask `tool-core`, carry the step out, ask again.

use std::sync::Arc;

use ports::BusError;
use ports::append::{Landed, append_surely};
use ports::journal::{Append, Fence, Stored};
use proto::call::{Barred, Start, ToolCall};
use proto::envelope::Envelope;
use proto::ids::{Nonce, Sequence, ThreadRef};
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use proto::time::Timestamp;
use tokio_util::sync::CancellationToken;
use tool_core::answer::Answer;
use tool_core::decide::{Known, StartState, Step, decide};
use tool_core::outcome::Probed;

use crate::handling::Settled;
use crate::running::RunningGuard;
use crate::shared::Shared;
use crate::sharing::Sharing;
use crate::tools::Tool;

/// A call that is being worked on.
pub(crate) struct Case<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) tool: &'a Tool,
    pub(crate) call: &'a ToolCall,
    pub(crate) thread: &'a ThreadRef,
    /// The call's own place, and when the bus stored it.
    pub(crate) sequence: Sequence,
    pub(crate) stored_at: Timestamp,
    /// Whether it was delivered before.
    pub(crate) again: bool,
    /// The trace of whoever dispatched the call; what comes of it belongs there.
    pub(crate) traceparent: Option<String>,
    /// Absent when another delivery of the call is in work here.
    pub(crate) running: Option<RunningGuard>,
    pub(crate) cancel: CancellationToken,
    pub(crate) leased: bool,
    /// As far as the bus remembers.
    pub(crate) deliveries: u64,
    /// What the call shares with others at the moment.
    pub(crate) sharing: Sharing,
}

/// What an attempt leads to.
pub(crate) enum Flow {
    /// The delivery is settled.
    Settled(Settled),
    /// The call never starts; say so.
    Refuse(Answer),
    /// Somebody else wrote to the start subject.
    LookAgain,
    /// A check found that the newest start had no effect, or could not tell.
    Checked {
        /// The start.
        start: StartState,
        /// What was found.
        probed: Probed,
    },
}

impl<'a> Case<'a> {
    pub(crate) fn new(
        shared: &'a Arc<Shared>,
        tool: &'a Arc<Tool>,
        stored: &'a Stored,
        call: &'a ToolCall,
        running: Option<RunningGuard>,
    ) -> Self {
        let cancel = running
            .as_ref()
            .map_or_else(CancellationToken::new, |running| running.cancel().clone());
        Self {
            shared,
            tool,
            call,
            thread: &stored.subject.thread,
            sequence: stored.sequence,
            stored_at: stored.at,
            again: false,
            traceparent: None,
            running,
            cancel,
            leased: false,
            deliveries: 1,
            sharing: Sharing::default(),
        }
    }

    /// Server time; a call is never older than its own record.
    pub(crate) fn now(&self) -> Timestamp {
        self.shared.time.now(self.stored_at)
    }

    /// Works until the delivery is settled.
    pub(crate) async fn work(&mut self) -> Result<Settled, BusError> {
        let me = &self.shared.config.instance;
        let mut known = Known::new(self.call, &self.tool.contract, me, self.now());
        known.again = self.again;
        known.running_here = self.running.is_none();
        known.argument_problems = self.tool.problems(self.call);
        known.deliveries = self.deliveries;
        known.wants = self.wants();
        loop {
            known.now = self.now();
            if self.cancel.is_cancelled() {
                known.cancelled = Some(true);
            }
            let flow = match decide(&known) {
                Step::Look(look) => {
                    self.look(look, &mut known).await?;
                    continue;
                }
                Step::Wait(span) => return Ok(Settled::Back(span)),
                Step::Drop => return Ok(Settled::Ack),
                Step::Republish(observation) => return self.publish(&observation).await,
                Step::Answer(answer) => return self.answer(answer).await,
                Step::Bar { expected, answer } => self.bar(expected, answer).await?,
                Step::Start { attempt, expected } => self.start(attempt, expected).await?,
                Step::Run => self.run_repeatable().await?,
            };
            match flow {
                Flow::Settled(settled) => return Ok(settled),
                Flow::Refuse(answer) => return self.refuse(&mut known, answer).await,
                Flow::LookAgain => known.start = None,
                Flow::Checked { start, probed } => {
                    known.start = Some(start);
                    known.probed = Some(probed);
                }
            }
        }
    }

    /// Bars a call that could not be made ready, then answers; if somebody started it, that one
    /// answers.
    async fn refuse(&self, known: &mut Known<'_>, answer: Answer) -> Result<Settled, BusError> {
        let expected = match &known.start {
            Some(StartState::Started { sequence, .. }) => *sequence,
            Some(StartState::None | StartState::Barred) | None => Sequence::NONE,
        };
        match self.bar(expected, answer).await? {
            Flow::Settled(settled) => Ok(settled),
            Flow::Refuse(_) | Flow::LookAgain | Flow::Checked { .. } => {
                Ok(Settled::Back(std::time::Duration::ZERO))
            }
        }
    }

    async fn bar(&self, expected: Sequence, answer: Answer) -> Result<Flow, BusError> {
        let barred = Start::Barred(Barred {
            tool_call_id: self.call.tool_call_id.clone(),
            by: self.shared.config.instance.clone(),
            at: self.now(),
        });
        match self.append_start(barred, expected, self.shared.ports.ids.nonce()).await? {
            Landed::At(_) | Landed::Duplicate(_) if self.is_gone().await? => {
                Ok(Flow::Settled(Settled::Ack))
            }
            Landed::At(_) | Landed::Duplicate(_) => Ok(Flow::Settled(self.answer(answer).await?)),
            Landed::Lost { .. } => Ok(Flow::LookAgain),
        }
    }

    /// Whether the call itself was purged with the run that asked for it: a start of it would be gone
    /// too, so nobody can say any more that there was none, and nobody waits for an answer.
    async fn is_gone(&self) -> Result<bool, BusError> {
        let journal = &self.shared.ports.journal;
        let left = journal.read(self.thread, self.sequence, self.sequence).await?;
        Ok(left.first().is_none_or(|record| record.sequence != self.sequence))
    }

    /// Appends to the start subject, behind `expected`.
    pub(crate) async fn append_start(
        &self,
        start: Start,
        expected: Sequence,
        nonce: Nonce,
    ) -> Result<Landed, BusError> {
        let envelope = Envelope::new(nonce.clone(), self.traceparent.clone(), Record::Start(start));
        let append = Append {
            subject: self.start_subject(),
            payload: envelope.encode().into(),
            nonce,
            fence: Fence::Subject(expected),
            dedup: None,
        };
        append_surely(self.shared.ports.journal.as_ref(), &append, self.shared.config.patience)
            .await
    }

    pub(crate) fn start_subject(&self) -> Subject {
        Subject::new(self.thread.clone(), Leaf::Start(self.call.tool_call_id.clone()))
    }

    /// Gives the lease back, if there is one.
    pub(crate) async fn release(&mut self) {
        if !std::mem::take(&mut self.leased) {
            return;
        }
        let working = &self.shared.ports.working;
        let holder = &self.shared.config.instance;
        if let Err(error) = working.release(self.thread, &self.call.tool_call_id, holder).await {
            tracing::debug!(%error, "a lease was not given back; it ends by itself");
        }
    }
}

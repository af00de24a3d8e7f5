//! One delivery, from load to ack.
//!
//! One handling works on a thread at a time within this process; while a model streams, the thread
//! is free for others, which find the turn in `crate::running`.

mod beginning;
mod owners;
mod states;

use std::sync::Arc;
use std::time::Duration;

use planner_core::phase::{Phase, phase};
use planner_core::thread::OpenTurn;
use planner_core::view::{Armed, Evaluated, Owner};
use planner_core::{Decision, Step, Thread, View, Wake, decide};
use ports::BusError;
use ports::queues::Delivery;
use proto::fact::Fact;
use proto::ids::{Sequence, ThreadRef};
use proto::subject::Leaf;
use proto::time::Timestamp;
use service_runtime::shutdown::Shutdown;
use tokio::sync::{Mutex, MutexGuard, OwnedSemaphorePermit};

use crate::audit;
use crate::carry::{self, Carried};
use crate::load::{Kept, LoadError};
use crate::planner::Shared;
use crate::reasoning::{Reasoned, reason};
use crate::running::Beginning;
use crate::sweep::hint;

/// Steps of one handling before it is handed back; far above what any thread needs.
const MAX_STEPS: u32 = 2000;
/// Fences lost in a row before the delivery is handed back.
const MAX_LOST: u32 = 20;
/// Pause after a fence that was lost.
const LOST_PAUSE: Duration = Duration::from_millis(20);
/// Pause when the bus failed.
const BUS_PAUSE: Duration = Duration::from_secs(2);
/// Pause for a record that only newer processes can read.
const TOO_NEW_PAUSE: Duration = Duration::from_secs(30);
/// What a handling may still take once everything was abandoned.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Pause when no further model request may be opened here.
const FULL_PAUSE: Duration = Duration::from_millis(500);

/// What becomes of the delivery.
enum Verdict {
    Ack,
    /// The same, and the thread is at rest.
    Rested,
    HandBack(Duration),
}

/// Works on a delivery until nothing is left to do, then lets it go.
pub(crate) async fn handle(
    shared: Arc<Shared>,
    delivery: Delivery,
    permit: Option<OwnedSemaphorePermit>,
    shutdown: Shutdown,
) {
    let guard = shared.held.hold(delivery.token.clone());
    let mut look = Look::new(&shared, &delivery, permit, &shutdown);
    let verdict = tokio::select! {
        biased;
        () = out_of_time(&shutdown) => Verdict::HandBack(Duration::ZERO),
        verdict = look.run() => verdict,
    };
    drop(look);
    let queues = shared.ports.queues.as_ref();
    let ended = matches!(verdict, Verdict::Rested);
    let told = match verdict {
        Verdict::Ack | Verdict::Rested => queues.ack(guard.token()).await,
        Verdict::HandBack(delay) => queues.nak(guard.token(), delay).await,
    };
    if let Err(error) = told {
        tracing::debug!(%error, "a delivery could not be let go; it comes again");
    }
    drop(guard);
    shared.snapshots.mark(&delivery.stored.subject.thread);
    if ended {
        audit::judge(&shared, &delivery.stored.subject.thread).await;
    }
}

/// An open turn may still say that it is handed back.
async fn out_of_time(shutdown: &Shutdown) {
    shutdown.abandoned().await;
    tokio::time::sleep(LAST_WORDS).await;
}

/// One handling.
struct Look<'a> {
    shared: &'a Shared,
    shutdown: &'a Shutdown,
    place: ThreadRef,
    wake: Wake,
    /// When the waking record was stored, and whether it was delivered before.
    stored_at: Timestamp,
    again: bool,
    permit: Option<OwnedSemaphorePermit>,
    turn_permit: Option<OwnedSemaphorePermit>,
    floor: Sequence,
    begun: Option<Sequence>,
    beginning: Option<Beginning>,
    owner: (Sequence, Owner),
    armed: Armed,
    /// The fold, where the last step wrote nothing that it would have to contain.
    at_hand: Option<Arc<Thread>>,
    evaluated: Option<Evaluated>,
    stop_hinted: bool,
    calls_hinted: bool,
    lost: u32,
}

impl<'a> Look<'a> {
    fn new(
        shared: &'a Shared,
        delivery: &Delivery,
        permit: Option<OwnedSemaphorePermit>,
        shutdown: &'a Shutdown,
    ) -> Self {
        let leaf = &delivery.stored.subject.leaf;
        let by_others = *leaf == Leaf::Observation && delivery.count <= 1;
        Self {
            shared,
            shutdown,
            place: delivery.stored.subject.thread.clone(),
            wake: Wake { sequence: delivery.stored.sequence, tick: *leaf == Leaf::Tick },
            stored_at: delivery.stored.at,
            again: delivery.count > 1,
            permit,
            turn_permit: None,
            floor: delivery.stored.sequence,
            begun: None,
            beginning: None,
            owner: (Sequence::NONE, Owner::Unasked),
            armed: if by_others { Armed::ByOthers } else { Armed::Unknown },
            at_hand: None,
            evaluated: None,
            stop_hinted: false,
            calls_hinted: false,
            lost: 0,
        }
    }

    async fn run(&mut self) -> Verdict {
        self.take_permit().await;
        let slot = self.shared.slots.slot(&self.place).await;
        let mut kept = slot.lock().await;
        for _ in 0..MAX_STEPS {
            kept = match self.step(&slot, kept).await {
                Ok(kept) => kept,
                Err(verdict) => return verdict,
            };
        }
        tracing::error!(thread = %self.place, "a handling did not come to rest");
        Verdict::HandBack(BUS_PAUSE)
    }

    /// Looks at the thread and carries out one step; an error is what becomes of the delivery.
    async fn step<'s>(
        &mut self,
        slot: &'s Mutex<Kept>,
        mut kept: MutexGuard<'s, Kept>,
    ) -> Result<MutexGuard<'s, Kept>, Verdict> {
        let thread = match self.at_hand.take() {
            Some(thread) => thread,
            None => self.load(&mut kept).await?,
        };
        if self.restore(&thread, &mut kept).await? {
            return Ok(kept);
        }
        if self.stop_open_turn(&thread).await {
            drop(kept);
            self.wait_for_stop(&thread).await;
            return Ok(slot.lock().await);
        }
        self.hint_calls(&thread).await;
        let decision = self.decide(&thread).await;
        let branch = decision.branch.as_str();
        tracing::debug!(thread = %self.place, wake = %self.wake.sequence, branch, "decided");
        if matches!(decision.step, Step::Reason) {
            return self.reason(slot, kept, thread).await;
        }
        match self.carry(&thread, decision).await {
            Some(verdict) => Err(verdict),
            None => Ok(kept),
        }
    }

    async fn take_permit(&mut self) {
        if self.permit.is_none() {
            self.permit = Arc::clone(&self.shared.handlings).acquire_owned().await.ok();
        }
    }

    async fn load(&mut self, kept: &mut MutexGuard<'_, Kept>) -> Result<Arc<Thread>, Verdict> {
        let known = kept.thread.as_ref();
        let late = known.map(|thread| thread.late);
        let from = known.map_or(Phase::Terminating, |thread| phase(thread));
        match self.shared.loader().load(&self.place, kept, self.floor).await {
            Ok(thread) => {
                let more = late.map_or(0, |late| thread.late.saturating_sub(late));
                self.shared.config.metrics.late_results.inc_by(u64::from(more));
                self.shared.config.metrics.passed(from, phase(&thread));
                self.floor = self.floor.max(thread.head.sequence);
                Ok(thread)
            }
            Err(LoadError::TooNew(error)) => {
                tracing::error!(thread = %self.place, %error, "handed back");
                Err(Verdict::HandBack(TOO_NEW_PAUSE))
            }
            Err(LoadError::Bus(error)) => Err(bus_failed(&error)),
        }
    }

    async fn hint_calls(&mut self, thread: &Thread) {
        if self.calls_hinted || !thread.is_stopping() || open_turn(thread).is_some() {
            return;
        }
        self.calls_hinted = true;
        carry::stop_calls(self.shared, thread, planner_core::stop::hints(thread)).await;
    }

    async fn decide(&mut self, thread: &Thread) -> Decision {
        let words = self.kept_words(thread).await;
        let owner = self.owner_of(thread);
        let view = View {
            thread,
            now: self.shared.clock.now(thread.head.at),
            me: &self.shared.config.instance,
            wake: self.wake,
            begun: self.begun,
            owner,
            armed: self.armed,
            agents: &self.shared.book,
            kept: (&words.0, &words.1),
            evaluated: self.evaluated.as_ref(),
            spans: self.shared.config.spans,
        };
        decide(&view)
    }

    /// Text of the open turn, for sealing it.
    async fn kept_words(&self, thread: &Thread) -> (String, String) {
        let Some(open) = open_turn(thread) else { return Default::default() };
        // A turn that begins here, or streams here, has no words that this handling could need.
        let streams = self.shared.running.is_running(&self.place, open.sequence);
        let is_ours = self.begun == Some(open.sequence) || (streams && !thread.is_stopping());
        if is_ours {
            return Default::default();
        }
        match self.shared.ports.working.turn_text(&self.place).await {
            Ok(Some(text)) if text.started == open.sequence => (text.text, text.reasoning),
            Ok(_) => Default::default(),
            Err(error) => {
                tracing::debug!(%error, "the text of the turn is not known");
                Default::default()
            }
        }
    }

    /// Makes the model request of our open turn, with the thread free for others meanwhile.
    async fn reason<'s>(
        &mut self,
        slot: &'s Mutex<Kept>,
        kept: MutexGuard<'s, Kept>,
        thread: Arc<Thread>,
    ) -> Result<MutexGuard<'s, Kept>, Verdict> {
        self.begun = None;
        let Some(open) = open_turn(&thread) else { return Ok(kept) };
        let running = self.shared.running.enter(self.place.clone(), open.sequence);
        self.beginning = None;
        drop(kept);
        self.shared.snapshots.mark(&self.place);
        self.permit = None;
        let metrics = &self.shared.config.metrics;
        let timer = metrics.model_seconds.start_timer();
        metrics.turns_in_flight.inc();
        let reasoned = reason(self.shared, thread, (&running, self.shutdown)).await;
        metrics.turns_in_flight.dec();
        timer.observe_duration();
        self.turn_permit = None;
        self.take_permit().await;
        let kept = slot.lock().await;
        drop(running);
        match reasoned {
            Ok(Reasoned::Landed(sequence)) => self.moved(sequence),
            Ok(Reasoned::Lost(sequence)) => self.note_lost(sequence).await?,
            Err(error) => return Err(bus_failed(&error)),
        }
        if self.shutdown.is_abandoned() {
            return Err(Verdict::HandBack(Duration::ZERO));
        }
        Ok(kept)
    }

    fn moved(&mut self, sequence: Sequence) {
        self.floor = self.floor.max(sequence);
        self.lost = 0;
        self.armed = Armed::Unknown;
    }

    async fn note_lost(&mut self, sequence: Sequence) -> Result<(), Verdict> {
        self.floor = self.floor.max(sequence);
        self.lost = self.lost.saturating_add(1);
        self.shared.config.metrics.conflicts.inc();
        if self.lost > MAX_LOST {
            return Err(Verdict::HandBack(BUS_PAUSE));
        }
        tokio::time::sleep(LOST_PAUSE).await;
        Ok(())
    }

    /// Carries a step out; answers when the delivery can be let go.
    async fn carry(&mut self, thread: &Arc<Thread>, decision: Decision) -> Option<Verdict> {
        let now = self.shared.clock.now(thread.head.at);
        let carried = match decision.step {
            Step::Fact(fact) => {
                if let Some(verdict) = self.admit(&fact) {
                    return Some(verdict);
                }
                match self.insure(thread, &fact).await {
                    Ok(()) => self.append(thread, *fact).await,
                    Err(error) => Err(error),
                }
            }
            Step::Dispatch(call) => carry::dispatch(self.shared, thread, *call).await,
            Step::Bar(id) => carry::bar(self.shared, thread, &id, now).await,
            Step::Arm(at) => return self.arm(thread, at).await,
            Step::AskOwner(owner) => return self.ask(thread, &owner).await,
            Step::Evaluate => return self.evaluate(thread).await,
            Step::Hint(said) => {
                hint(self.shared.ports.live.as_ref(), &self.place, &said).await;
                return None;
            }
            Step::HandBack(delay) => return Some(Verdict::HandBack(delay)),
            Step::Rest if self.is_worth_a_checkpoint(thread) => {
                carry::checkpoint(self.shared, thread, now).await
            }
            Step::Rest => return Some(self.rest(thread).await),
            Step::Reason => return None,
        };
        match carried {
            Ok(Carried::Landed(sequence)) => self.moved(sequence),
            Ok(Carried::Lost(sequence)) => return self.note_lost(sequence).await.err(),
            Err(error) => return Some(bus_failed(&error)),
        }
        None
    }

    /// A turn is only begun when a model request may be opened here, and not on the way out.
    fn admit(&mut self, fact: &Fact) -> Option<Verdict> {
        if !matches!(fact, Fact::TurnStarted(_)) {
            return None;
        }
        if self.shutdown.is_draining() {
            return Some(Verdict::HandBack(Duration::ZERO));
        }
        self.evaluated = None;
        self.beginning = Some(self.shared.running.begin(self.place.clone()));
        if self.turn_permit.is_none() {
            match Arc::clone(&self.shared.turns).try_acquire_owned() {
                Ok(permit) => self.turn_permit = Some(permit),
                Err(_) => return Some(Verdict::HandBack(FULL_PAUSE)),
            }
        }
        None
    }

    /// The schedule lies outside the chain and was fenced by it: nothing has to be read again. What
    /// came meanwhile comes with a delivery of its own.
    async fn arm(&mut self, thread: &Arc<Thread>, at: Timestamp) -> Option<Verdict> {
        match carry::arm(self.shared, thread, at).await {
            Ok(Some(at)) => {
                self.armed = Armed::At(at);
                self.at_hand = Some(Arc::clone(thread));
            }
            Ok(None) => return self.note_lost(self.floor).await.err(),
            Err(error) => return Some(bus_failed(&error)),
        }
        None
    }

    async fn evaluate(&mut self, thread: &Thread) -> Option<Verdict> {
        let agent = thread.agent.as_ref();
        let agent =
            agent.and_then(|name| planner_core::view::Agents::agent(&self.shared.book, name));
        let schema = agent.and_then(|agent| agent.output_schema.clone());
        let answer = planner_core::next_turn::answer_text(thread);
        let limit = self.shared.config.evaluation;
        self.evaluated = Some(match (answer, schema) {
            (Some(answer), Some(schema)) => {
                crate::evaluation::evaluate(answer, schema, limit).await
            }
            (_, None) | (None, _) => Evaluated::Fits,
        });
        None
    }

    /// The list of active threads is told when the thread moves; whoever moved it last has told when
    /// it is due, and a result that changes nothing does not bring that forward.
    async fn rest(&self, thread: &Thread) -> Verdict {
        if matches!(self.armed, Armed::ByOthers) && !thread.is_at_rest() {
            return Verdict::Ack;
        }
        let next = if thread.is_at_rest() { None } else { Some(self.next_look(thread)) };
        if let Err(error) = self.shared.ports.working.set_active(&self.place, next).await {
            tracing::debug!(%error, "the list of active threads was not written");
        }
        if thread.is_at_rest() { Verdict::Rested } else { Verdict::Ack }
    }

    fn next_look(&self, thread: &Thread) -> Timestamp {
        let turn = open_turn(thread).map(|open| open.started.deadline);
        let calls = planner_core::calls::earliest_deadline(thread);
        let later = self.shared.clock.now(thread.head.at).after(self.shared.config.sweep_every);
        turn.into_iter().chain(calls).min().unwrap_or(later)
    }
}

fn open_turn(thread: &Thread) -> Option<&OpenTurn> {
    thread.run.as_ref()?.open.as_ref()
}

fn bus_failed(error: &BusError) -> Verdict {
    tracing::warn!(%error, "handed back because the bus failed");
    Verdict::HandBack(BUS_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of what a function of four arguments answers.
    fn size<A, B, C, D, F>(_: impl Fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn a_thread_that_waits_for_the_model_takes_little_room() {
        // Each of a thousand waiting threads is such a handling. A rare branch that makes it larger
        // belongs into a box.
        let size = size(handle);
        assert!(size < 4 * 1024, "{size} bytes");
    }
}

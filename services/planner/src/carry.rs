//! Carries out one step of a decision.

use bytes::Bytes;
use planner_core::Thread;
use planner_core::calls::bar_fence;
use ports::BusError;
use ports::append::Landed;
use ports::journal::{AppendError, Fence};
use proto::call::Barred;
use proto::fact::{Checkpoint, Fact, RunFinished};
use proto::ids::{Sequence, ToolCallId};
use proto::live::Hint;
use proto::observation::ArtifactRef;
use proto::saved::SavedThread;
use proto::subject::{Leaf, Subject};
use proto::time::Timestamp;

use crate::chain::Chain;
use crate::load::Lost;
use crate::metrics::Tally;
use crate::planner::Shared;
use crate::states::States;

/// Words of so many bytes are not what makes a record too large.
const SHORTEST: usize = 256;

/// What came of a step.
#[derive(Debug)]
pub(crate) enum Carried {
    /// It is in the journal; the fold has to contain this much.
    Landed(Sequence),
    /// Somebody else was first; the fold has to contain at least this much.
    Lost(Sequence),
}

/// Appends a fact behind what the thread was folded from.
pub(crate) async fn fact(
    shared: &Shared,
    thread: &Thread,
    fact: Fact,
) -> Result<Carried, BusError> {
    let tally = Tally::of(&fact);
    // Only what grows with words is kept for a second try: every waiting thread holds this.
    let end = match &fact {
        Fact::RunFinished(finished) => Some(Box::new(finished.clone())),
        Fact::TurnStarted(_)
        | Fact::TurnCompleted(_)
        | Fact::TurnSealed(_)
        | Fact::CallClosed { .. }
        | Fact::ApprovalAsked(_)
        | Fact::Parked { .. }
        | Fact::Restored(_)
        | Fact::Checkpoint(_) => None,
    };
    let landed = match (chain(shared, thread).fact(thread.plan_last, fact).await, end) {
        (Err(BusError::TooLarge { .. }), Some(end)) => {
            Box::pin(fitted(shared, thread, end)).await?
        }
        (landed, _) => landed?,
    };
    let carried = carried(landed, thread);
    if matches!(carried, Carried::Landed(_)) {
        shared.config.metrics.appended(tally);
    }
    Ok(carried)
}

/// The end of a run whose words just fitted the record of their turn may not fit its own: it is told
/// in fewer words. Nothing else grows with what a model or a person said.
async fn fitted(
    shared: &Shared,
    thread: &Thread,
    mut finished: Box<RunFinished>,
) -> Result<Landed, BusError> {
    loop {
        let most = finished.answer.len() / 2;
        let kept = finished.answer.floor_char_boundary(most);
        finished.answer.truncate(kept);
        finished
            .answer
            .push_str("\n[... the rest is left out: the bus takes no larger record ...]");
        let shorter = Fact::RunFinished(RunFinished::clone(&finished));
        match chain(shared, thread).fact(thread.plan_last, shorter).await {
            Err(BusError::TooLarge { .. }) if most > SHORTEST => {}
            landed => return landed,
        }
    }
}

/// Appends a tool call behind what the thread was folded from.
pub(crate) async fn dispatch(
    shared: &Shared,
    thread: &Thread,
    call: proto::call::ToolCall,
) -> Result<Carried, BusError> {
    Ok(carried(chain(shared, thread).call(thread.plan_last, call).await?, thread))
}

/// Writes down what was known beyond a journal that has lost its tail. Calls of which a delivery may
/// come again are barred first: their starts were lost, and a worker would begin them anew.
pub(crate) async fn restore(
    shared: &Shared,
    thread: &Thread,
    lost: &Lost,
    now: Timestamp,
) -> Result<Carried, BusError> {
    for id in &lost.loss.bars {
        bar(shared, thread, id, now).await?;
    }
    let state = Bytes::from(SavedThread::from(lost.known.as_ref()).encode());
    let state = shared.ports.artifacts.put(&thread.place, state).await?;
    let restored = lost.loss.clone().restored(state, lost.standing.clone());
    fact(shared, thread, Fact::Restored(restored)).await
}

/// Keeps the thread as a state and says so in its journal; what an earlier checkpoint stands for is
/// then purged, and states that nothing names any more are removed. What does not happen of this is made
/// up for by the next checkpoint.
pub(crate) async fn checkpoint(
    shared: &Shared,
    thread: &Thread,
    now: Timestamp,
) -> Result<Carried, BusError> {
    let ports = &shared.ports;
    let purgeable = thread.purgeable(now, shared.config.spans.schedule_to_start);
    let mut states = States::default();
    if let Some(up_to) = purgeable {
        let head = thread.head.sequence;
        let records = ports.journal.read(&thread.place, Sequence::NONE, head).await?;
        states = States::of(&records, up_to);
    }
    let state = Bytes::from(SavedThread::from(thread).encode());
    let state = ports.artifacts.put(&thread.place, state).await?;
    let (standing, replaces) = (thread.standing(), states.replaced);
    let checkpoint = Checkpoint { state, standing, replaces };
    let carried = fact(shared, thread, Fact::Checkpoint(checkpoint)).await?;
    if let (Carried::Landed(_), Some(up_to)) = (&carried, purgeable) {
        shared.config.metrics.folds.checkpoints.inc();
        if let Err(error) = purge(shared, thread, up_to, &states.old).await {
            tracing::warn!(thread = %thread.place, %error, "older records and states were not removed");
        }
    }
    Ok(carried)
}

async fn purge(
    shared: &Shared,
    thread: &Thread,
    up_to: Sequence,
    old: &[ArtifactRef],
) -> Result<(), BusError> {
    shared.ports.journal.purge(&thread.place, up_to).await?;
    for state in old {
        shared.ports.artifacts.remove(&thread.place, &state.id).await?;
    }
    Ok(())
}

/// Bars a call. Losing means that an attempt has started; the fold will tell.
pub(crate) async fn bar(
    shared: &Shared,
    thread: &Thread,
    id: &ToolCallId,
    now: Timestamp,
) -> Result<Carried, BusError> {
    let last = thread.calls.get(id).map_or(Sequence::NONE, bar_fence);
    let barred = Barred { tool_call_id: id.clone(), by: shared.config.instance.clone(), at: now };
    match chain(shared, thread).bar(last, barred).await? {
        Landed::At(sequence) | Landed::Duplicate(sequence) => Ok(Carried::Landed(sequence)),
        Landed::Lost { last: Some(last) } => Ok(Carried::Lost(last)),
        Landed::Lost { last: None } => {
            let subject = Subject::new(thread.place.clone(), Leaf::Start(id.clone()));
            let stored = shared.ports.journal.last(&subject).await?;
            Ok(Carried::Lost(stored.map_or(thread.head.sequence, |stored| stored.sequence)))
        }
    }
}

/// Writes the schedule; `None` when somebody else was first.
pub(crate) async fn arm(
    shared: &Shared,
    thread: &Thread,
    at: Timestamp,
) -> Result<Option<Timestamp>, BusError> {
    let fence = Fence::Plan(thread.plan_last);
    match shared.ports.journal.schedule(&thread.place, at, fence).await {
        Ok(()) => Ok(Some(at)),
        Err(AppendError::Fenced { .. }) => Ok(None),
        Err(AppendError::NoAnswer(why)) => Err(BusError::Unavailable(why)),
        Err(AppendError::Bus(error)) => Err(error),
    }
}

/// Tells workers which calls to stop: as a mark for those that start later, and as a hint.
pub(crate) async fn stop_calls(shared: &Shared, thread: &Thread, hints: Vec<Hint>) {
    let keep = shared.config.spans.schedule_to_start.saturating_mul(10);
    for hint in hints {
        if let Hint::CancelCall { tool_call_id } = &hint {
            let marked =
                shared.ports.working.mark_cancelled(&thread.place, tool_call_id, keep).await;
            if let Err(error) = marked {
                tracing::debug!(%error, "the cancel mark was not kept");
            }
        }
        crate::sweep::hint(shared.ports.live.as_ref(), &thread.place, &hint).await;
    }
}

fn chain<'a>(shared: &'a Shared, thread: &'a Thread) -> Chain<'a> {
    Chain {
        journal: shared.ports.journal.as_ref(),
        ids: shared.ports.ids.as_ref(),
        patience: shared.config.patience,
        place: &thread.place,
    }
}

fn carried(landed: Landed, thread: &Thread) -> Carried {
    match landed {
        Landed::At(sequence) | Landed::Duplicate(sequence) => Carried::Landed(sequence),
        Landed::Lost { last } => Carried::Lost(last.unwrap_or(thread.head.sequence)),
    }
}

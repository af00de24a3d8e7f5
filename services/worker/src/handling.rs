//! One delivery, from the pull to the ack.

use std::sync::Arc;
use std::time::Duration;

use ports::BusError;
use ports::journal::Stored;
use ports::queues::Delivery;
use proto::call::ToolCall;
use proto::envelope::{DecodeError, Envelope};
use proto::fact::Fact;
use proto::ids::Sequence;
use proto::record::Record;
use tracing::Instrument;

use crate::case::Case;
use crate::intake::Permits;
use crate::keeper::AGAIN;
use crate::shared::Shared;
use crate::tools::Tool;

/// How long a record rests that this process cannot read.
const UNREADABLE: Duration = Duration::from_mins(1);

/// What becomes of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Nothing is left to do.
    Ack,
    /// Somebody looks again after this long.
    Back(Duration),
}

/// Works on a delivery in its slot.
pub(crate) async fn handle(
    shared: Arc<Shared>,
    tool: Arc<Tool>,
    delivery: Delivery,
    _slot: Permits,
) {
    let held = shared.held.hold(delivery.token.clone());
    let (metrics, name) = (&shared.config.metrics, tool.contract.name.as_str());
    let stored_at = delivery.stored.at;
    metrics.delivered(name, delivery.count, shared.time.now(stored_at).since(stored_at));
    metrics.slots_in_use.inc();
    let settled = judge(&shared, &tool, &delivery).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "a call was given back");
        Settled::Back(AGAIN)
    });
    metrics.slots_in_use.dec();
    if matches!(settled, Settled::Back(_)) {
        metrics.given_back.with_label_values(&[name]).inc();
    }
    let queues = &shared.ports.queues;
    let done = match settled {
        Settled::Ack => queues.ack(&delivery.token).await,
        Settled::Back(delay) => queues.nak(&delivery.token, delay).await,
    };
    if let Err(error) = done {
        tracing::debug!(%error, "a delivery was not settled; it comes back by itself");
    }
    drop(held);
}

async fn judge(
    shared: &Arc<Shared>,
    tool: &Arc<Tool>,
    delivery: &Delivery,
) -> Result<Settled, BusError> {
    let stored = &delivery.stored;
    match Envelope::decode(&stored.payload) {
        Ok(Envelope { body: Record::ToolCall(call), traceparent, .. }) => {
            work(shared, tool, delivery, (&call, traceparent)).await
        }
        Ok(other) => {
            tracing::error!(kind = other.body.kind(), "a record that is no tool call");
            unreadable(shared, stored).await
        }
        Err(error @ DecodeError::TooNew { .. }) => {
            tracing::warn!(%error, sequence = %stored.sequence, "a newer call was given back");
            Ok(Settled::Back(UNREADABLE))
        }
        Err(error @ DecodeError::Malformed(_)) => {
            tracing::warn!(%error, sequence = %stored.sequence, "an unreadable call");
            unreadable(shared, stored).await
        }
    }
}

async fn work(
    shared: &Arc<Shared>,
    tool: &Arc<Tool>,
    delivery: &Delivery,
    (call, traceparent): (&ToolCall, Option<String>),
) -> Result<Settled, BusError> {
    let thread = &delivery.stored.subject.thread;
    let span = tracing::info_span!(
        "tool_call", %thread, run = call.run, turn = call.turn, tool_call_id = %call.tool_call_id
    );
    let key = (thread.clone(), call.tool_call_id.clone());
    let running = shared.running.begin(&key);
    let mut case = Case::new(shared, tool, &delivery.stored, call, running);
    case.again = delivery.count > 1;
    case.deliveries = delivery.count;
    case.traceparent = traceparent;
    let settled = Box::pin(case.work()).instrument(span).await;
    case.leave(matches!(settled, Ok(Settled::Ack))).await;
    // Nobody works again on a call that has its answer, so its lease may end by itself.
    if !matches!(settled, Ok(Settled::Ack)) {
        case.release().await;
    }
    settled
}

/// A record that nobody can decode is a planner's to set aside; until then it rests.
async fn unreadable(shared: &Shared, stored: &Stored) -> Result<Settled, BusError> {
    let thread = &stored.subject.thread;
    let after = shared.ports.journal.read(thread, stored.sequence.next(), Sequence::NONE).await?;
    let is_parked = after.iter().any(|record| parks(record, stored.sequence));
    Ok(if is_parked { Settled::Ack } else { Settled::Back(UNREADABLE) })
}

fn parks(record: &Stored, parked: Sequence) -> bool {
    let decoded = Envelope::decode(&record.payload).ok();
    matches!(
        decoded.map(|envelope| envelope.body),
        Some(Record::Fact(Fact::Parked { sequence, .. })) if sequence == parked
    )
}

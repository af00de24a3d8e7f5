//! Rules of [`ports::journal::Journal::schedule`] and its ticks.

use std::time::Duration;

use ports::journal::{AppendError, Fence, Stored};
use proto::envelope::Envelope;
use proto::ids::Sequence;
use proto::record::Record;
use proto::subject::Leaf;
use proto::time::Timestamp;

use super::kit::{PROGRESS, holds, peer, same, thread, until};
use super::{Broken, BusWorld, Outcome, Peer, suite};

suite!(BusWorld, BusHarness, run_bus:
    a_schedule_leaves_a_tick_when_it_is_due,
    a_tick_is_a_record_of_its_own,
    a_tick_is_delivered_to_the_planners,
    a_schedule_fires_once_and_is_gone,
    a_schedule_in_the_past_fires_at_once,
    a_later_schedule_replaces_an_earlier_one,
    an_earlier_schedule_replaces_a_later_one,
    scheduled_tells_when_it_will_fire,
    a_schedule_is_fenced,
    a_read_leaves_schedules_out,
    threads_have_schedules_of_their_own,
    a_schedule_survives_a_reopen,
);

/// Long enough to be seen armed, short enough to wait for.
const SOON: Duration = Duration::from_millis(300);
const LATER: Duration = Duration::from_hours(1);

async fn set(peer: &Peer, span: Duration) -> Result<Timestamp, Broken> {
    let at = peer.journal.server_time().await?.after(span);
    peer.journal.schedule(&thread(1), at, Fence::None).await?;
    Ok(at)
}

async fn ticks(peer: &Peer, n: u64) -> Result<Vec<Stored>, Broken> {
    let mut records = peer.journal.read(&thread(n), Sequence::NONE, Sequence::NONE).await?;
    records.retain(|stored| stored.subject.leaf == Leaf::Tick);
    Ok(records)
}

async fn first_tick(world: &dyn BusWorld, peer: &Peer) -> Result<Stored, Broken> {
    let patience = world.timing().patience + SOON;
    until(patience, "the tick", async || Ok(ticks(peer, 1).await?.pop())).await
}

/// Not before its time, and soon after it.
pub async fn a_schedule_leaves_a_tick_when_it_is_due(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let at = set(&one, SOON).await?;
    let tick = first_tick(world, &one).await?;
    holds("the tick is not early", tick.at >= at)
}

/// A tick decodes as [`Record::Tick`] with a nonce that no other tick has.
pub async fn a_tick_is_a_record_of_its_own(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let mut nonces = Vec::new();
    for count in 1..=2 {
        set(&one, Duration::ZERO).await?;
        let patience = world.timing().patience;
        let found = until(patience, "the tick", async || {
            let ticks = ticks(&one, 1).await?;
            Ok((ticks.len() == count).then_some(ticks))
        });
        let tick = found.await?.pop().map(|stored| Envelope::decode(&stored.payload));
        let Some(Ok(envelope)) = tick else {
            return Err(Broken::Violated(format!("the tick does not decode: {tick:?}")));
        };
        same("the record", envelope.body, Record::Tick)?;
        nonces.push(envelope.nonce);
    }
    nonces.dedup();
    same("different nonces", nonces.len(), 2)
}

/// A tick wakes planners that wait.
pub async fn a_tick_is_delivered_to_the_planners(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    set(&one, SOON).await?;
    let wait = world.timing().patience + SOON;
    let delivery = one.must_pull(&PROGRESS, wait, "the tick").await?;
    same("the subject", delivery.stored.subject.leaf, Leaf::Tick)
}

/// One tick, and nothing is scheduled any more.
pub async fn a_schedule_fires_once_and_is_gone(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    set(&one, SOON).await?;
    first_tick(world, &one).await?;
    same("the schedule", one.journal.scheduled(&thread(1)).await?, None)?;
    tokio::time::sleep(2 * SOON).await;
    same("the ticks", ticks(&one, 1).await?.len(), 1)
}

/// A time that is past is now.
pub async fn a_schedule_in_the_past_fires_at_once(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let long_ago = one.journal.server_time().await?.before(LATER);
    one.journal.schedule(&thread(1), long_ago, Fence::None).await?;
    first_tick(world, &one).await?;
    Ok(())
}

/// The earlier one does not fire any more.
pub async fn a_later_schedule_replaces_an_earlier_one(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    set(&one, SOON).await?;
    let later = set(&one, LATER).await?;
    if !ticks(&one, 1).await?.is_empty() {
        return Err(Broken::Skipped("the machine was too slow to replace the schedule in time"));
    }
    tokio::time::sleep(2 * SOON).await;
    same("the ticks", ticks(&one, 1).await?.len(), 0)?;
    same("the schedule", one.journal.scheduled(&thread(1)).await?, Some(later))
}

/// The earlier one fires at its own time.
pub async fn an_earlier_schedule_replaces_a_later_one(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    set(&one, LATER).await?;
    set(&one, SOON).await?;
    first_tick(world, &one).await?;
    same("the schedule", one.journal.scheduled(&thread(1)).await?, None)
}

/// Any process can ask.
pub async fn scheduled_tells_when_it_will_fire(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    same("no schedule", other.journal.scheduled(&thread(1)).await?, None)?;
    let at = set(&one, LATER).await?;
    same("the schedule", other.journal.scheduled(&thread(1)).await?, Some(at))
}

/// A schedule behind the chain is refused and changes nothing.
pub async fn a_schedule_is_fenced(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let last = one.put(Leaf::Fact).await?;
    let at = one.journal.server_time().await?.after(LATER);
    let behind = one.journal.schedule(&thread(1), at, Fence::Plan(Sequence::NONE)).await;
    let is_refused = matches!(behind, Err(AppendError::Fenced { .. }));
    holds("a schedule behind the chain is refused", is_refused)?;
    same("nothing is scheduled", one.journal.scheduled(&thread(1)).await?, None)?;
    one.journal.schedule(&thread(1), at, Fence::Plan(last)).await?;
    same("the schedule", one.journal.scheduled(&thread(1)).await?, Some(at))?;
    one.try_put(Leaf::Fact, Fence::Plan(last)).await?;
    Ok(())
}

/// A schedule is no record of the thread.
pub async fn a_read_leaves_schedules_out(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    set(&one, LATER).await?;
    let place = one.put(Leaf::In).await?;
    let found = one.all(1, place).await?;
    let leaves: Vec<_> = found.into_iter().map(|stored| stored.subject.leaf).collect();
    same("the thread", leaves, vec![Leaf::In])
}

/// One thread's schedule does not replace another's.
pub async fn threads_have_schedules_of_their_own(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let later = set(&one, LATER).await?;
    let past = one.journal.server_time().await?;
    one.journal.schedule(&thread(2), past, Fence::None).await?;
    let patience = world.timing().patience;
    until(patience, "the tick", async || Ok(ticks(&one, 2).await?.pop())).await?;
    same("the ticks", ticks(&one, 1).await?.len(), 0)?;
    same("the schedule", one.journal.scheduled(&thread(1)).await?, Some(later))
}

/// A restart does not forget a schedule, and catches up with one that was due meanwhile.
pub async fn a_schedule_survives_a_reopen(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    set(&one, SOON).await?;
    drop(one);
    if !world.reopen().await {
        return Err(Broken::Skipped("the adapter cannot be reopened"));
    }
    first_tick(world, &peer(world, "b").await).await?;
    Ok(())
}

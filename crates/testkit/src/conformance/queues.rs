//! Rules of [`ports::queues::Queues`].

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::{join, join_all};
use ports::queues::{Delivery, Queue};
use proto::ids::{Partition, Sequence, ThreadRef};
use proto::subject::{Leaf, Subject};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

use super::kit::{INBOX, MOMENT, PART, PROGRESS, call_id, holds, peer, same, thread, tool};
use super::{Broken, BusWorld, Outcome, Peer, suite};

suite!(BusWorld, BusHarness, run_bus:
    a_delivery_is_the_record_as_it_was_written,
    a_record_goes_to_one_puller_at_a_time,
    a_silent_holder_loses_its_delivery_after_the_ack_wait,
    progress_keeps_a_delivery,
    a_returned_delivery_comes_again_after_its_delay,
    an_acked_record_does_not_come_again,
    an_ack_may_be_repeated,
    inputs_go_to_the_inbox_only,
    observations_go_to_progress_only,
    calls_go_to_the_queue_of_their_tool_only,
    facts_and_starts_go_nowhere,
    a_queue_serves_one_partition,
    several_pullers_share_a_queue,
    a_pull_takes_no_more_than_it_asked_for,
    an_empty_pull_returns_after_its_wait,
    a_waiting_pull_is_woken,
    records_older_than_the_queue_are_delivered,
    a_dropped_pull_loses_nothing,
    a_purged_record_is_not_delivered,
    held_records_come_again_after_a_reopen,
);

fn ack_wait(peer: &Peer) -> Duration {
    peer.queues.ack_wait()
}

/// All deliveries that come. Those that have to come are waited for, however busy the machine is;
/// only once they are there, or the patience is at its end, does a moment without one end it.
async fn drain(
    world: &dyn BusWorld,
    peer: &Peer,
    queue: &Queue,
    wanted: &[Sequence],
) -> Result<Vec<Sequence>, Broken> {
    let end = Instant::now() + ack_wait(peer) + world.timing().patience;
    let mut found = Vec::new();
    loop {
        let Some(delivery) = peer.pull(queue, 5 * MOMENT).await? else {
            let has_all = wanted.iter().all(|sequence| found.contains(sequence));
            if has_all || Instant::now() >= end {
                return Ok(found);
            }
            continue;
        };
        peer.queues.ack(&delivery.token).await?;
        found.push(delivery.stored.sequence);
    }
}

async fn first(world: &dyn BusWorld, peer: &Peer, queue: &Queue) -> Result<Delivery, Broken> {
    peer.must_pull(queue, world.timing().patience, "a record that was written").await
}

/// Sequence, subject, time, bytes; and it is the first delivery.
pub async fn a_delivery_is_the_record_as_it_was_written(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let place = one.put(Leaf::In).await?;
    let delivery = first(world, &one, &INBOX).await?;
    let stored = one.all(1, place).await?;
    same("the record", vec![delivery.stored], stored)?;
    same("the count", delivery.count, 1)
}

/// While its holder is in touch, nobody else gets it; nor does the holder again.
pub async fn a_record_goes_to_one_puller_at_a_time(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    one.put(Leaf::In).await?;
    let start = Instant::now();
    first(world, &one, &INBOX).await?;
    let wait = ack_wait(&one) / 4;
    let again = [other.pull(&INBOX, wait).await?, one.pull(&INBOX, wait).await?];
    let early = again.iter().flatten().count() > 0 && start.elapsed() < ack_wait(&one);
    holds("a held record is not handed out", !early)
}

/// Not before the ack wait, and soon after it.
pub async fn a_silent_holder_loses_its_delivery_after_the_ack_wait(
    world: &dyn BusWorld,
) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    let place = one.put(Leaf::In).await?;
    let start = Instant::now();
    first(world, &one, &INBOX).await?;
    let wait = ack_wait(&one) + world.timing().patience;
    let again = other.must_pull(&INBOX, wait, "the record of a silent holder").await?;
    same("the record", again.stored.sequence, place)?;
    holds("it comes no earlier than the ack wait", start.elapsed() >= ack_wait(&one))
}

/// As long as its holder says so, a delivery stays with it. Judged only if this task was never
/// itself held up for an ack wait.
pub async fn progress_keeps_a_delivery(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    one.put(Leaf::In).await?;
    let mut sign = Instant::now();
    let held = first(world, &one, &INBOX).await?;
    let end = Instant::now() + 3 * ack_wait(&one);
    while Instant::now() < end {
        let stolen = other.pull(&INBOX, ack_wait(&one) / 4).await?;
        if sign.elapsed() >= ack_wait(&one) {
            return Err(Broken::Skipped("the machine was too slow to keep the delivery"));
        }
        same("what another puller gets", stolen, None)?;
        sign = Instant::now();
        one.queues.progress(std::slice::from_ref(&held.token)).await?;
    }
    let wait = ack_wait(&one) + world.timing().patience;
    other.must_pull(&INBOX, wait, "the record after the last progress").await?;
    Ok(())
}

/// Not before the delay, and soon after it; at once without one.
pub async fn a_returned_delivery_comes_again_after_its_delay(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let place = one.put(Leaf::In).await?;
    for delay in [Duration::ZERO, ack_wait(&one) / 2, 2 * ack_wait(&one)] {
        let held = first(world, &one, &INBOX).await?;
        let start = Instant::now();
        one.queues.nak(&held.token, delay).await?;
        let wait = delay + world.timing().patience;
        let again = one.must_pull(&INBOX, wait, "a returned record").await?;
        same("the record", again.stored.sequence, place)?;
        holds("it comes no earlier than its delay", start.elapsed() >= delay)?;
        one.queues.nak(&again.token, Duration::ZERO).await?;
    }
    Ok(())
}

/// An ack ends a delivery for everybody.
pub async fn an_acked_record_does_not_come_again(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    one.put(Leaf::In).await?;
    let held = first(world, &one, &INBOX).await?;
    one.queues.ack(&held.token).await?;
    let again = other.pull(&INBOX, ack_wait(&one) + 10 * MOMENT).await?;
    same("what comes after the ack", again, None)
}

/// The second ack is no error and takes nothing else away.
pub async fn an_ack_may_be_repeated(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    one.put(Leaf::In).await?;
    let held = first(world, &one, &INBOX).await?;
    let next = one.put(Leaf::In).await?;
    for _ in 0..3 {
        one.queues.ack(&held.token).await?;
    }
    same("the rest", drain(world, &one, &INBOX, &[next]).await?, vec![next])
}

/// Writes one record of every kind; answers with their places.
async fn one_of_each(peer: &Peer) -> Result<[Sequence; 6], Broken> {
    Ok([
        peer.put(Leaf::In).await?,
        peer.put(Leaf::Observation).await?,
        peer.put(Leaf::ToolCall(tool("a"))).await?,
        peer.put(Leaf::ToolCall(tool("ab"))).await?,
        peer.put(Leaf::Fact).await?,
        peer.put(Leaf::Start(call_id("call00001"))).await?,
    ])
}

/// The inbox has inputs and nothing else.
pub async fn inputs_go_to_the_inbox_only(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let [input, ..] = one_of_each(&one).await?;
    first(world, &one, &INBOX).await.map(drop)?;
    sleep(ack_wait(&one)).await;
    same("the inbox", drain(world, &one, &INBOX, &[input]).await?, vec![input])
}

/// The progress queue has observations (and ticks) and nothing else.
pub async fn observations_go_to_progress_only(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let [_, observation, ..] = one_of_each(&one).await?;
    let found = drain(world, &one, &PROGRESS, &[observation]).await?;
    same("the progress queue", found, vec![observation])
}

/// A tool's queue has the calls of exactly that tool; emptying one queue takes nothing from another.
pub async fn calls_go_to_the_queue_of_their_tool_only(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let [_, _, a, ab, ..] = one_of_each(&one).await?;
    for (name, wanted) in [("a", vec![a]), ("ab", vec![ab]), ("b", Vec::new())] {
        let queue = Queue::Tool(PART, tool(name));
        let found = drain(world, &one, &queue, &wanted).await?;
        same(&format!("the queue of {name}"), found, wanted)?;
    }
    Ok(())
}

/// No queue delivers a fact or a start.
pub async fn facts_and_starts_go_nowhere(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let [input, observation, call, _, fact, start] = one_of_each(&one).await?;
    let tools = Queue::Tool(PART, tool("a"));
    for (queue, wanted) in [(INBOX, input), (PROGRESS, observation), (tools, call)] {
        let found = drain(world, &one, &queue, &[wanted]).await?;
        holds("no fact, no start", !found.contains(&fact) && !found.contains(&start))?;
    }
    Ok(())
}

/// Another partition has queues of its own.
pub async fn a_queue_serves_one_partition(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let elsewhere = ThreadRef { partition: Partition(1), ..thread(2) };
    one.put_in(Subject::new(elsewhere.clone(), Leaf::In)).await?;
    let here = one.put(Leaf::In).await?;
    same("this partition", drain(world, &one, &INBOX, &[here]).await?, vec![here])?;
    let there = first(world, &one, &Queue::Inbox(Partition(1))).await?;
    same("the other partition", there.stored.subject.thread, elsewhere)
}

/// Takes its share of what there is, until all of them together have `wanted`.
async fn share(
    world: &dyn BusWorld,
    peer: &Peer,
    found: &Mutex<Vec<Sequence>>,
    wanted: usize,
) -> Result<(), Broken> {
    let end = Instant::now() + ack_wait(peer) + world.timing().patience;
    loop {
        let Some(delivery) = peer.pull(&INBOX, 5 * MOMENT).await? else {
            if found.lock().await.len() >= wanted || Instant::now() >= end {
                return Ok(());
            }
            continue;
        };
        peer.queues.ack(&delivery.token).await?;
        found.lock().await.push(delivery.stored.sequence);
    }
}

/// Three pullers get thirty records between them, each once.
pub async fn several_pullers_share_a_queue(world: &dyn BusWorld) -> Outcome {
    let mut peers = Vec::new();
    for n in 0..3 {
        peers.push(peer(world, &format!("puller-{n}")).await);
    }
    let mut written = Vec::new();
    for n in 1..=30 {
        if let Some(peer) = peers.first() {
            written.push(peer.put_in(Subject::new(thread(n), Leaf::In)).await?);
        }
    }
    let found = Mutex::new(Vec::new());
    let shares = peers.iter().map(|peer| share(world, peer, &found, written.len()));
    join_all(shares).await.into_iter().collect::<Result<Vec<()>, Broken>>()?;
    let found = found.into_inner();
    let distinct: BTreeSet<_> = found.iter().copied().collect();
    same("every record", distinct.into_iter().collect(), written)?;
    same("each of them once", found.len(), 30)
}

/// `max` is a limit; more than one may come at once.
pub async fn a_pull_takes_no_more_than_it_asked_for(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    for _ in 0..5 {
        one.put(Leaf::In).await?;
    }
    let mut count = 0;
    while count < 5 {
        let found = one.queues.pull(&INBOX, 2, world.timing().patience).await?;
        holds("at least one and at most two", (1..=2).contains(&found.len()))?;
        for delivery in found {
            one.queues.ack(&delivery.token).await?;
            count += 1;
        }
    }
    same("all of them", count, 5)
}

/// It waits, and it comes back.
pub async fn an_empty_pull_returns_after_its_wait(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let wait = 10 * MOMENT;
    let start = Instant::now();
    let pull = one.pull(&INBOX, wait);
    let Ok(found) = timeout(wait + world.timing().patience, pull).await else {
        return Err(Broken::Violated("the pull does not come back".to_owned()));
    };
    same("an empty queue", found?, None)?;
    // Half of it: an adapter may round its timer down.
    holds("it waited", start.elapsed() >= wait / 2)
}

/// A record that is written while a pull waits ends the wait.
pub async fn a_waiting_pull_is_woken(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    let patience = world.timing().patience;
    let write = async {
        sleep(5 * MOMENT).await;
        other.put(Leaf::In).await
    };
    let start = Instant::now();
    let (found, written) = join(one.pull(&INBOX, 20 * patience), write).await;
    let found = found?.map(|delivery| delivery.stored.sequence);
    same("the record", found, Some(written?))?;
    holds("it came soon after the append", start.elapsed() < patience + 5 * MOMENT)
}

/// A queue that nobody pulled from before begins with what is there.
pub async fn records_older_than_the_queue_are_delivered(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let mut written = Vec::new();
    for _ in 0..3 {
        written.push(one.put(Leaf::Observation).await?);
    }
    let mut found = drain(world, &peer(world, "b").await, &PROGRESS, &written).await?;
    found.sort();
    same("the progress queue", found, written)
}

/// What a dropped pull had under way comes again.
pub async fn a_dropped_pull_loses_nothing(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let patience = world.timing().patience;
    for _ in 0..5 {
        drop(timeout(MOMENT, one.pull(&INBOX, patience)).await);
    }
    let pulled = timeout(MOMENT, one.pull(&INBOX, patience));
    let (dropped, written) = join(pulled, one.put(Leaf::In)).await;
    let written = written?;
    if let Ok(found) = dropped {
        return same("the record", found?.map(|delivery| delivery.stored.sequence), Some(written));
    }
    let wait = ack_wait(&one) + patience;
    let found = one.must_pull(&INBOX, wait, "the record under way").await?;
    same("the record", found.stored.sequence, written)
}

/// Neither one that waits nor one that was held.
pub async fn a_purged_record_is_not_delivered(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    one.put(Leaf::In).await?;
    first(world, &one, &INBOX).await?;
    let last = one.put(Leaf::In).await?;
    one.journal.purge(&thread(1), last).await?;
    let found = one.pull(&INBOX, ack_wait(&one) + 10 * MOMENT).await?;
    same("what comes after the purge", found, None)
}

/// A restart loses no delivery.
pub async fn held_records_come_again_after_a_reopen(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let place = one.put(Leaf::In).await?;
    first(world, &one, &INBOX).await?;
    let wait = ack_wait(&one) + world.timing().patience;
    drop(one);
    if !world.reopen().await {
        return Err(Broken::Skipped("the adapter cannot be reopened"));
    }
    let again = peer(world, "b").await.must_pull(&INBOX, wait, "the held record").await?;
    same("the record", again.stored.sequence, place)
}

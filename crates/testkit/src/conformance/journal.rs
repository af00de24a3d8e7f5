//! Rules of [`ports::journal::Journal`], without schedules.

use bytes::Bytes;
use futures_util::future::join_all;
use ports::journal::{AppendError, Fence};
use proto::ids::{Sequence, ThreadRef};
use proto::subject::{Leaf, Subject};

use super::kit::{
    call_id, holds, peer, places, record, refused, same, subject, tenant, thread, tool, with_id,
};
use super::{Broken, BusWorld, Outcome, suite};

suite!(BusWorld, BusHarness, run_bus:
    records_come_back_as_they_were_written,
    records_come_back_in_order,
    sequences_rise_across_threads,
    a_read_begins_where_it_is_asked_to,
    a_read_contains_its_floor,
    a_floor_that_was_purged_counts_as_contained,
    a_read_shows_one_thread,
    a_plan_fence_counts_facts_and_the_calls_of_every_tool,
    a_plan_fence_passes_over_what_others_write,
    a_plan_fence_belongs_to_one_thread,
    a_subject_fence_counts_exactly_its_subject,
    a_refused_append_writes_nothing,
    of_racing_appends_one_wins,
    an_id_is_written_once,
    other_ids_are_written,
    last_is_the_newest_of_exactly_its_subject,
    a_purge_takes_everything_up_to_its_end,
    a_purge_keeps_what_is_later_and_other_threads,
    a_purge_lets_fences_fall,
    threads_come_newest_first_up_to_the_limit,
    threads_of_other_tenants_and_empty_ones_are_not_listed,
    records_bear_the_time_of_the_server,
    records_survive_a_reopen,
    ids_and_fences_survive_a_reopen,
);

/// Subject and payload come back byte by byte, whatever the payload is.
pub async fn records_come_back_as_they_were_written(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let mut append = record(subject(Leaf::ToolCall(tool("probe"))), Fence::None);
    append.payload = Bytes::from_static(b"\x00\xff not JSON \xf0\x9f");
    let done = one.journal.append(append.clone()).await?;
    holds("a first append is no duplicate", !done.duplicate)?;
    let found = one.all(1, done.sequence).await?;
    let parts: Vec<_> = found.into_iter().map(|s| (s.sequence, s.subject, s.payload)).collect();
    same("the thread", parts, vec![(done.sequence, append.subject, append.payload)])
}

/// A read answers in sequence order, whatever the subjects.
pub async fn records_come_back_in_order(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let mut written = Vec::new();
    let start = Leaf::Start(call_id("call00001"));
    for leaf in [Leaf::Observation, Leaf::In, Leaf::Fact, Leaf::ToolCall(tool("a")), start] {
        written.push(one.put(leaf).await?);
    }
    holds("sequences rise", written.is_sorted_by(|a, b| a < b))?;
    let found = one.all(1, written.last().copied().unwrap_or_default()).await?;
    same("the order", places(&found), written)
}

/// Two threads of a partition never share a sequence.
pub async fn sequences_rise_across_threads(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let mut written = Vec::new();
    for n in [1, 2, 1, 3] {
        written.push(one.put_in(Subject::new(thread(n), Leaf::In)).await?);
    }
    holds("sequences begin above zero", written.iter().all(|place| *place > Sequence::NONE))?;
    holds("sequences rise", written.is_sorted_by(|a, b| a < b))
}

/// `from` is the first sequence that may be answered.
pub async fn a_read_begins_where_it_is_asked_to(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let (first, second) = (one.put(Leaf::In).await?, one.put(Leaf::In).await?);
    let found = one.journal.read(&thread(1), second, second).await?;
    same("from the second on", places(&found), vec![second])?;
    let found = one.journal.read(&thread(1), first, second).await?;
    same("from the first on", places(&found), vec![first, second])?;
    let found = one.journal.read(&thread(1), second.next(), Sequence::NONE).await?;
    same("from beyond the end on", places(&found), vec![])
}

/// What another process was told is written is in every read that demands it.
pub async fn a_read_contains_its_floor(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    for _ in 0..20 {
        let floor = one.put(Leaf::In).await?;
        let found = other.all(1, floor).await?;
        same("the newest record", places(&found).last().copied(), Some(floor))?;
    }
    Ok(())
}

/// A floor that no longer exists does not make a read fail or wait for ever.
pub async fn a_floor_that_was_purged_counts_as_contained(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let floor = one.put(Leaf::In).await?;
    one.journal.purge(&thread(1), floor).await?;
    let ours = thread(1);
    let read = one.journal.read(&ours, Sequence::NONE, floor);
    match tokio::time::timeout(world.timing().patience, read).await {
        Ok(answer) => same("what is left", places(&answer?), vec![]),
        Err(_) => Err(Broken::Violated("the read waits for a purged floor".to_owned())),
    }
}

/// Records of other threads are not shown.
pub async fn a_read_shows_one_thread(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let ours = one.put_in(Subject::new(thread(1), Leaf::In)).await?;
    let theirs = one.put_in(Subject::new(thread(2), Leaf::In)).await?;
    same("the first thread", places(&one.all(1, ours).await?), vec![ours])?;
    same("the second thread", places(&one.all(2, theirs).await?), vec![theirs])
}

/// `Fence::Plan` is about `plan.fact` and `plan.tool_call.*` together.
pub async fn a_plan_fence_counts_facts_and_the_calls_of_every_tool(
    world: &dyn BusWorld,
) -> Outcome {
    let one = peer(world, "a").await;
    let mut last = Sequence::NONE;
    let chain = [
        Leaf::Fact,
        Leaf::ToolCall(tool("probe")),
        Leaf::ToolCall(tool("restart")),
        Leaf::Fact,
        Leaf::ToolCall(tool("probe")),
    ];
    for leaf in chain {
        let stale = last;
        last = one.try_put(leaf, Fence::Plan(last)).await?.sequence;
        let answer = one.try_put(Leaf::Fact, Fence::Plan(stale)).await;
        refused("a fact behind the chain", &answer, last)?;
        let answer = one.try_put(Leaf::ToolCall(tool("other")), Fence::Plan(stale)).await;
        refused("a call behind the chain", &answer, last)?;
    }
    Ok(())
}

/// Inputs, observations and starts do not move the plan fence.
pub async fn a_plan_fence_passes_over_what_others_write(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let last = one.try_put(Leaf::Fact, Fence::Plan(Sequence::NONE)).await?.sequence;
    for leaf in [Leaf::In, Leaf::Observation, Leaf::Start(call_id("call00001"))] {
        one.put(leaf).await?;
    }
    one.try_put(Leaf::Fact, Fence::Plan(last)).await?;
    Ok(())
}

/// The chain of one thread says nothing about another's.
pub async fn a_plan_fence_belongs_to_one_thread(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    for n in [1, 2] {
        let append = record(Subject::new(thread(n), Leaf::Fact), Fence::Plan(Sequence::NONE));
        one.journal.append(append).await?;
    }
    Ok(())
}

/// `Fence::Subject` is about one subject, not about its neighbours.
pub async fn a_subject_fence_counts_exactly_its_subject(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let start = |id: &str| Leaf::Start(call_id(id));
    let first = one.try_put(start("call00001"), Fence::Subject(Sequence::NONE)).await?.sequence;
    one.try_put(start("call00002"), Fence::Subject(Sequence::NONE)).await?;
    let answer = one.try_put(start("call00001"), Fence::Subject(Sequence::NONE)).await;
    refused("a second start", &answer, first)?;
    let second = one.try_put(start("call00001"), Fence::Subject(first)).await?.sequence;
    let answer = one.try_put(start("call00001"), Fence::Subject(first)).await;
    refused("a second second start", &answer, second)
}

/// A refusal leaves nothing behind.
pub async fn a_refused_append_writes_nothing(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let first = one.put(Leaf::Fact).await?;
    let answer = one.try_put(Leaf::Fact, Fence::Plan(Sequence::NONE)).await;
    refused("an append behind the chain", &answer, first)?;
    let answer = one.try_put(Leaf::Fact, Fence::Subject(first.next())).await;
    refused("an append ahead of the chain", &answer, first)?;
    same("the thread", places(&one.all(1, first).await?), vec![first])
}

/// Twenty appends with one expectation: one lands, nineteen are refused.
pub async fn of_racing_appends_one_wins(world: &dyn BusWorld) -> Outcome {
    let fences = [
        (Leaf::Fact, Fence::Plan(Sequence::NONE)),
        (Leaf::Start(call_id("call00001")), Fence::Subject(Sequence::NONE)),
    ];
    for (leaf, fence) in fences {
        let racers = join_all((0..20).map(|n| {
            let append = record(subject(leaf.clone()), fence);
            async move { peer(world, &format!("racer-{n}")).await.journal.append(append).await }
        }));
        let answers = racers.await;
        let won = answers.iter().filter(|answer| answer.is_ok()).count();
        let is_fenced = |answer: &&Result<_, _>| matches!(answer, Err(AppendError::Fenced { .. }));
        let lost = answers.iter().filter(is_fenced).count();
        same("winners and losers", (won, lost), (1, 19))?;
    }
    Ok(())
}

/// A second append with an id is acknowledged as a duplicate of the first.
pub async fn an_id_is_written_once(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    let first = one.journal.append(with_id(record(subject(Leaf::In), Fence::None), "key")).await?;
    let again = with_id(record(subject(Leaf::In), Fence::None), "key");
    let again = other.journal.append(again).await?;
    same("the answer", (again.sequence, again.duplicate), (first.sequence, true))?;
    same("the thread", places(&one.all(1, first.sequence).await?), vec![first.sequence])
}

/// Only the same id is the same append.
pub async fn other_ids_are_written(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let mut written = Vec::new();
    for id in [Some("a/1"), Some("a/2"), None, None] {
        let mut append = record(subject(Leaf::In), Fence::None);
        append.dedup = id.map(ToOwned::to_owned);
        let done = one.journal.append(append).await?;
        holds("it is no duplicate", !done.duplicate)?;
        written.push(done.sequence);
    }
    let floor = written.last().copied().unwrap_or_default();
    same("the thread", places(&one.all(1, floor).await?), written)
}

/// Neighbours do not count, and another process sees the newest at once.
pub async fn last_is_the_newest_of_exactly_its_subject(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    let first = Leaf::ToolCall(tool("a"));
    same("an empty subject", other.journal.last(&subject(first.clone())).await?, None)?;
    one.put(first.clone()).await?;
    let newest = one.put(first.clone()).await?;
    one.put(Leaf::ToolCall(tool("b"))).await?;
    one.put(Leaf::Fact).await?;
    one.put_in(Subject::new(thread(2), first.clone())).await?;
    let last = other.journal.last(&subject(first)).await?;
    same("the newest", last.map(|stored| stored.sequence), Some(newest))
}

/// The end of a purge goes with it.
pub async fn a_purge_takes_everything_up_to_its_end(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let mut written = Vec::new();
    for leaf in [Leaf::In, Leaf::Fact, Leaf::Observation] {
        written.push(one.put(leaf).await?);
    }
    let end = written.last().copied().unwrap_or_default();
    one.journal.purge(&thread(1), end).await?;
    same("the thread", places(&one.all(1, Sequence::NONE).await?), vec![])?;
    same("its newest input", one.journal.last(&subject(Leaf::In)).await?, None)
}

/// Nothing above the end, nothing of another thread.
pub async fn a_purge_keeps_what_is_later_and_other_threads(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let other = one.put_in(Subject::new(thread(2), Leaf::In)).await?;
    let first = one.put(Leaf::In).await?;
    let second = one.put(Leaf::In).await?;
    one.journal.purge(&thread(1), first).await?;
    same("the thread", places(&one.all(1, second).await?), vec![second])?;
    same("another thread", places(&one.all(2, other).await?), vec![other])
}

/// The fence is about what is there: purged records do not count, later ones do.
pub async fn a_purge_lets_fences_fall(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let gone = one.put(Leaf::Fact).await?;
    let kept = one.put(Leaf::Fact).await?;
    one.journal.purge(&thread(1), gone).await?;
    let answer = one.try_put(Leaf::Fact, Fence::Plan(Sequence::NONE)).await;
    refused("an append that passes over a kept record", &answer, kept)?;
    one.journal.purge(&thread(1), kept).await?;
    let answer = one.try_put(Leaf::Fact, Fence::Plan(kept)).await;
    refused("an append behind a purged record", &answer, Sequence::NONE)?;
    let after = one.try_put(Leaf::Fact, Fence::Plan(Sequence::NONE)).await?.sequence;
    holds("sequences go on after a purge", after > kept)
}

/// Younger threads come first.
pub async fn threads_come_newest_first_up_to_the_limit(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    for n in 1..=3 {
        one.put_in(Subject::new(thread(n), Leaf::In)).await?;
    }
    let listed = one.journal.threads(&tenant("acme"), 10).await?;
    same("all threads", listed, vec![thread(3), thread(2), thread(1)])?;
    let listed = one.journal.threads(&tenant("acme"), 2).await?;
    same("two threads", listed, vec![thread(3), thread(2)])
}

/// A tenant sees its own threads, as far as they have records.
pub async fn threads_of_other_tenants_and_empty_ones_are_not_listed(
    world: &dyn BusWorld,
) -> Outcome {
    let one = peer(world, "a").await;
    let theirs = ThreadRef { tenant: tenant("other"), ..thread(2) };
    one.put_in(Subject::new(theirs.clone(), Leaf::In)).await?;
    let gone = one.put_in(Subject::new(thread(3), Leaf::In)).await?;
    one.put(Leaf::In).await?;
    one.journal.purge(&thread(3), gone).await?;
    same("acme", one.journal.threads(&tenant("acme"), 10).await?, vec![thread(1)])?;
    same("other", one.journal.threads(&tenant("other"), 10).await?, vec![theirs])
}

/// The time of a record lies between two readings of the server's clock around its append.
pub async fn records_bear_the_time_of_the_server(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    let before = other.journal.server_time().await?;
    let place = one.put(Leaf::In).await?;
    let after = other.journal.server_time().await?;
    let at = one.all(1, place).await?.first().map(|stored| stored.at);
    holds("the time lies between", at.is_some_and(|at| before <= at && at <= after))
}

/// What was acknowledged is there after a restart.
pub async fn records_survive_a_reopen(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    one.put(Leaf::In).await?;
    let last = one.put(Leaf::Fact).await?;
    let before = one.all(1, last).await?;
    drop(one);
    if !world.reopen().await {
        return Err(Broken::Skipped("the adapter cannot be reopened"));
    }
    let after = peer(world, "b").await.all(1, last).await?;
    same("the thread", after, before)
}

/// A restart forgets neither an id nor what a fence is about.
pub async fn ids_and_fences_survive_a_reopen(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let keyed = with_id(record(subject(Leaf::In), Fence::None), "key");
    let first = one.journal.append(keyed.clone()).await?.sequence;
    let fact = one.put(Leaf::Fact).await?;
    drop(one);
    if !world.reopen().await {
        return Err(Broken::Skipped("the adapter cannot be reopened"));
    }
    let one = peer(world, "b").await;
    let again = one.journal.append(keyed).await?;
    same("the id", (again.sequence, again.duplicate), (first, true))?;
    let answer = one.try_put(Leaf::Fact, Fence::Plan(Sequence::NONE)).await;
    refused("an append behind the chain", &answer, fact)?;
    one.try_put(Leaf::Fact, Fence::Plan(fact)).await?;
    Ok(())
}

//! Rules of [`ports::feed::Feed`].

use ports::feed::MOST_RECORDS;
use ports::journal::Stored;
use proto::ids::{Partition, Sequence};
use proto::subject::{Leaf, Subject};

use super::kit::{PART, call_id, peer, places, same, thread, tool, until};
use super::{Broken, BusWorld, Outcome, Peer, suite};

suite!(BusWorld, BusHarness, run_bus:
    facts_of_all_threads_come_in_order_and_nothing_else_does,
    facts_go_on_behind_the_last_one,
    purged_facts_are_passed_over,
);

/// Reads may lag: asks until there are so many.
async fn facts(
    world: &dyn BusWorld,
    one: &Peer,
    from: Sequence,
    count: usize,
) -> Result<Vec<Stored>, Broken> {
    until(world.timing().patience, "the facts", async || {
        let found = one.feed.facts(PART, from, MOST_RECORDS).await?;
        Ok((found.len() >= count).then_some(found))
    })
    .await
}

/// Whatever lies between them.
pub async fn facts_of_all_threads_come_in_order_and_nothing_else_does(
    world: &dyn BusWorld,
) -> Outcome {
    let one = peer(world, "a").await;
    let mut wanted = Vec::new();
    for n in [1, 2, 1] {
        for leaf in [
            Leaf::In,
            Leaf::Observation,
            Leaf::ToolCall(tool("probe")),
            Leaf::Start(call_id("abc123xyz")),
        ] {
            one.put_in(Subject::new(thread(n), leaf)).await?;
        }
        wanted.push(one.put_in(Subject::new(thread(n), Leaf::Fact)).await?);
    }
    let found = facts(world, &one, Sequence::NONE, 3).await?;
    same("the facts", places(&found), wanted)?;
    let threads: Vec<_> = found.iter().map(|stored| stored.subject.thread.clone()).collect();
    same("their threads", threads, vec![thread(1), thread(2), thread(1)])?;
    let strange = one.feed.facts(Partition(1), Sequence::NONE, 9).await.unwrap_or_default();
    same("another partition", strange.len(), 0)
}

/// From a sequence on, no more than were asked for.
pub async fn facts_go_on_behind_the_last_one(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let mut wanted = Vec::new();
    for n in 1..=5 {
        wanted.push(one.put_in(Subject::new(thread(n), Leaf::Fact)).await?);
    }
    facts(world, &one, Sequence::NONE, 5).await?;
    let page = one.feed.facts(PART, Sequence::NONE, 2).await?;
    let last = page.last().map_or(Sequence::NONE, |stored| stored.sequence);
    let rest = facts(world, &one, last.next(), 3).await?;
    same("two pages", [places(&page), places(&rest)].concat(), wanted)?;
    let end = rest.last().map_or(Sequence::NONE, |stored| stored.sequence).next();
    same("at the end", one.feed.facts(PART, end, 9).await?.len(), 0)
}

/// The others still come.
pub async fn purged_facts_are_passed_over(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let gone = one.put_in(Subject::new(thread(1), Leaf::Fact)).await?;
    let left = one.put_in(Subject::new(thread(2), Leaf::Fact)).await?;
    one.journal.purge(&thread(1), gone).await?;
    let found = facts(world, &one, Sequence::NONE, 1).await?;
    same("what is left", places(&found), vec![left])
}

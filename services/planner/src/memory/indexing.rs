//! The indexer: reads facts behind a cursor of its own and puts what the threads said into the store.
//!
//! It is idempotent, because a piece has the same id whenever it is put; so it may be killed anywhere,
//! and two of them do no harm. While the store does not answer it waits, and catches up afterwards.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use memory_core::fragment::{Fragment, FragmentId};
use ports::BusError;
use ports::embedder::MOST_TEXTS;
use ports::journal::Stored;
use ports::recall::{Access, Filter, Kept, MOST_AT_ONCE, Query};
use proto::envelope::Envelope;
use proto::ids::{Nonce, Partition, Sequence, ThreadRef};
use proto::time::Timestamp;

use super::Memory;
use super::pieces::Pieces;
use super::recalling::fitting_space;
use crate::load::LoadError;
use crate::planner::Shared;

/// Facts of one look.
const FACTS: usize = 256;
/// Facts that are looked through for one that a new fact replaces.
const MOST_OLDER: usize = 50;
/// How far back a cursor goes whose fact is gone.
const BACK: u64 = 1000;
/// Threads of which it is known how far they are indexed.
const THREADS: usize = 4096;
/// How long one indexer is the only one.
const LEASE: Duration = Duration::from_secs(10);
/// The longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// What the last look may take when the planner stops.
const LAST: Duration = Duration::from_secs(5);

/// How far a reader has come: the last fact it read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place {
    sequence: Sequence,
    nonce: Option<Nonce>,
}

impl Place {
    fn of(stored: &Stored) -> Self {
        Self { sequence: stored.sequence, nonce: Envelope::nonce_of(&stored.payload) }
    }

    fn parse(text: &str) -> Self {
        let (sequence, nonce) = text.split_once(' ').unwrap_or((text, ""));
        Self { sequence: Sequence(sequence.parse().unwrap_or(0)), nonce: nonce.parse().ok() }
    }

    fn text(&self) -> String {
        let nonce = self.nonce.as_ref().map_or("", Nonce::as_str);
        format!("{} {nonce}", self.sequence)
    }
}

/// How far each thread is in the store.
type Done = BTreeMap<ThreadRef, Pieces>;

/// Indexes for ever.
pub(crate) async fn index(shared: Arc<Shared>) {
    let Some(memory) = &shared.config.memory else { return };
    let (mut done, mut failures) = (Done::new(), 0_u32);
    loop {
        let pause = match look(&shared, memory, &mut done).await {
            Ok(more) => {
                if std::mem::take(&mut failures) > 0 {
                    tracing::info!("long-term memory answers again; the indexer catches up");
                }
                if more { Duration::ZERO } else { memory.pause }
            }
            Err(error) => {
                failures = failures.saturating_add(1);
                shared.config.metrics.memory.index_failures.inc();
                if failures == 1 {
                    tracing::warn!(%error, "long-term memory does not take what is to be indexed");
                }
                memory.pause.saturating_mul(1 << failures.min(8)).min(LONGEST_PAUSE)
            }
        };
        tokio::time::sleep(pause).await;
    }
}

/// One look more when the planner stops: a program that runs one thread ends soon after it.
pub(crate) async fn index_last(shared: &Shared) {
    let Some(memory) = &shared.config.memory else { return };
    let mut done = Done::new();
    let all = async { while look(shared, memory, &mut done).await.unwrap_or(false) {} };
    if tokio::time::timeout(LAST, all).await.is_err() {
        tracing::debug!("not all was indexed; the next planner goes on");
    }
}

/// Looks at every partition once; answers whether there is more.
async fn look(shared: &Shared, memory: &Memory, done: &mut Done) -> Result<bool, BusError> {
    let mut more = false;
    for partition in &shared.config.partitions {
        if is_mine(shared, memory, *partition).await {
            more |= partition_once(shared, memory, *partition, done).await?;
        }
    }
    Ok(more)
}

/// Whether this process indexes the partition. Where nobody can tell, it does.
async fn is_mine(shared: &Shared, memory: &Memory, partition: Partition) -> bool {
    let Some(cells) = &memory.cells else { return true };
    let name = format!("memory-indexer/{}", partition.0);
    let me = Bytes::from(shared.config.instance.as_str().to_owned());
    let Ok(cell) = cells.cell(&name).await else { return true };
    if cell.value.as_ref().is_some_and(|holder| *holder != me) {
        return false;
    }
    cells.swap_cell(&name, cell.value.as_ref(), me, LEASE).await.unwrap_or(true)
}

async fn partition_once(
    shared: &Shared,
    memory: &Memory,
    partition: Partition,
    done: &mut Done,
) -> Result<bool, BusError> {
    let reader = format!("indexer-{}", partition.0);
    let cursor = memory.recall.cursor(&reader).await?;
    let cursor = cursor.as_deref().map(Place::parse).unwrap_or_default();
    let facts = next_facts(memory, partition, &cursor).await?;
    let Some(last) = facts.last() else { return Ok(false) };
    let mut threads: BTreeMap<&ThreadRef, (Sequence, Timestamp)> = BTreeMap::new();
    for fact in &facts {
        threads.insert(&fact.subject.thread, (fact.sequence, fact.at));
    }
    for (place, (floor, at)) in threads {
        index_thread(shared, memory, place, (floor, at), done).await?;
    }
    memory.recall.keep_cursor(&reader, &Place::of(last).text()).await?;
    let to = i64::try_from(last.sequence.0).unwrap_or(i64::MAX);
    let label = partition.0.to_string();
    shared.config.metrics.memory.indexed_to.with_label_values(&[&label]).set(to);
    Ok(facts.len() >= FACTS)
}

/// What comes behind the cursor. A journal that has lost its tail uses its numbers again: where the
/// cursor's fact is another one, or gone, some are read again.
async fn next_facts(
    memory: &Memory,
    partition: Partition,
    cursor: &Place,
) -> Result<Vec<Stored>, BusError> {
    let limit = FACTS.saturating_add(1);
    let mut facts = memory.feed.facts(partition, cursor.sequence, limit).await?;
    if cursor.sequence == Sequence::NONE {
        return Ok(facts);
    }
    match facts.first() {
        Some(first) if Place::of(first) == *cursor => {
            facts.remove(0);
            return Ok(facts);
        }
        // It was purged.
        Some(first) if first.sequence > cursor.sequence => return Ok(facts),
        Some(_) | None => {}
    }
    tracing::info!(?cursor, "the last fact that was indexed is gone; some are indexed again");
    let back = Sequence(cursor.sequence.0.saturating_sub(BACK));
    memory.feed.facts(partition, back, limit).await
}

async fn index_thread(
    shared: &Shared,
    memory: &Memory,
    place: &ThreadRef,
    (floor, at): (Sequence, Timestamp),
    done: &mut Done,
) -> Result<(), BusError> {
    let slot = shared.slots.slot(place).await;
    let mut kept = slot.lock().await;
    let thread = match shared.loader().load(place, &mut kept, floor).await {
        Ok(thread) => thread,
        Err(LoadError::Bus(error)) => return Err(error),
        Err(LoadError::TooNew(error)) => {
            tracing::warn!(%place, %error, "a thread is not indexed");
            return Ok(());
        }
    };
    drop(kept);
    if done.len() >= THREADS {
        done.clear();
    }
    // What is not put in the end is made again from the first group on: its ranks have to be the same.
    let mut made = done.remove(place).unwrap_or_default();
    let pieces = made.next(&thread, at, memory.redact.as_ref());
    put(shared, memory, &Access::of_thread(place), pieces).await?;
    done.insert(place.clone(), made);
    Ok(())
}

/// Puts what is not there yet: after a restart most of a thread is.
async fn put(
    shared: &Shared,
    memory: &Memory,
    access: &Access,
    pieces: Vec<Fragment>,
) -> Result<(), BusError> {
    let has_meaning = space(memory).await?;
    let mut left = pieces;
    while !left.is_empty() {
        let rest = left.split_off(left.len().min(MOST_TEXTS.min(MOST_AT_ONCE)));
        let fresh =
            unknown(memory, access, std::mem::replace(&mut left, rest), has_meaning).await?;
        if fresh.is_empty() {
            continue;
        }
        let texts: Vec<String> = fresh.iter().map(|piece| piece.text.clone()).collect();
        let vectors = if has_meaning { memory.embedder.embed(&texts).await? } else { Vec::new() };
        let mut vectors = vectors.into_iter();
        let kept = fresh.iter().cloned().map(|fragment| {
            let vector = vectors.next();
            Kept { vector, ..Kept::new(fragment) }
        });
        let put = memory.recall.put(access, kept.collect()).await?;
        for fragment in fresh.iter().filter(|fragment| !fragment.facts.is_empty()) {
            supersede(memory, access, fragment).await?;
        }
        let metrics = &shared.config.metrics.memory;
        metrics.indexed.inc_by(u64::try_from(put.kept).unwrap_or(0));
        metrics.forgotten.inc_by(u64::try_from(put.forgotten).unwrap_or(0));
    }
    Ok(())
}

/// A fact takes the place of an earlier one of its thread with the same subject and attribute: only
/// there is it certain that both speak of the same. A fragment that states more is left as it is.
async fn supersede(memory: &Memory, access: &Access, newer: &Fragment) -> Result<(), BusError> {
    for fact in &newer.facts {
        let filter = Filter { thread: Some(newer.id.thread), ..Filter::default() };
        let words = format!("{} {}", fact.subject, fact.attribute);
        let query = Query { filter, ..Query::words(words, MOST_OLDER, newer.at) };
        let found = memory.recall.query(access, &query).await?;
        let is_older = |kept: &Kept| match kept.fragment.facts.as_slice() {
            [other] => other.key() == fact.key() && kept.fragment.id < newer.id,
            _ => false,
        };
        let older = found.into_iter().map(|hit| hit.kept).filter(is_older);
        let older: Vec<FragmentId> = older.map(|kept| kept.fragment.id).collect();
        if !older.is_empty() {
            memory.recall.supersede(access, &older, &newer.id, newer.at).await?;
        }
    }
    Ok(())
}

/// Whether vectors are kept: the first ones say which the store holds.
async fn space(memory: &Memory) -> Result<bool, BusError> {
    let Some(own) = memory.embedder.space().await? else { return Ok(false) };
    if memory.recall.space().await?.is_none() {
        memory.recall.settle(Some(own)).await?;
        return Ok(true);
    }
    Ok(fitting_space(memory).await?.is_some())
}

async fn unknown(
    memory: &Memory,
    access: &Access,
    pieces: Vec<Fragment>,
    has_meaning: bool,
) -> Result<Vec<Fragment>, BusError> {
    let ids: Vec<FragmentId> = pieces.iter().map(|piece| piece.id.clone()).collect();
    let there = memory.recall.get(access, &ids).await?;
    let there: BTreeMap<&FragmentId, &Kept> =
        there.iter().map(|kept| (&kept.fragment.id, kept)).collect();
    let is_new = |piece: &Fragment| {
        there.get(&piece.id).is_none_or(|kept| {
            kept.fragment.text != piece.text || (has_meaning && kept.vector.is_none())
        })
    };
    Ok(pieces.into_iter().filter(is_new).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_its_text_and_a_strange_one_begins_anew() {
        let place = Place { sequence: Sequence(17), nonce: "00112233445566ff".parse().ok() };
        assert_eq!(Place::parse(&place.text()), place);
        assert_eq!(Place::parse("rubbish"), Place::default());
        assert_eq!(Place::parse(&Place::default().text()), Place::default());
    }
}

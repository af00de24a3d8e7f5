//! One append inside a transaction: duplicate, fence, record, queue.

use std::time::Duration;

use bytes::Bytes;
use ports::journal::{Append, Appended, Fence, Stored};
use proto::ids::{Sequence, ThreadRef};
use proto::subject::{Leaf, Subject};
use proto::time::Timestamp;
use rusqlite::Connection;

use crate::book::queue_of;
use crate::commit::Tx;
use crate::recent::Written;
use crate::rows::{
    PLAN, chain_of, ensure_thread, from_sql, leaf_text, one, run, thread_id, thread_key, to_sql,
};
use crate::starts;

/// How long a deduplication id is remembered.
pub(crate) const DEDUP_WINDOW: Duration = Duration::from_mins(10);

/// What a fence said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict<T> {
    /// It held.
    Done(T),
    /// This sequence stands there.
    Fenced(Sequence),
}

/// Executes one append.
pub(crate) fn append(tx: &mut Tx<'_>, append: &Append) -> rusqlite::Result<Verdict<Appended>> {
    let now = tx.now();
    if let Some(id) = &append.dedup
        && let Some(sequence) = duplicate(tx.conn, id, now)?
    {
        return Ok(Verdict::Done(Appended { sequence, duplicate: true }));
    }
    let thread = thread_id(tx.conn, &append.subject.thread)?;
    let last = last_of(tx.conn, thread, &append.subject.leaf, append.fence)?;
    if let Some(last) = in_the_way(append.fence, last) {
        return Ok(Verdict::Fenced(last));
    }
    let sequence = write(tx, thread, &append.subject, &append.payload, now)?;
    if let Some(id) = &append.dedup {
        let sql = "INSERT OR REPLACE INTO dedup(id, seq, at) VALUES (?1, ?2, ?3)";
        run(tx.conn, sql, (id, to_sql(sequence), now.0))?;
    }
    Ok(Verdict::Done(Appended { sequence, duplicate: false }))
}

/// Writes a record and puts it into its queue. `known` is the thread's row, if it has one.
pub(crate) fn write(
    tx: &mut Tx<'_>,
    known: Option<i64>,
    subject: &Subject,
    payload: &Bytes,
    now: Timestamp,
) -> rusqlite::Result<Sequence> {
    let (thread, first) = if let Some(id) = known {
        (id, false)
    } else {
        let is_unknown = !has_marks(tx.conn, &subject.thread)?;
        (ensure_thread(tx.conn, &subject.thread)?, is_unknown)
    };
    let leaf = leaf_text(&subject.leaf);
    let chain = chain_of(&subject.leaf, &leaf);
    let sql =
        "INSERT INTO records(thread_id, chain, leaf, at, payload) VALUES (?1, ?2, ?3, ?4, ?5)";
    run(tx.conn, sql, (thread, chain, &leaf, now.0, payload.as_ref()))?;
    let sequence = from_sql(tx.conn.last_insert_rowid());
    let stored = Stored { sequence, subject: subject.clone(), at: now, payload: payload.clone() };
    if queue_of(subject).is_some() {
        run(tx.conn, "INSERT INTO pending(seq) VALUES (?1)", [to_sql(sequence)])?;
        tx.effects.delivered.push(stored.clone());
    }
    tx.effects.written.push(Written { stored, first });
    starts::follow(tx.conn, thread, subject, sequence, payload)?;
    Ok(sequence)
}

/// Whether working memory knows calls of a thread that has no records: it was purged before.
fn has_marks(conn: &Connection, thread: &ThreadRef) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM done WHERE thread = ?1
               UNION ALL SELECT 1 FROM cancelled WHERE thread = ?1 LIMIT 1";
    Ok(one(conn, sql, [thread_key(thread)], |_| Ok(()))?.is_some())
}

/// The record with this deduplication id, if it was written within the window.
fn duplicate(conn: &Connection, id: &str, now: Timestamp) -> rusqlite::Result<Option<Sequence>> {
    let sql = "SELECT seq FROM dedup WHERE id = ?1 AND at > ?2";
    one(conn, sql, (id, now.before(DEDUP_WINDOW).0), |row| Ok(from_sql(row.get(0)?)))
}

/// The sequence that a fence has to be compared with.
fn last_of(
    conn: &Connection,
    thread: Option<i64>,
    leaf: &Leaf,
    fence: Fence,
) -> rusqlite::Result<Sequence> {
    let Some(thread) = thread else { return Ok(Sequence::NONE) };
    match fence {
        Fence::None => Ok(Sequence::NONE),
        Fence::Plan(_) => last_in_chain(conn, thread, PLAN),
        Fence::Subject(_) => last_in_leaf(conn, thread, leaf),
    }
}

/// Checks a fence of something that is not a record itself.
pub(crate) fn check(
    conn: &Connection,
    thread: &ThreadRef,
    leaf: &Leaf,
    fence: Fence,
) -> rusqlite::Result<Verdict<Option<i64>>> {
    let id = thread_id(conn, thread)?;
    let last = last_of(conn, id, leaf, fence)?;
    Ok(in_the_way(fence, last).map_or(Verdict::Done(id), Verdict::Fenced))
}

fn in_the_way(fence: Fence, last: Sequence) -> Option<Sequence> {
    match fence {
        Fence::None => None,
        Fence::Plan(expected) | Fence::Subject(expected) => (expected != last).then_some(last),
    }
}

fn last_in_chain(conn: &Connection, thread: i64, chain: &str) -> rusqlite::Result<Sequence> {
    let sql = "SELECT max(seq) FROM records WHERE thread_id = ?1 AND chain = ?2";
    let last = one(conn, sql, (thread, chain), |row| row.get::<_, Option<i64>>(0))?;
    Ok(last.flatten().map_or(Sequence::NONE, from_sql))
}

fn last_in_leaf(conn: &Connection, thread: i64, leaf: &Leaf) -> rusqlite::Result<Sequence> {
    let text = leaf_text(leaf);
    if !leaf.is_plan() {
        return last_in_chain(conn, thread, &text);
    }
    let sql = "SELECT seq FROM records WHERE thread_id = ?1 AND chain = ?2 AND leaf = ?3
               ORDER BY seq DESC LIMIT 1";
    let last = one(conn, sql, (thread, PLAN, &text), |row| row.get(0))?;
    Ok(last.map_or(Sequence::NONE, from_sql))
}

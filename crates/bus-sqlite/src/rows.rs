//! How names and records lie in the tables.

use bytes::Bytes;
use ports::journal::Stored;
use proto::ids::{Partition, Sequence, ThreadRef};
use proto::subject::{Leaf, Subject, thread_prefix};
use proto::time::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Params, Row};

/// The chain that `Fence::Plan` looks at.
pub(crate) const PLAN: &str = "plan";

/// The columns that [`stored`] reads.
pub(crate) const STORED: &str = "r.seq, r.leaf, r.at, r.payload";

/// A sequence as a column; there are none beyond the largest integer of SQLite.
pub(crate) fn to_sql(sequence: Sequence) -> i64 {
    i64::try_from(sequence.0).unwrap_or(i64::MAX)
}

/// A column as a sequence.
pub(crate) fn from_sql(value: i64) -> Sequence {
    Sequence(u64::try_from(value).unwrap_or(0))
}

/// A leaf as a subject ends with it.
pub(crate) fn leaf_text(leaf: &Leaf) -> String {
    match leaf {
        Leaf::In => "in".to_owned(),
        Leaf::Fact => "plan.fact".to_owned(),
        Leaf::ToolCall(tool) => format!("plan.tool_call.{tool}"),
        Leaf::Start(call) => format!("start.{call}"),
        Leaf::Observation => "obs".to_owned(),
        Leaf::Schedule => "sched".to_owned(),
        Leaf::Tick => "tick".to_owned(),
    }
}

/// The chain that a leaf belongs to.
pub(crate) fn chain_of<'a>(leaf: &Leaf, text: &'a str) -> &'a str {
    if leaf.is_plan() { PLAN } else { text }
}

/// A thread as one key.
pub(crate) fn thread_key(thread: &ThreadRef) -> String {
    thread.to_string()
}

/// A key as a thread.
pub(crate) fn thread_of(key: &str) -> Option<ThreadRef> {
    let mut parts = key.splitn(3, '/');
    let partition = Partition(parts.next()?.parse().ok()?);
    let tenant = parts.next()?.parse().ok()?;
    let thread = parts.next()?.parse().ok()?;
    Some(ThreadRef { partition, tenant, thread })
}

/// The thread in columns `at` to `at + 2`: partition, tenant, thread.
pub(crate) fn thread_at(row: &Row<'_>, at: usize) -> rusqlite::Result<ThreadRef> {
    let part: u16 = row.get(at)?;
    let tenant: String = row.get(at.saturating_add(1))?;
    let thread: String = row.get(at.saturating_add(2))?;
    thread_of(&format!("{part}/{tenant}/{thread}")).ok_or_else(|| strange(at, &"not a thread"))
}

/// A record out of the columns [`STORED`].
pub(crate) fn stored(row: &Row<'_>, thread: &ThreadRef) -> rusqlite::Result<Stored> {
    let leaf = row.get_ref(1)?.as_str()?;
    let subject: Subject =
        format!("{}.{leaf}", thread_prefix(thread)).parse().map_err(|error| strange(1, &error))?;
    Ok(Stored {
        sequence: from_sql(row.get(0)?),
        subject,
        at: Timestamp(row.get(2)?),
        payload: Bytes::from(row.get::<_, Vec<u8>>(3)?),
    })
}

/// An error that says that a column does not hold what was written there.
pub(crate) fn strange(column: usize, why: &dyn std::fmt::Display) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, why.to_string().into())
}

/// At most one row of a cached statement.
pub(crate) fn one<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    conn.prepare_cached(sql)?.query_row(params, read).optional()
}

/// All rows of a cached statement.
pub(crate) fn all<T>(
    conn: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    conn.prepare_cached(sql)?.query_map(params, read)?.collect()
}

/// Executes a cached statement; answers how many rows it changed.
pub(crate) fn run(conn: &Connection, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
    conn.prepare_cached(sql)?.execute(params)
}

/// The row id of a thread, if it has one.
pub(crate) fn thread_id(conn: &Connection, thread: &ThreadRef) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT id FROM threads WHERE tenant = ?1 AND thread = ?2 AND part = ?3";
    let name = thread.thread.to_string();
    one(conn, sql, (thread.tenant.as_str(), name, thread.partition.0), |row| row.get(0))
}

/// The row id of a thread, made if need be.
pub(crate) fn ensure_thread(conn: &Connection, thread: &ThreadRef) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO threads(tenant, thread, part) VALUES (?1, ?2, ?3)";
    let name = thread.thread.to_string();
    run(conn, sql, (thread.tenant.as_str(), name, thread.partition.0))?;
    Ok(conn.last_insert_rowid())
}

#[cfg(test)]
mod tests {
    use proto::ids::{ToolCallId, ToolName};

    use super::*;

    fn thread() -> ThreadRef {
        thread_of("3/acme/01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap()
    }

    #[test]
    fn a_thread_survives_the_way_through_its_key() {
        assert_eq!(thread_of(&thread_key(&thread())), Some(thread()));
        assert_eq!(thread_of("3/acme"), None);
    }

    #[test]
    fn a_leaf_is_written_the_way_subjects_end() {
        let leaves = [
            Leaf::In,
            Leaf::Fact,
            Leaf::ToolCall(ToolName::new("probe").unwrap()),
            Leaf::Start(ToolCallId::new("abc123xyz").unwrap()),
            Leaf::Observation,
            Leaf::Schedule,
            Leaf::Tick,
        ];
        for leaf in leaves {
            let text = leaf_text(&leaf);
            let subject = Subject::new(thread(), leaf);
            assert_eq!(subject.to_string(), format!("{}.{text}", thread_prefix(&thread())));
            let chain = chain_of(&subject.leaf, &text);
            assert_eq!(chain == PLAN, subject.leaf.is_plan());
        }
    }
}

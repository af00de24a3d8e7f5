//! Attempts with a process group that nobody has observed the end of. After a crash their
//! processes may still run.

use ports::BusError;
use proto::call::{Start, Started};
use proto::envelope::Envelope;
use proto::ids::{Sequence, ToolCallId};
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use rusqlite::Connection;
use serde::Deserialize;

use crate::SqliteBus;
use crate::rows::{all, one, run, to_sql};
use crate::writer::Promise;

/// The part of an observation that says which call it answers.
#[derive(Deserialize)]
struct Observed {
    body: ObservedCall,
}

#[derive(Deserialize)]
struct ObservedCall {
    tool_call_id: ToolCallId,
}

/// Keeps the list of open attempts true while records are written.
pub(crate) fn follow(
    conn: &Connection,
    thread: i64,
    subject: &Subject,
    sequence: Sequence,
    payload: &[u8],
) -> rusqlite::Result<()> {
    match &subject.leaf {
        Leaf::Start(call) if started(payload).is_some() => {
            let sql = "INSERT INTO open_starts(seq, thread_id, call) VALUES (?1, ?2, ?3)";
            run(conn, sql, (to_sql(sequence), thread, call.as_str()))?;
        }
        Leaf::Observation if has_open(conn, thread)? => close(conn, thread, payload)?,
        Leaf::Start(_)
        | Leaf::Observation
        | Leaf::In
        | Leaf::Fact
        | Leaf::ToolCall(_)
        | Leaf::Schedule
        | Leaf::Tick => {}
    }
    Ok(())
}

fn has_open(conn: &Connection, thread: i64) -> rusqlite::Result<bool> {
    let sql = "SELECT 1 FROM open_starts WHERE thread_id = ?1 LIMIT 1";
    Ok(one(conn, sql, [thread], |_| Ok(()))?.is_some())
}

fn close(conn: &Connection, thread: i64, payload: &[u8]) -> rusqlite::Result<()> {
    let Ok(observed) = serde_json::from_slice::<Observed>(payload) else { return Ok(()) };
    let sql = "DELETE FROM open_starts WHERE thread_id = ?1 AND call = ?2";
    run(conn, sql, (thread, observed.body.tool_call_id.as_str())).map(drop)
}

/// The attempt that a record says began, if it has a process group.
fn started(payload: &[u8]) -> Option<Started> {
    match Envelope::decode(payload).ok()?.body {
        Record::Start(Start::Started(started)) => {
            started.process_group.is_some().then_some(started)
        }
        Record::Start(Start::Barred(_) | Start::Held(_))
        | Record::Input(_)
        | Record::Fact(_)
        | Record::ToolCall(_)
        | Record::Observation(_)
        | Record::Tick => None,
    }
}

impl SqliteBus {
    /// Attempts of earlier processes with a process group whose call has no observation yet.
    ///
    /// Their processes may still run; whoever starts on this file kills the groups and then calls
    /// [`SqliteBus::forget_previous_starts`]. A group number may have been given to a stranger since:
    /// compare the start time of the processes in it with [`Started::at`].
    pub async fn previous_starts(&self) -> Result<Vec<Started>, BusError> {
        let up_to = to_sql(self.inner.opened_at);
        self.inner
            .readers
            .run(move |conn| {
                let sql = "SELECT r.payload FROM open_starts o JOIN records r ON r.seq = o.seq
                           WHERE o.seq <= ?1 ORDER BY o.seq";
                let payloads = all(conn, sql, [up_to], |row| row.get::<_, Vec<u8>>(0))?;
                Ok(payloads.iter().filter_map(|payload| started(payload)).collect())
            })
            .await
    }

    /// The groups of earlier processes are dead: they are not reported again.
    pub async fn forget_previous_starts(&self) -> Result<(), BusError> {
        let up_to = to_sql(self.inner.opened_at);
        let forget = self.inner.writer.run(Promise::Soft, 0, move |tx| {
            run(tx.conn, "DELETE FROM open_starts WHERE seq <= ?1", [up_to]).map(drop)
        });
        Ok(forget.await?)
    }
}

//! What changes often and may be lost: kept in memory, written behind with the next commit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ports::working_memory::{Sample, TurnText};
use proto::ids::{Sequence, ThreadRef, ToolName};
use proto::time::Timestamp;
use rusqlite::Connection;

use crate::guarded::Guarded;
use crate::rows::{all, from_sql, one, run, strange, thread_key, to_sql};

/// Text that may wait in memory; beyond it a caller waits until it is written.
const TEXT_BYTES: usize = 32 * 1024 * 1024;
/// Samples kept per tool, whatever the window.
const SAMPLES: usize = 1000;
/// Bytes of one packed sample: eight of time, one of outcome.
const PACKED: usize = 9;

/// What a caller has to do after something was kept in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Nothing: the writer knows that something waits.
    Nothing,
    /// Tell the writer.
    Tell,
    /// Wait until it is written: too much waits already.
    Wait,
}

#[derive(Debug, Default)]
struct State {
    /// Turn texts that are not written yet.
    texts: BTreeMap<ThreadRef, Arc<TurnText>>,
    text_bytes: usize,
    samples: BTreeMap<ToolName, Vec<Sample>>,
    /// Tools whose samples are not written yet.
    sampled: BTreeMap<ToolName, u64>,
    changes: u64,
    /// The writer knows that something waits.
    told: bool,
}

/// Turn texts and samples of the bus.
#[derive(Debug, Default)]
pub(crate) struct Behind(Guarded<State>);

/// What waits to be written at one moment.
#[derive(Debug)]
pub(crate) struct Dirty {
    texts: Vec<(ThreadRef, Arc<TurnText>)>,
    samples: Vec<(ToolName, u64, Vec<Sample>)>,
}

impl Behind {
    /// With the samples of an earlier process.
    pub(crate) fn load(conn: &Connection) -> rusqlite::Result<Self> {
        let rows = all(conn, "SELECT tool, packed FROM samples", [], |row| {
            let tool = ToolName::new(row.get::<_, String>(0)?);
            let tool = tool.map_err(|error| strange(0, &error))?;
            Ok((tool, unpack(row.get_ref(1)?.as_blob()?)))
        })?;
        let state = State { samples: rows.into_iter().collect(), ..State::default() };
        Ok(Self(Guarded::new(state)))
    }

    /// Keeps a text unless one of a later turn waits.
    pub(crate) fn keep_text(&self, thread: &ThreadRef, text: TurnText) -> Then {
        self.0.with(|state| {
            let known = state.texts.get(thread);
            if known.is_some_and(|known| known.started > text.started) {
                return Then::Nothing;
            }
            state.text_bytes = state.text_bytes.saturating_add(size(&text));
            if let Some(old) = state.texts.insert(thread.clone(), Arc::new(text)) {
                state.text_bytes = state.text_bytes.saturating_sub(size(&old));
            }
            if state.text_bytes > TEXT_BYTES { Then::Wait } else { state.tell() }
        })
    }

    /// The text that waits to be written.
    pub(crate) fn text(&self, thread: &ThreadRef) -> Option<Arc<TurnText>> {
        self.0.with(|state| state.texts.get(thread).cloned())
    }

    /// Counts outcomes. Age is judged by the newest sample, not by a clock of ours.
    pub(crate) fn add_samples(&self, tool: &ToolName, told: &[Sample], window: Duration) -> Then {
        self.0.with(|state| {
            state.changes = state.changes.saturating_add(1);
            state.sampled.insert(tool.clone(), state.changes);
            let samples = state.samples.entry(tool.clone()).or_default();
            for sample in told {
                let place = samples.partition_point(|known| known.at <= sample.at);
                samples.insert(place, *sample);
            }
            let newest = samples.last().map_or_else(Timestamp::default, |newest| newest.at);
            let over = samples.partition_point(|known| known.at < newest.before(window));
            let surplus = samples.len().saturating_sub(SAMPLES);
            samples.drain(..over.max(surplus));
            state.tell()
        })
    }

    pub(crate) fn samples(&self, tool: &ToolName) -> Vec<Sample> {
        self.0.with(|state| state.samples.get(tool).cloned().unwrap_or_default())
    }

    /// All that waits to be written.
    pub(crate) fn dirty(&self) -> Dirty {
        self.0.with(|state| {
            state.told = false;
            let texts = state.texts.iter().map(|(thread, text)| (thread.clone(), Arc::clone(text)));
            let samples = state.sampled.iter().map(|(tool, change)| {
                (tool.clone(), *change, state.samples.get(tool).cloned().unwrap_or_default())
            });
            Dirty { texts: texts.collect(), samples: samples.collect() }
        })
    }

    /// Forgets what has been written, unless it has changed since.
    pub(crate) fn written(&self, dirty: &Dirty) {
        self.0.with(|state| {
            for (thread, text) in &dirty.texts {
                let same = state.texts.get(thread).is_some_and(|now| Arc::ptr_eq(now, text));
                if same {
                    state.texts.remove(thread);
                    state.text_bytes = state.text_bytes.saturating_sub(size(text));
                }
            }
            for (tool, change, _) in &dirty.samples {
                if state.sampled.get(tool) == Some(change) {
                    state.sampled.remove(tool);
                }
            }
        });
    }
}

impl State {
    fn tell(&mut self) -> Then {
        if std::mem::replace(&mut self.told, true) { Then::Nothing } else { Then::Tell }
    }
}

impl Dirty {
    /// Writes all of it.
    pub(crate) fn write(&self, conn: &Connection) -> rusqlite::Result<()> {
        for (thread, text) in &self.texts {
            let sql = "INSERT INTO turn_texts(thread, started, text, reasoning)
                       VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT(thread) DO UPDATE SET started = excluded.started,
                         text = excluded.text, reasoning = excluded.reasoning
                       WHERE excluded.started >= turn_texts.started";
            let key = thread_key(thread);
            run(conn, sql, (key, to_sql(text.started), &text.text, &text.reasoning))?;
        }
        for (tool, _, samples) in &self.samples {
            let sql = "INSERT OR REPLACE INTO samples(tool, packed) VALUES (?1, ?2)";
            run(conn, sql, (tool.as_str(), pack(samples)))?;
        }
        Ok(())
    }
}

/// A text that was written.
pub(crate) fn written_text(conn: &Connection, key: &str) -> rusqlite::Result<Option<TurnText>> {
    let sql = "SELECT started, text, reasoning FROM turn_texts WHERE thread = ?1";
    one(conn, sql, [key], |row| {
        Ok(TurnText { started: from_sql(row.get(0)?), text: row.get(1)?, reasoning: row.get(2)? })
    })
}

/// The text of the later turn; of two texts of one turn the one that waits is newer.
pub(crate) fn newer(waits: Option<Arc<TurnText>>, written: Option<TurnText>) -> Option<TurnText> {
    let started = written.as_ref().map_or(Sequence::NONE, |text| text.started);
    match waits {
        Some(text) if text.started >= started => Some(TurnText::clone(&text)),
        Some(_) | None => written,
    }
}

fn size(text: &TurnText) -> usize {
    text.text.len().saturating_add(text.reasoning.len())
}

fn pack(samples: &[Sample]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(samples.len().saturating_mul(PACKED));
    for sample in samples {
        packed.extend(sample.at.0.to_le_bytes());
        packed.push(u8::from(sample.ok));
    }
    packed
}

fn unpack(packed: &[u8]) -> Vec<Sample> {
    let (samples, _) = packed.as_chunks::<PACKED>();
    samples
        .iter()
        .map(|[a, b, c, d, e, f, g, h, ok]| Sample {
            at: Timestamp(i64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h])),
            ok: *ok != 0,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::thread_of;

    fn thread() -> ThreadRef {
        thread_of("0/acme/01ARZ3NDEKTSV4RRFFQ69G5FAV").unwrap()
    }

    fn text(started: u64, text: &str) -> TurnText {
        TurnText { started: Sequence(started), text: text.to_owned(), reasoning: String::new() }
    }

    fn sample(at: i64, ok: bool) -> Sample {
        Sample { at: Timestamp(at), ok }
    }

    #[test]
    fn samples_survive_packing() {
        let samples = [sample(-5, true), sample(0, false), sample(i64::MAX, true)];
        assert_eq!(unpack(&pack(&samples)), samples);
    }

    #[test]
    fn samples_older_than_the_window_are_dropped_whatever_their_order() {
        let (behind, tool) = (Behind::default(), ToolName::new("probe").unwrap());
        let window = Duration::from_millis(100);
        for sample in [sample(1000, true), sample(950, false), sample(899, false)] {
            behind.add_samples(&tool, &[sample], window);
        }
        assert_eq!(behind.samples(&tool), [sample(950, false), sample(1000, true)]);
    }

    #[test]
    fn a_text_that_changed_while_it_was_written_still_waits() {
        let behind = Behind::default();
        behind.keep_text(&thread(), text(5, "a"));
        let dirty = behind.dirty();
        behind.keep_text(&thread(), text(5, "ab"));
        behind.written(&dirty);
        assert_eq!(behind.text(&thread()).as_deref(), Some(&text(5, "ab")));
        behind.written(&behind.dirty());
        assert_eq!(behind.text(&thread()), None);
    }

    #[test]
    fn the_text_of_a_later_turn_stays() {
        let behind = Behind::default();
        behind.keep_text(&thread(), text(9, "later"));
        behind.keep_text(&thread(), text(5, "earlier"));
        let waits = behind.text(&thread());
        assert_eq!(newer(waits.clone(), Some(text(8, "written"))), Some(text(9, "later")));
        assert_eq!(newer(waits, Some(text(10, "written"))), Some(text(10, "written")));
    }
}

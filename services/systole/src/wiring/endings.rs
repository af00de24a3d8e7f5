//! Endings that somebody still has to be shown: a command notes its run before it begins and takes
//! the note back once the ending was printed, so that the same command after a crash finds the run
//! it means, finished or not.

use std::collections::BTreeMap;
use std::path::Path;

use bus_sqlite::SqliteBus;
use planner_core::Thread;
use ports::BusError;
use proto::hash::sha256_hex;
use proto::ids::{AgentName, InputKey, ThreadId, ThreadRef};
use serde::{Deserialize, Serialize};

use super::clock;

/// The most texts that are kept of one thread.
const MOST_TEXTS: usize = 16;

/// What a run was asked for, as the command line said it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Awaited {
    agent: AgentName,
    /// Oldest first.
    texts: Vec<Said>,
}

/// One text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Said {
    hash: String,
    /// The input that it was to become; none when it was found in the thread.
    key: Option<InputKey>,
}

impl Awaited {
    /// Whether a command with this agent, and with this text if it has one, means it. A text that
    /// never came into the thread counts for nothing.
    pub(crate) fn fits(&self, agent: &AgentName, text: Option<&str>, thread: &Thread) -> bool {
        let hash = text.map(|text| sha256_hex(text.as_bytes()));
        let came = |said: &&Said| said.key.as_ref().is_none_or(|key| thread.keys.contains(key));
        let mut came = self.texts.iter().filter(came);
        self.agent == *agent && came.any(|said| hash.as_ref().is_none_or(|hash| *hash == said.hash))
    }
}

/// All of them.
pub(crate) type AllAwaited = BTreeMap<ThreadId, Awaited>;

/// The notes of a store that this process owns.
#[derive(Clone)]
pub(crate) struct Endings {
    bus: SqliteBus,
}

impl Endings {
    pub(super) fn new(bus: SqliteBus) -> Self {
        Self { bus }
    }

    /// Somebody waits for the ending of the run that this text begins, or is part of.
    pub(crate) async fn expect(
        &self,
        place: &ThreadRef,
        agent: &AgentName,
        text: &str,
        key: Option<&InputKey>,
    ) -> Result<(), BusError> {
        let earlier = self.all().await?.remove(&place.thread);
        let mut texts = earlier.filter(|earlier| earlier.agent == *agent).map(|note| note.texts);
        let texts = texts.get_or_insert_default();
        let said = Said { hash: sha256_hex(text.as_bytes()), key: key.cloned() };
        if texts.iter().any(|known| known.hash == said.hash && said.key.is_none()) {
            return Ok(());
        }
        texts.push(said);
        texts.drain(..texts.len().saturating_sub(MOST_TEXTS));
        let note = Awaited { agent: agent.clone(), texts: std::mem::take(texts) };
        let bytes = serde_json::to_vec(&note).unwrap_or_default();
        self.bus.await_ending(place, bytes).await
    }

    /// It was printed.
    pub(crate) async fn shown(&self, place: &ThreadRef) -> Result<(), BusError> {
        self.bus.ending_shown(place).await
    }

    /// Those that nobody has been shown, of finished and of unfinished runs.
    pub(crate) async fn all(&self) -> Result<AllAwaited, BusError> {
        Ok(understood(self.bus.awaited_endings().await?))
    }
}

/// The same of a store that another process owns.
pub(crate) async fn awaited_in(store: &Path) -> Result<AllAwaited, BusError> {
    let reader = SqliteBus::open_read_only(store, clock())?;
    Ok(understood(reader.awaited_endings().await?))
}

/// Notes of a later build that cannot be read count as none.
fn understood(notes: Vec<(ThreadRef, Vec<u8>)>) -> AllAwaited {
    let read = |(place, note): (ThreadRef, Vec<u8>)| {
        Some((place.thread, serde_json::from_slice(&note).ok()?))
    };
    notes.into_iter().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use proto::ids::{Partition, TenantId};

    use super::*;

    #[test]
    fn a_note_means_the_agent_and_a_text_that_came_into_the_thread() {
        let place = ThreadRef {
            partition: Partition(0),
            tenant: TenantId::new("default").unwrap(),
            thread: ThreadId::from_parts(1, 1),
        };
        let (agent, other) = (AgentName::new("one").unwrap(), AgentName::new("two").unwrap());
        let key = InputKey::new("key").unwrap();
        let said = |text: &str, key: Option<&InputKey>| Said {
            hash: sha256_hex(text.as_bytes()),
            key: key.cloned(),
        };
        let mut note = Awaited { agent: agent.clone(), texts: vec![said("pay", Some(&key))] };
        let mut thread = Thread::new(place);
        assert!(!note.fits(&agent, Some("pay"), &thread), "its message never came");
        assert!(!note.fits(&agent, None, &thread));
        thread.keys.insert(key);
        assert!(note.fits(&agent, Some("pay"), &thread));
        assert!(note.fits(&agent, None, &thread));
        assert!(!note.fits(&agent, Some("call"), &thread));
        assert!(!note.fits(&other, Some("pay"), &thread));
        note.texts.push(said("call", None));
        assert!(note.fits(&agent, Some("call"), &thread));
    }
}

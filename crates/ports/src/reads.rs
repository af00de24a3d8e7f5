//! Reads that several calls share, and places that several calls take turns in; and the table of both
//! for whoever keeps them in memory.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use proto::ids::ToolName;
use proto::time::Timestamp;

/// Names equal reads of one tenant: two calls with one key may have one result.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadKey(pub String);

/// A result that other calls may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptRead {
    /// When the execution that brought it began: nothing in it is older.
    pub at: Timestamp,
    /// The result, opaque to the store.
    pub value: Bytes,
}

/// What becomes of a call that wants a shared read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined {
    /// It executes; others wait for it until its lease ends.
    Lead,
    /// Another call executes.
    Held {
        /// Which.
        by: String,
        /// How long its lease still lasts.
        left: Duration,
    },
    /// This result will do.
    Kept(KeptRead),
}

/// Results beyond this many are looked through for old ones.
const MANY: usize = 1024;
/// Bytes of all results; those that were kept first go first.
const MOST_BYTES: usize = 64 * 1024 * 1024;

#[derive(Debug)]
struct Kept {
    read: KeptRead,
    until: Timestamp,
}

#[derive(Debug)]
struct Lease {
    by: String,
    until: Timestamp,
}

/// Shared reads and places in memory.
#[derive(Debug, Default)]
pub struct ReadTable {
    kept: BTreeMap<ReadKey, Kept>,
    leases: BTreeMap<ReadKey, Lease>,
    places: BTreeMap<ToolName, Vec<Lease>>,
    bytes: usize,
}

fn left(until: Timestamp, now: Timestamp) -> Duration {
    until.since(now)
}

impl ReadTable {
    /// See [`crate::working_memory::WorkingMemory::join_read`].
    pub fn join(
        &mut self,
        key: &ReadKey,
        by: &str,
        lease: Duration,
        not_before: Timestamp,
        now: Timestamp,
    ) -> Joined {
        if let Some(kept) = self.kept(key, now).filter(|kept| kept.at >= not_before) {
            return Joined::Kept(kept);
        }
        match self.leases.get(key) {
            Some(other) if other.by != by && other.until > now => {
                Joined::Held { by: other.by.clone(), left: left(other.until, now) }
            }
            Some(_) | None => {
                if self.leases.len() >= MANY {
                    self.leases.retain(|_, lease| lease.until > now);
                }
                let lease = Lease { by: by.to_owned(), until: now.after(lease) };
                self.leases.insert(key.clone(), lease);
                Joined::Lead
            }
        }
    }

    /// See [`crate::working_memory::WorkingMemory::kept_read`].
    pub fn kept(&self, key: &ReadKey, now: Timestamp) -> Option<KeptRead> {
        self.kept.get(key).filter(|kept| kept.until > now).map(|kept| kept.read.clone())
    }

    /// See [`crate::working_memory::WorkingMemory::keep_read`].
    pub fn keep(
        &mut self,
        key: &ReadKey,
        by: &str,
        read: KeptRead,
        keep: Duration,
        now: Timestamp,
    ) {
        self.leave(key, by);
        if self.kept(key, now).is_some_and(|kept| kept.at > read.at) {
            return;
        }
        self.make_room(read.value.len(), now);
        self.forget(key);
        self.bytes = self.bytes.saturating_add(read.value.len());
        self.kept.insert(key.clone(), Kept { read, until: now.after(keep) });
    }

    /// See [`crate::working_memory::WorkingMemory::leave_read`].
    pub fn leave(&mut self, key: &ReadKey, by: &str) {
        if self.leases.get(key).is_some_and(|lease| lease.by == by) {
            self.leases.remove(key);
        }
    }

    /// See [`crate::working_memory::WorkingMemory::take_place`].
    pub fn take_place(
        &mut self,
        tool: &ToolName,
        who: &str,
        most: u32,
        lease: Duration,
        now: Timestamp,
    ) -> Option<Duration> {
        let places = self.places.entry(tool.clone()).or_default();
        places.retain(|place| place.until > now && place.by != who);
        if places.len() >= usize::try_from(most).unwrap_or(usize::MAX) {
            let first = places.iter().map(|place| place.until).min();
            return first.map(|until| left(until, now));
        }
        places.push(Lease { by: who.to_owned(), until: now.after(lease) });
        None
    }

    /// See [`crate::working_memory::WorkingMemory::leave_place`].
    pub fn leave_place(&mut self, tool: &ToolName, who: &str) {
        if let Some(places) = self.places.get_mut(tool) {
            places.retain(|place| place.by != who);
        }
    }

    /// How much is kept.
    pub fn len(&self) -> usize {
        self.kept.len().saturating_add(self.leases.len()).saturating_add(self.places.len())
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn forget(&mut self, key: &ReadKey) {
        if let Some(old) = self.kept.remove(key) {
            self.bytes = self.bytes.saturating_sub(old.read.value.len());
        }
    }

    fn make_room(&mut self, more: usize, now: Timestamp) {
        let is_full = |table: &Self| {
            table.kept.len() >= MANY || table.bytes.saturating_add(more) > MOST_BYTES
        };
        if !is_full(self) {
            return;
        }
        let mut keys: Vec<(Timestamp, ReadKey)> =
            self.kept.iter().map(|(key, kept)| (kept.read.at, key.clone())).collect();
        keys.sort();
        for (_, key) in &keys {
            let is_over = self.kept.get(key).is_some_and(|kept| kept.until <= now);
            if is_over || is_full(self) {
                self.forget(key);
            }
        }
    }
}

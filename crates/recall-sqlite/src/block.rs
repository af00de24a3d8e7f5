//! What is in memory of one tenant.

use std::collections::BTreeMap;
use std::sync::Arc;

use memory_core::fragment::FragmentId;
use memory_core::lexical::Words;
use memory_core::ranking::Known;
use ports::recall::{Edition, Kept, Query};
use proto::ids::{TenantId, ThreadId};
use rusqlite::Connection;

use crate::rows::{KEPT, Line, kept};
use crate::vectors::{Packed, VectorBlock};
use crate::words::WordIndex;

/// About what a slot takes beside its words and its vector.
const SLOT: usize = 240;

/// A fragment, as far as searching has to know it.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) row: i64,
    pub(crate) id: FragmentId,
    pub(crate) known: Known,
    edition: Option<Arc<Edition>>,
}

impl Slot {
    /// Whether it may be an answer.
    pub(crate) fn is_admitted(&self, query: &Query) -> bool {
        let Known { kind, at, invalid_from, .. } = &self.known;
        invalid_from.is_none_or(|until| query.about() < until)
            && query.filter.admits_one(self.id.thread, *kind, *at, self.edition.as_deref())
    }
}

/// One tenant's fragments, ready to be searched.
#[derive(Debug, Default)]
pub(crate) struct Block {
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    by_place: BTreeMap<(ThreadId, u64, u32), u32>,
    editions: BTreeMap<Edition, Arc<Edition>>,
    pub(crate) words: WordIndex,
    pub(crate) vectors: VectorBlock,
    /// When it was asked for last.
    pub(crate) touched: u64,
    /// Whether older fragments found no room.
    pub(crate) partial: bool,
}

impl Block {
    /// Loads a tenant's fragments, newest first, as far as they fit.
    pub(crate) fn load(conn: &Connection, tenant: i64, room: usize) -> rusqlite::Result<Self> {
        let mut block = Self::default();
        let sql =
            format!("SELECT {KEPT} FROM fragments WHERE tenant = ?1 ORDER BY at DESC, id DESC");
        let mut statement = conn.prepare_cached(&sql)?;
        let mut rows = statement.query([tenant])?;
        while let Some(row) = rows.next()? {
            if block.bytes() > room {
                block.partial = true;
                break;
            }
            let Line { row, kept, vector } = kept(row)?;
            block.put(row, &kept, vector.as_ref());
        }
        Ok(block)
    }

    /// Takes a fragment in, in the place of an earlier one.
    pub(crate) fn put(&mut self, row: i64, kept: &Kept, vector: Option<&Packed>) {
        let fragment = &kept.fragment;
        let place = (fragment.id.thread, fragment.id.turn, fragment.id.fragment);
        // What its words were is known from the file only; whoever replaces says so with `remove`.
        let slot = self.free.pop().or_else(|| u32::try_from(self.slots.len()).ok());
        let Some(slot) = slot else { return };
        let edition = kept.edition().map(|edition| self.shared(edition));
        let known = Known {
            importance: fragment.importance,
            kind: fragment.kind,
            at: fragment.at,
            invalid_from: kept.invalid_from,
            superseded_by: kept.superseded_by.clone(),
        };
        let entry = Slot { row, id: fragment.id.clone(), known, edition };
        self.set(slot, Some(entry));
        self.by_place.insert(place, slot);
        self.words.add(slot, &words_of(kept));
        self.vectors.set(slot, vector);
    }

    /// Takes a fragment out, as it was when it was put in.
    pub(crate) fn remove(&mut self, kept: &Kept) {
        let id = &kept.fragment.id;
        let Some(slot) = self.by_place.remove(&(id.thread, id.turn, id.fragment)) else { return };
        self.words.remove(slot, &words_of(kept));
        self.vectors.set(slot, None);
        self.set(slot, None);
        self.free.push(slot);
    }

    fn set(&mut self, slot: u32, entry: Option<Slot>) {
        let Ok(at) = usize::try_from(slot) else { return };
        if at >= self.slots.len() {
            self.slots.resize_with(at.saturating_add(1), || None);
        }
        if let Some(place) = self.slots.get_mut(at) {
            *place = entry;
        }
    }

    fn shared(&mut self, edition: Edition) -> Arc<Edition> {
        let shared = self.editions.entry(edition).or_insert_with_key(|own| Arc::new(own.clone()));
        Arc::clone(shared)
    }

    pub(crate) fn slot(&self, at: usize) -> Option<&Slot> {
        self.slots.get(at)?.as_ref()
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The fragments of one turn.
    pub(crate) fn turn(&self, thread: ThreadId, turn: u64) -> impl Iterator<Item = &Slot> {
        let parts = self.by_place.range((thread, turn, 0)..=(thread, turn, u32::MAX));
        parts.filter_map(|(_, slot)| self.slot(usize::try_from(*slot).ok()?))
    }

    /// About how many bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        let slots = self.slots.len().saturating_mul(SLOT);
        slots.saturating_add(self.words.bytes()).saturating_add(self.vectors.bytes())
    }
}

/// What is searched by words: who said it, and what its facts are about, belong to it.
pub(crate) fn words_of(kept: &Kept) -> Words {
    Words::of(&kept.searched())
}

/// The blocks of all tenants, within one bound.
#[derive(Debug)]
pub(crate) struct Blocks {
    blocks: BTreeMap<TenantId, Block>,
    room: usize,
    clock: u64,
}

impl Blocks {
    pub(crate) fn new(room: usize) -> Self {
        Self { blocks: BTreeMap::new(), room, clock: 0 }
    }

    /// A tenant's block, if it is in memory.
    pub(crate) fn known(&mut self, tenant: &TenantId) -> Option<&mut Block> {
        self.blocks.get_mut(tenant)
    }

    /// A tenant's block, loaded if need be.
    pub(crate) fn of(
        &mut self,
        conn: &Connection,
        tenant: &TenantId,
        row: i64,
    ) -> rusqlite::Result<&Block> {
        if !self.blocks.contains_key(tenant) {
            // A quarter stays free for what comes next.
            let block = Block::load(conn, row, self.room / 4 * 3)?;
            if block.partial {
                let words =
                    "memory of a tenant is larger than its room: the newest part is searched";
                tracing::warn!(%tenant, fragments = block.slots(), "{words}");
            }
            self.blocks.insert(tenant.clone(), block);
        }
        self.clock = self.clock.saturating_add(1);
        let clock = self.clock;
        let block = self.blocks.entry(tenant.clone()).or_default();
        block.touched = clock;
        self.make_room(tenant);
        Ok(self.blocks.entry(tenant.clone()).or_default())
    }

    pub(crate) fn forget(&mut self, tenant: &TenantId) {
        self.blocks.remove(tenant);
    }

    pub(crate) fn forget_all(&mut self) {
        self.blocks.clear();
    }

    /// Lets go of a block that has outgrown the room; the next question loads what fits.
    pub(crate) fn trim(&mut self, tenant: &TenantId) {
        if self.blocks.get(tenant).is_some_and(|block| block.bytes() > self.room) {
            self.forget(tenant);
        }
    }

    /// Drops the blocks that were not asked for longest, never the one at hand.
    fn make_room(&mut self, but: &TenantId) {
        while self.blocks.values().map(Block::bytes).sum::<usize>() > self.room {
            let others = self.blocks.iter().filter(|(tenant, _)| *tenant != but);
            let oldest = others.min_by_key(|(_, block)| block.touched);
            let Some(oldest) = oldest.map(|(tenant, _)| tenant.clone()) else { return };
            self.forget(&oldest);
        }
    }
}

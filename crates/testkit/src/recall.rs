//! A long-term memory in memory: everything is looked at for every question.
#![expect(clippy::disallowed_types, reason = "a fake has one lock")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use memory_core::fragment::FragmentId;
use memory_core::lexical::{Words, rarity};
use memory_core::ranking::{Known, Reading, diverse, rank};
use ports::BusError;
use ports::recall::{
    Access, Edition, Filter, Hit, Kept, MOST_HITS, Put, Query, Recall, Scope, Size, Space,
    Tombstone,
};
use proto::ids::TenantId;
use proto::time::Timestamp;

/// How long each list is.
const LIST: usize = 200;

/// Long-term memory without a store. It can be told to be down.
#[derive(Debug, Default)]
pub struct RecallMemory {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    tenants: BTreeMap<TenantId, Own>,
    cursors: BTreeMap<String, String>,
    space: Option<Space>,
    is_down: bool,
}

/// What is one tenant's.
#[derive(Debug, Default)]
struct Own {
    fragments: BTreeMap<FragmentId, Kept>,
    tombstones: BTreeMap<Scope, Timestamp>,
}

impl RecallMemory {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether every call fails from now on.
    pub fn set_down(&self, is_down: bool) {
        self.lock().is_down = is_down;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn up(&self) -> Result<MutexGuard<'_, State>, BusError> {
        let state = self.lock();
        if state.is_down {
            return Err(BusError::Unavailable("the fake memory is down".to_owned()));
        }
        Ok(state)
    }

    fn look<T: Default>(
        &self,
        access: &Access,
        look: impl FnOnce(&Own) -> T,
    ) -> Result<T, BusError> {
        let state = self.up()?;
        Ok(state.tenants.get(access.tenant()).map(look).unwrap_or_default())
    }
}

impl Own {
    fn put(&mut self, mut kept: Kept, put: &mut Put) {
        let mut stones = self.tombstones.iter();
        let stops = |(scope, at): (&Scope, &Timestamp)| {
            Tombstone { scope: scope.clone(), at: *at }.stops(&kept)
        };
        if stones.any(stops) {
            put.forgotten += 1;
            return;
        }
        if let Some(before) = self.fragments.get(&kept.fragment.id) {
            kept.stay_superseded(before);
        }
        self.fragments.insert(kept.fragment.id.clone(), kept);
        put.kept += 1;
    }

    fn query(&self, query: &Query) -> Vec<Hit> {
        let lists = [self.by_words(query), self.by_vector(query)];
        let found: BTreeSet<&FragmentId> = lists.iter().flatten().collect();
        let is_near = |id: &FragmentId| {
            found.iter().any(|hit| hit.thread == id.thread && hit.turn.abs_diff(id.turn) <= 1)
        };
        let admitted = self.fragments.values().filter(|kept| query.admits(kept));
        let near = admitted.filter(|kept| is_near(&kept.fragment.id));
        let known = near.map(|kept| (kept.fragment.id.clone(), known_of(kept))).collect();
        let mut ranked = rank(&lists, &known, &query.weights, Reading::AsOf(query.about()));
        ranked.truncate(MOST_HITS);
        let words = |id: &FragmentId| self.fragments.get(id).map(words_of).unwrap_or_default();
        let likeness = |a: &FragmentId, b: &FragmentId| words(a).likeness(&words(b));
        let chosen = diverse(ranked, query.k.min(MOST_HITS), &query.weights, likeness);
        let hit = |ranked: memory_core::ranking::Ranked| {
            let kept = Kept { vector: None, ..self.fragments.get(&ranked.id)?.clone() };
            Some(Hit { kept, ranked })
        };
        chosen.into_iter().filter_map(hit).collect()
    }

    /// BM25 by the book: every text is counted anew.
    fn by_words(&self, query: &Query) -> Vec<FragmentId> {
        let texts: Vec<(&Kept, BTreeMap<u32, f32>)> = self
            .fragments
            .values()
            .map(|kept| (kept, words_of(kept).weights().collect()))
            .collect();
        let all = u32::try_from(texts.len()).unwrap_or(u32::MAX);
        let mut scored = Vec::new();
        let question: Vec<(u32, f32)> = Words::of(&query.text)
            .distinct()
            .map(|word| {
                let having = texts.iter().filter(|(_, words)| words.contains_key(&word)).count();
                (word, rarity(all, u32::try_from(having).unwrap_or(u32::MAX)))
            })
            .collect();
        for (kept, words) in &texts {
            let parts = question.iter().filter_map(|(word, rare)| Some(words.get(word)? * rare));
            scored.push((parts.sum(), *kept));
        }
        best(scored, query)
    }

    fn by_vector(&self, query: &Query) -> Vec<FragmentId> {
        let Some(question) = &query.vector else { return Vec::new() };
        let scored = self
            .fragments
            .values()
            .filter_map(|kept| Some((cosine(kept.vector.as_ref()?, question), kept)));
        best(scored.collect(), query)
    }

    fn list(&self, filter: &Filter, after: Option<&FragmentId>, limit: usize) -> Vec<Kept> {
        let after = |kept: &&Kept| after.is_none_or(|after| kept.fragment.id > *after);
        let fits = |kept: &&Kept| filter.admits(kept);
        self.fragments.values().filter(after).filter(fits).take(limit).cloned().collect()
    }
}

fn words_of(kept: &Kept) -> Words {
    Words::of(&kept.searched())
}

fn known_of(kept: &Kept) -> Known {
    Known {
        importance: kept.fragment.importance,
        kind: kept.fragment.kind,
        at: kept.fragment.at,
        invalid_from: kept.invalid_from,
        superseded_by: kept.superseded_by.clone(),
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f32 {
    let length = |v: &[f32]| v.iter().map(|x| x * x).sum::<f32>().sqrt();
    let product: f32 = a.iter().zip(b).map(|(x, y)| x * y).sum();
    product / (length(a) * length(b))
}

fn best(mut scored: Vec<(f32, &Kept)>, query: &Query) -> Vec<FragmentId> {
    scored.retain(|(score, kept)| *score > 0.0 && query.admits(kept));
    scored.sort_by(|a, b| {
        let newer = b.1.fragment.at.cmp(&a.1.fragment.at);
        b.0.total_cmp(&a.0).then(newer).then_with(|| a.1.fragment.id.cmp(&b.1.fragment.id))
    });
    scored.into_iter().take(LIST).map(|(_, kept)| kept.fragment.id.clone()).collect()
}

fn check(access: &Access, space: Option<&Space>, fragments: &[Kept]) -> Result<(), BusError> {
    access.admits(fragments)?;
    let dimension = space.map(|space| space.dimension);
    let is_strange = |vector: &[f32]| Some(vector.len()) != dimension;
    if fragments.iter().filter_map(|kept| kept.vector.as_deref()).any(is_strange) {
        return Err(BusError::Refused("a vector of another space".to_owned()));
    }
    Ok(())
}

#[async_trait]
impl Recall for RecallMemory {
    async fn put(&self, access: &Access, fragments: Vec<Kept>) -> Result<Put, BusError> {
        let mut state = self.up()?;
        check(access, state.space.as_ref(), &fragments)?;
        let own = state.tenants.entry(access.tenant().clone()).or_default();
        let mut put = Put::default();
        for kept in fragments {
            own.put(kept, &mut put);
        }
        Ok(put)
    }

    async fn query(&self, access: &Access, query: &Query) -> Result<Vec<Hit>, BusError> {
        self.look(access, |own| own.query(query))
    }

    async fn get(&self, access: &Access, ids: &[FragmentId]) -> Result<Vec<Kept>, BusError> {
        self.look(access, |own| {
            ids.iter().filter_map(|id| own.fragments.get(id).cloned()).collect()
        })
    }

    async fn list(
        &self,
        access: &Access,
        filter: &Filter,
        after: Option<&FragmentId>,
        limit: usize,
    ) -> Result<Vec<Kept>, BusError> {
        self.look(access, |own| own.list(filter, after, limit))
    }

    async fn neighbours(
        &self,
        access: &Access,
        id: &FragmentId,
        reach: u32,
    ) -> Result<Vec<Kept>, BusError> {
        self.look(access, |own| {
            let is_near = |other: &FragmentId| {
                other != id
                    && other.thread == id.thread
                    && other.turn.abs_diff(id.turn) <= u64::from(reach)
            };
            own.fragments.values().filter(|kept| is_near(&kept.fragment.id)).cloned().collect()
        })
    }

    async fn supersede(
        &self,
        access: &Access,
        ids: &[FragmentId],
        by: &FragmentId,
        at: Timestamp,
    ) -> Result<(), BusError> {
        let mut state = self.up()?;
        let Some(own) = state.tenants.get_mut(access.tenant()) else { return Ok(()) };
        for id in ids {
            if let Some(kept) = own.fragments.get_mut(id) {
                kept.invalid_from = Some(at);
                kept.superseded_by = Some(by.clone());
            }
        }
        Ok(())
    }

    async fn forget(&self, access: &Access, scope: &Scope, at: Timestamp) -> Result<u64, BusError> {
        let mut state = self.up()?;
        let own = state.tenants.entry(access.tenant().clone()).or_default();
        let stone = own.tombstones.entry(scope.clone()).or_insert(at);
        *stone = at.max(*stone);
        let before = own.fragments.len();
        own.fragments.retain(|_, kept| !scope.covers(kept));
        Ok(u64::try_from(before - own.fragments.len()).unwrap_or(u64::MAX))
    }

    async fn tombstones(&self, access: &Access) -> Result<Vec<Tombstone>, BusError> {
        self.look(access, |own| {
            let stones = own.tombstones.iter();
            stones.map(|(scope, at)| Tombstone { scope: scope.clone(), at: *at }).collect()
        })
    }

    async fn editions(&self, access: &Access) -> Result<Vec<Edition>, BusError> {
        self.look(access, |own| {
            let editions: BTreeSet<Edition> =
                own.fragments.values().filter_map(Kept::edition).collect();
            editions.into_iter().collect()
        })
    }

    async fn size(&self, access: &Access) -> Result<Size, BusError> {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.look(access, |own| {
            let vectors = own.fragments.values().filter(|kept| kept.vector.is_some()).count();
            Size { fragments: count(own.fragments.len()), vectors: count(vectors) }
        })
    }

    async fn cursor(&self, reader: &str) -> Result<Option<String>, BusError> {
        Ok(self.up()?.cursors.get(reader).cloned())
    }

    async fn keep_cursor(&self, reader: &str, place: &str) -> Result<(), BusError> {
        self.up()?.cursors.insert(reader.to_owned(), place.to_owned());
        Ok(())
    }

    async fn space(&self) -> Result<Option<Space>, BusError> {
        Ok(self.up()?.space.clone())
    }

    async fn settle(&self, space: Option<Space>) -> Result<(), BusError> {
        let mut state = self.up()?;
        if state.space != space {
            let all = state.tenants.values_mut().flat_map(|own| own.fragments.values_mut());
            all.for_each(|kept| kept.vector = None);
            state.space = space;
        }
        Ok(())
    }
}

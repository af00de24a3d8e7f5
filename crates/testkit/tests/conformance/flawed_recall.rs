//! A long-term memory that breaks one rule.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use memory_core::fragment::FragmentId;
use memory_core::ranking::Weights;
use ports::BusError;
use ports::recall::{
    Access, Edition, Filter, Hit, Kept, Put, Query, Recall, Scope, Size, Space, Tombstone,
};
use proto::ids::TenantId;
use proto::time::Timestamp;
use testkit::conformance::{RecallHarness, RecallWorld};
use testkit::recall::RecallMemory;
use tokio::sync::Mutex;

pub(crate) struct Harness(pub(crate) &'static str);

pub(crate) struct World {
    flaw: &'static str,
    memory: Mutex<Arc<RecallMemory>>,
    peers: Mutex<u32>,
}

pub(crate) fn world(flaw: &'static str) -> World {
    World { flaw, memory: Mutex::new(Arc::new(RecallMemory::new())), peers: Mutex::new(0) }
}

#[async_trait]
impl RecallHarness for Harness {
    async fn fresh(&self) -> Box<dyn RecallWorld> {
        Box::new(world(self.0))
    }
}

#[async_trait]
impl RecallWorld for World {
    async fn peer(&self) -> Arc<dyn Recall> {
        let mut peers = self.peers.lock().await;
        *peers += 1;
        let inner = Arc::clone(&*self.memory.lock().await);
        Arc::new(Flawed { flaw: self.flaw, inner, second: *peers > 1, puts: Mutex::new(0) })
    }

    async fn reopen(&self) -> bool {
        if self.flaw == "memory_survives_a_reopen" {
            *self.memory.lock().await = Arc::new(RecallMemory::new());
        }
        true
    }
}

struct Flawed {
    flaw: &'static str,
    inner: Arc<RecallMemory>,
    second: bool,
    puts: Mutex<u64>,
}

fn other_tenant(access: &Access) -> Access {
    let other = if access.tenant().as_str() == "acme" { "globex" } else { "acme" };
    Access::of_caller(TenantId::new(other).unwrap())
}

impl Flawed {
    fn is(&self, flaw: &str) -> bool {
        self.flaw == flaw
    }

    /// What was put, spoiled.
    async fn spoiled(&self, access: &Access, mut kept: Kept) -> Kept {
        match self.flaw {
            "a_fragment_comes_back_as_it_was_put" => kept.fragment.facts.clear(),
            "putting_again_replaces" => {
                let mut puts = self.puts.lock().await;
                *puts += 1;
                kept.fragment.id.turn = *puts;
            }
            "words_find_what_has_them_and_nothing_else" => kept.fragment.text.push_str(" giraffe"),
            "importance_lifts_among_equals" => kept.fragment.importance = 0.0,
            "what_was_superseded_is_hidden_and_found_as_of_before" => kept.invalid_from = None,
            "a_fragment_of_another_tenant_is_refused" => {
                kept.fragment.id.tenant = access.tenant().clone();
            }
            "what_is_too_large_is_refused" => kept.fragment.text.truncate(100),
            _ => {}
        }
        kept
    }

    /// A question, spoiled.
    fn bent(&self, mut query: Query) -> Query {
        match self.flaw {
            "a_rare_word_counts_more_than_a_usual_one" => {
                query.text = query.text.replace("zebra", "");
            }
            "a_vector_finds_the_nearest" => {
                query.vector = query.vector.map(|v| v.iter().map(|x| -x).collect());
            }
            "what_both_lists_have_comes_before_what_one_has" => query.weights.rrf_k = 60.0,
            "a_turn_lifts_the_turns_beside_it" => query.weights.neighbour = 0.0,
            "something_else_comes_before_more_of_the_same" => query.weights.mmr = None,
            "age_counts_where_it_is_asked_for" => query.weights.half_life = None,
            "no_more_come_than_were_asked_for" => query.k += 1,
            "only_what_fits_the_filter_is_found" => query.filter.kinds = BTreeSet::new(),
            "passages_are_found_in_the_editions_that_are_named" => query.filter.all_editions = true,
            "importance_lifts_among_equals" => {
                query.weights = Weights { prior: 0.0, ..query.weights }
            }
            _ => {}
        }
        query
    }
}

#[async_trait]
impl Recall for Flawed {
    async fn put(&self, access: &Access, fragments: Vec<Kept>) -> Result<Put, BusError> {
        if self.is("what_is_too_large_is_refused") && fragments.len() > 100 {
            return Ok(Put { kept: fragments.len(), forgotten: 0 });
        }
        let mut all = Vec::new();
        for kept in fragments {
            all.push(self.spoiled(access, kept).await);
        }
        match self.flaw {
            "vectors_of_another_space_are_refused" => {
                for kept in &mut all {
                    kept.vector = None;
                }
            }
            "what_is_put_again_stays_superseded" => {
                let ids: Vec<FragmentId> =
                    all.iter().map(|kept| kept.fragment.id.clone()).collect();
                for id in ids {
                    self.inner
                        .supersede(access, std::slice::from_ref(&id), &id, Timestamp(i64::MAX))
                        .await?;
                }
            }
            "a_late_writer_does_not_bring_back_what_was_forgotten" => {
                let late = all
                    .iter_mut()
                    .filter(|kept| kept.fragment.id.thread.to_string().ends_with('1'));
                late.for_each(|kept| kept.fragment.at = Timestamp(i64::MAX));
            }
            "what_happens_after_forgetting_is_kept" => {
                for kept in &mut all {
                    kept.fragment.at = Timestamp(2);
                }
            }
            _ => {}
        }
        self.inner.put(access, all).await
    }

    async fn query(&self, access: &Access, query: &Query) -> Result<Vec<Hit>, BusError> {
        let query = self.bent(query.clone());
        let mut hits = self.inner.query(access, &query).await?;
        match self.flaw {
            "what_was_put_is_seen_by_every_process" if self.second => hits.clear(),
            "no_call_reaches_another_tenant" => {
                hits.extend(self.inner.query(&other_tenant(access), &query).await?);
            }
            "words_of_other_tenants_count_for_nothing" => {
                let others = self.inner.size(&other_tenant(access)).await?;
                if others.fragments > 0 {
                    hits.reverse();
                }
            }
            "what_was_superseded_is_hidden_and_found_as_of_before" => {
                let filter = Filter { as_of: None, ..query.filter.clone() };
                return self.inner.query(access, &Query { filter, ..query }).await;
            }
            _ => {}
        }
        Ok(hits)
    }

    async fn get(&self, access: &Access, ids: &[FragmentId]) -> Result<Vec<Kept>, BusError> {
        self.inner.get(access, ids).await
    }

    async fn list(
        &self,
        access: &Access,
        filter: &Filter,
        after: Option<&FragmentId>,
        limit: usize,
    ) -> Result<Vec<Kept>, BusError> {
        let after = after.filter(|_| !self.is("a_listing_is_in_order_and_goes_on"));
        self.inner.list(access, filter, after, limit).await
    }

    async fn neighbours(
        &self,
        access: &Access,
        id: &FragmentId,
        reach: u32,
    ) -> Result<Vec<Kept>, BusError> {
        let reach = if self.is("neighbours_are_the_turns_around") { reach + 1 } else { reach };
        self.inner.neighbours(access, id, reach).await
    }

    async fn supersede(
        &self,
        access: &Access,
        ids: &[FragmentId],
        by: &FragmentId,
        at: Timestamp,
    ) -> Result<(), BusError> {
        self.inner.supersede(access, ids, by, at).await
    }

    async fn forget(&self, access: &Access, scope: &Scope, at: Timestamp) -> Result<u64, BusError> {
        let wider = match (self.flaw, scope) {
            ("forgetting_a_thread_removes_it_alone", Scope::Thread { .. }) => Scope::Tenant,
            ("forgetting_a_subject_removes_what_is_about_it", Scope::Subject { .. }) => {
                Scope::subject("somebody else")
            }
            ("forgetting_a_fragment_or_all_of_a_tenant", Scope::Fragment { id }) => {
                Scope::Thread { thread: id.thread }
            }
            ("a_withdrawn_edition_is_served_no_more", Scope::Edition { .. }) => {
                Scope::subject("nobody")
            }
            _ => scope.clone(),
        };
        self.inner.forget(access, &wider, at).await
    }

    async fn tombstones(&self, access: &Access) -> Result<Vec<Tombstone>, BusError> {
        self.inner.tombstones(access).await
    }

    async fn editions(&self, access: &Access) -> Result<Vec<Edition>, BusError> {
        self.inner.editions(access).await
    }

    async fn size(&self, access: &Access) -> Result<Size, BusError> {
        self.inner.size(access).await
    }

    async fn cursor(&self, reader: &str) -> Result<Option<String>, BusError> {
        let one = self.is("a_cursor_is_kept_by_its_reader");
        self.inner.cursor(if one { "all" } else { reader }).await
    }

    async fn keep_cursor(&self, reader: &str, place: &str) -> Result<(), BusError> {
        let one = self.is("a_cursor_is_kept_by_its_reader");
        self.inner.keep_cursor(if one { "all" } else { reader }, place).await
    }

    async fn space(&self) -> Result<Option<Space>, BusError> {
        self.inner.space().await
    }

    async fn settle(&self, space: Option<Space>) -> Result<(), BusError> {
        if self.is("another_space_takes_the_vectors_away_and_leaves_the_words") {
            let access = Access::of_caller(TenantId::new("acme").unwrap());
            self.inner.forget(&access, &Scope::Tenant, Timestamp(0)).await?;
        }
        self.inner.settle(space).await
    }
}

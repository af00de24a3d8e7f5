//! A working memory that breaks one rule.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::reads::{Joined, KeptRead, ReadKey};
use ports::working_memory::{Claim, Entered, Entry, Sample, Snapshot, TurnText, WorkingMemory};
use proto::ids::{InstanceId, ThreadRef, ToolCallId, ToolName};
use proto::time::Timestamp;
use testkit::memory::working::MemoryWorkingMemory;
use tokio::sync::Mutex;

#[derive(Default)]
struct Notes {
    holders: BTreeMap<(ThreadRef, ToolCallId), InstanceId>,
    snapshots: BTreeMap<ThreadRef, Snapshot>,
    texts: BTreeMap<ThreadRef, TurnText>,
    active: BTreeSet<ThreadRef>,
}

/// A working memory with one flaw; the flaw has the name of the rule that it breaks.
pub(crate) struct FlawedMemory {
    flaw: &'static str,
    inner: MemoryWorkingMemory,
    notes: Mutex<Notes>,
}

impl FlawedMemory {
    pub(crate) fn new(flaw: &'static str, inner: MemoryWorkingMemory) -> Self {
        Self { flaw, inner, notes: Mutex::default() }
    }

    fn is(&self, rule: &str) -> bool {
        self.flaw == rule
    }

    /// A span that is far too long if the flaw says so.
    fn stretched(&self, rule: &str, span: Duration) -> Duration {
        if self.is(rule) { span * 1_000 } else { span }
    }

    /// The same call for all calls if the flaw says so.
    fn blurred(&self, rule: &str, call: &ToolCallId) -> ToolCallId {
        if self.is(rule) { ToolCallId::new("onlyone00").unwrap() } else { call.clone() }
    }

    fn key(&self, key: &ReadKey) -> ReadKey {
        let blurred = self.is("shared_reads_are_told_apart_by_key");
        if blurred { ReadKey("only".to_owned()) } else { key.clone() }
    }

    fn tool(&self, tool: &ToolName) -> ToolName {
        let blurred = self.is("samples_are_told_apart_by_tool");
        if blurred { ToolName::new("only").unwrap() } else { tool.clone() }
    }
}

#[async_trait]
impl WorkingMemory for FlawedMemory {
    async fn claim(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<Claim, BusError> {
        let key = (thread.clone(), call.clone());
        let known = self.notes.lock().await.holders.get(&key) == Some(holder);
        if known && self.is("a_holder_renews_its_claim") {
            return Ok(Claim::Held { by: holder.clone(), left: lease });
        }
        let call = self.blurred("claims_are_told_apart_by_thread_and_call", call);
        let lease = self.stretched("a_claim_ends_with_its_lease", lease);
        let claim = self.inner.claim(thread, &call, holder, lease).await?;
        if claim == Claim::Won {
            self.notes.lock().await.holders.insert(key, holder.clone());
        }
        Ok(match (self.flaw, claim) {
            ("a_claim_is_won_by_one", _) => Claim::Won,
            (
                "a_refused_claim_names_its_holder_and_the_rest_of_the_lease",
                Claim::Held { by, .. },
            ) => Claim::Held { by, left: Duration::ZERO },
            (_, claim) => claim,
        })
    }

    async fn release(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        holder: &InstanceId,
    ) -> Result<(), BusError> {
        if self.is("a_released_claim_is_free") {
            return Ok(());
        }
        let mut holder = holder.clone();
        if self.is("only_its_holder_releases_a_claim") {
            let key = (thread.clone(), call.clone());
            holder = self.notes.lock().await.holders.get(&key).cloned().unwrap_or(holder);
        }
        self.inner.release(thread, call, &holder).await
    }

    async fn keep_done(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        observation: Bytes,
        keep: Duration,
    ) -> Result<Bytes, BusError> {
        let call = self.blurred("outcomes_are_told_apart_by_thread_and_call", call);
        let keep = self.stretched("an_outcome_is_kept_for_its_time_only", keep);
        let kept = self.inner.keep_done(thread, &call, observation.clone(), keep).await?;
        Ok(if self.is("the_first_outcome_stays") { observation } else { kept })
    }

    async fn done(&self, thread: &ThreadRef, call: &ToolCallId) -> Result<Option<Bytes>, BusError> {
        if self.is("an_outcome_is_seen_by_every_process") {
            return Ok(None);
        }
        let call = self.blurred("outcomes_are_told_apart_by_thread_and_call", call);
        self.inner.done(thread, &call).await
    }

    async fn mark_cancelled(
        &self,
        thread: &ThreadRef,
        call: &ToolCallId,
        keep: Duration,
    ) -> Result<(), BusError> {
        if self.is("a_cancel_mark_is_seen") {
            return Ok(());
        }
        let keep = self.stretched("a_cancel_mark_fades", keep);
        self.inner.mark_cancelled(thread, call, keep).await
    }

    async fn is_cancelled(&self, thread: &ThreadRef, call: &ToolCallId) -> Result<bool, BusError> {
        self.inner.is_cancelled(thread, call).await
    }

    async fn keep_snapshot(&self, thread: &ThreadRef, snapshot: Snapshot) -> Result<(), BusError> {
        self.notes.lock().await.snapshots.insert(thread.clone(), snapshot.clone());
        self.inner.keep_snapshot(thread, snapshot).await
    }

    async fn snapshot(&self, thread: &ThreadRef) -> Result<Option<Snapshot>, BusError> {
        match self.flaw {
            "a_snapshot_comes_back" => Ok(None),
            "a_newer_snapshot_stays" => Ok(self.notes.lock().await.snapshots.get(thread).cloned()),
            _ => self.inner.snapshot(thread).await,
        }
    }

    async fn keep_turn_text(&self, thread: &ThreadRef, text: TurnText) -> Result<(), BusError> {
        let earlier = self.notes.lock().await.texts.insert(thread.clone(), text.clone());
        if earlier.is_some() && self.is("text_of_a_turn_comes_back_and_is_replaced") {
            return Ok(());
        }
        self.inner.keep_turn_text(thread, text).await
    }

    async fn turn_text(&self, thread: &ThreadRef) -> Result<Option<TurnText>, BusError> {
        if self.is("text_of_a_later_turn_stays") {
            return Ok(self.notes.lock().await.texts.get(thread).cloned());
        }
        self.inner.turn_text(thread).await
    }

    async fn add_samples(
        &self,
        tool: &ToolName,
        samples: &[Sample],
        window: Duration,
    ) -> Result<(), BusError> {
        let window = self.stretched("old_samples_are_dropped", window);
        self.inner.add_samples(&self.tool(tool), samples, window).await
    }

    async fn samples(&self, tool: &ToolName) -> Result<Vec<Sample>, BusError> {
        let mut samples = self.inner.samples(&self.tool(tool)).await?;
        if self.is("samples_come_oldest_first") {
            samples.reverse();
        }
        Ok(samples)
    }

    async fn take_probe(
        &self,
        tool: &ToolName,
        holder: &InstanceId,
        lease: Duration,
    ) -> Result<bool, BusError> {
        let lease = self.stretched("a_probe_is_free_after_its_lease", lease);
        let taken = self.inner.take_probe(tool, holder, lease).await?;
        Ok(taken || self.is("a_probe_is_taken_by_one"))
    }

    async fn enter(&self, entry: Entry<'_>) -> Result<Entered, BusError> {
        let mut entered = self.inner.enter(entry).await?;
        if self.is("an_entry_tells_result_mark_and_claim") {
            entered.cancelled = false;
        }
        Ok(entered)
    }

    async fn join_read(
        &self,
        key: &ReadKey,
        by: &str,
        lease: Duration,
        not_before: Timestamp,
    ) -> Result<Joined, BusError> {
        let by = if self.is("one_call_leads_a_shared_read") { "all" } else { by };
        let always = self.is("a_kept_read_is_told_unless_it_is_too_old");
        let not_before = if always { Timestamp(0) } else { not_before };
        let lease = self.stretched("the_lead_of_a_shared_read_ends_with_its_lease", lease);
        self.inner.join_read(&self.key(key), by, lease, not_before).await
    }

    async fn keep_read(
        &self,
        key: &ReadKey,
        by: &str,
        read: KeptRead,
        keep: Duration,
    ) -> Result<(), BusError> {
        let by = if self.is("a_kept_read_ends_the_lead") { "nobody" } else { by };
        let keep = self.stretched("a_read_is_kept_for_its_time_only", keep);
        let mut read = read;
        if self.is("an_older_read_does_not_replace_a_newer_one") {
            read.at = Timestamp(10);
        }
        self.inner.keep_read(&self.key(key), by, read, keep).await
    }

    async fn kept_read(&self, key: &ReadKey) -> Result<Option<KeptRead>, BusError> {
        self.inner.kept_read(&self.key(key)).await
    }

    async fn leave_read(&self, key: &ReadKey, by: &str) -> Result<(), BusError> {
        if self.is("a_leader_that_left_lets_the_next_one_lead") {
            return Ok(());
        }
        self.inner.leave_read(&self.key(key), by).await
    }

    async fn take_place(
        &self,
        tool: &ToolName,
        who: &str,
        most: u32,
        lease: Duration,
    ) -> Result<Option<Duration>, BusError> {
        let most = if self.is("places_are_limited_and_come_back") { u32::MAX } else { most };
        let lease = self.stretched("a_place_ends_with_its_lease", lease);
        self.inner.take_place(tool, who, most, lease).await
    }

    async fn leave_place(&self, tool: &ToolName, who: &str) -> Result<(), BusError> {
        self.inner.leave_place(tool, who).await
    }

    async fn set_active(
        &self,
        thread: &ThreadRef,
        deadline: Option<Timestamp>,
    ) -> Result<(), BusError> {
        let first = self.notes.lock().await.active.insert(thread.clone());
        if !first && self.is("a_new_deadline_replaces_the_old_one") {
            return Ok(());
        }
        if deadline.is_none() && self.is("a_thread_is_taken_off_the_list") {
            return Ok(());
        }
        self.inner.set_active(thread, deadline).await
    }

    async fn active(&self, until: Timestamp, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        let boundless = self.is("active_threads_are_limited_by_deadline_and_number");
        let (until, limit) =
            if boundless { (Timestamp(i64::MAX), usize::MAX) } else { (until, limit) };
        let mut found = self.inner.active(until, limit).await?;
        if self.is("active_threads_come_earliest_first") {
            found.reverse();
        }
        Ok(found)
    }
}

//! A journal that breaks one rule.

use std::future::pending;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::journal::{Append, AppendError, Appended, Fence, Journal, Stored};
use proto::envelope::Envelope;
use proto::ids::{Nonce, Sequence, TenantId, ThreadRef};
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use proto::time::Timestamp;

use crate::flawed_bus::Flawed;

const END: Sequence = Sequence(u64::MAX);

impl Flawed {
    async fn thread_records(&self, thread: &ThreadRef) -> Vec<Stored> {
        self.inner.read(thread, Sequence::NONE, Sequence::NONE).await.unwrap()
    }

    fn everything(&self) -> Vec<Stored> {
        self.inner.bus().history(0).iter().map(|stored| Stored::clone(stored)).collect()
    }

    /// What a wrong idea of the fence takes for the last sequence; `None` = the right idea.
    async fn wrong_last(&self, append: &Append) -> Option<Sequence> {
        let thread = &append.subject.thread;
        let here = self.thread_records(thread).await;
        let is_plan = |stored: &Stored| stored.subject.leaf.is_plan();
        let is_start = |stored: &Stored| matches!(stored.subject.leaf, Leaf::Start(_));
        let last = |records: Vec<Stored>, counts: &dyn Fn(&Stored) -> bool| {
            let newest = records.iter().rfind(|stored| counts(stored));
            Some(newest.map_or(Sequence::NONE, |stored| stored.sequence))
        };
        match (append.fence, self.flaw) {
            (Fence::Plan(_), "a_plan_fence_counts_facts_and_the_calls_of_every_tool") => {
                last(here, &|stored| stored.subject.leaf == Leaf::Fact)
            }
            (Fence::Plan(_), "a_plan_fence_passes_over_what_others_write") => last(here, &|_| true),
            (Fence::Plan(_), "a_plan_fence_belongs_to_one_thread") => {
                last(self.everything(), &is_plan)
            }
            (Fence::Plan(_), "a_purge_lets_fences_fall") => last(self.everything(), &|stored| {
                is_plan(stored) && stored.subject.thread == *thread
            }),
            (Fence::Plan(_) | Fence::Subject(_), "of_racing_appends_one_wins") => {
                tokio::task::yield_now().await;
                last(here, &|_| true)
            }
            (Fence::Subject(_), "a_subject_fence_counts_exactly_its_subject") => {
                last(here, &is_start)
            }
            _ => None,
        }
    }

    async fn append_with_wrong_fence(
        &self,
        mut append: Append,
        last: Sequence,
    ) -> Result<Appended, AppendError> {
        let (Fence::Plan(expected) | Fence::Subject(expected)) = append.fence else {
            panic!("only fenced appends come here")
        };
        if expected != last {
            return Err(AppendError::Fenced { last: Some(last) });
        }
        append.fence = Fence::None;
        self.inner.append(append).await
    }

    /// Whether the flaw leaves an armed schedule as it is.
    async fn keeps_schedule(&self, thread: &ThreadRef, at: Timestamp) -> bool {
        let armed = self.inner.scheduled(thread).await.unwrap();
        match self.flaw {
            "a_schedule_in_the_past_fires_at_once" => at < self.inner.bus().now(),
            "a_later_schedule_replaces_an_earlier_one" => armed.is_some_and(|armed| armed < at),
            "an_earlier_schedule_replaces_a_later_one" => armed.is_some_and(|armed| armed > at),
            _ => false,
        }
    }
}

fn same_tick(mut stored: Stored) -> Stored {
    if stored.subject.leaf == Leaf::Tick {
        let nonce = Nonce::new("0000000000000000").unwrap();
        stored.payload = Envelope::new(nonce, None, Record::Tick).encode().into();
    }
    stored
}

fn schedule_record(thread: &ThreadRef) -> Stored {
    let subject = Subject::new(thread.clone(), Leaf::Schedule);
    Stored { sequence: END, subject, at: Timestamp(0), payload: Bytes::new() }
}

#[async_trait]
impl Journal for Flawed {
    async fn append(&self, mut append: Append) -> Result<Appended, AppendError> {
        if let Some(last) = self.wrong_last(&append).await {
            return self.append_with_wrong_fence(append, last).await;
        }
        match self.flaw {
            "an_id_is_written_once" => append.dedup = None,
            "other_ids_are_written" => {
                append.dedup = append.dedup.map(|id| id.split('/').next().unwrap().to_owned());
            }
            _ => {}
        }
        let copy = append.clone();
        let mut done = self.inner.append(append).await;
        if let ("sequences_rise_across_threads", Ok(done)) = (self.flaw, &mut done) {
            let count = self.thread_records(&copy.subject.thread).await.len();
            done.sequence = Sequence(u64::try_from(count).unwrap());
        }
        if let ("a_refused_append_writes_nothing", Err(_)) = (self.flaw, &done) {
            self.inner.append(Append { fence: Fence::None, ..copy }).await.unwrap();
        }
        done
    }

    async fn read(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        floor: Sequence,
    ) -> Result<Vec<Stored>, BusError> {
        let from =
            if self.is("a_read_begins_where_it_is_asked_to") { Sequence::NONE } else { from };
        let mut found = self.inner.read(thread, from, floor).await?;
        match self.flaw {
            "records_come_back_as_they_were_written" => {
                for stored in &mut found {
                    let text = String::from_utf8_lossy(&stored.payload).into_owned();
                    stored.payload = text.into();
                }
            }
            "records_come_back_in_order" => found.sort_by(|a, b| a.subject.cmp(&b.subject)),
            "a_read_contains_its_floor" => drop(found.pop()),
            "a_floor_that_was_purged_counts_as_contained"
                if found.iter().all(|stored| stored.sequence < floor) && floor > from =>
            {
                pending::<()>().await;
            }
            "a_read_shows_one_thread" => found = self.everything(),
            "records_bear_the_time_of_the_server" => {
                for stored in &mut found {
                    stored.at = Timestamp(0);
                }
            }
            "a_tick_is_a_record_of_its_own" => {
                found = found.into_iter().map(same_tick).collect();
            }
            "a_read_leaves_schedules_out" => found.push(schedule_record(thread)),
            _ => {}
        }
        Ok(found)
    }

    async fn last(&self, subject: &Subject) -> Result<Option<Stored>, BusError> {
        if self.is("last_is_the_newest_of_exactly_its_subject") {
            return Ok(self.thread_records(&subject.thread).await.pop());
        }
        self.inner.last(subject).await
    }

    async fn schedule(
        &self,
        thread: &ThreadRef,
        at: Timestamp,
        fence: Fence,
    ) -> Result<(), AppendError> {
        self.notes.lock().await.schedules.insert(thread.clone(), at);
        if self.keeps_schedule(thread, at).await {
            return Ok(());
        }
        let at = if self.is("a_schedule_leaves_a_tick_when_it_is_due") { Timestamp(0) } else { at };
        let fence = if self.is("a_schedule_is_fenced") { Fence::None } else { fence };
        if self.is("threads_have_schedules_of_their_own") {
            let first = self.notes.lock().await.schedules.keys().next().cloned().unwrap();
            return self.inner.schedule(&first, at, fence).await;
        }
        self.inner.schedule(thread, at, fence).await
    }

    async fn scheduled(&self, thread: &ThreadRef) -> Result<Option<Timestamp>, BusError> {
        match self.flaw {
            "scheduled_tells_when_it_will_fire" => Ok(None),
            "a_schedule_fires_once_and_is_gone" => {
                Ok(self.notes.lock().await.schedules.get(thread).copied())
            }
            _ => self.inner.scheduled(thread).await,
        }
    }

    async fn purge(&self, thread: &ThreadRef, up_to: Sequence) -> Result<(), BusError> {
        let up_to = match self.flaw {
            "a_purge_takes_everything_up_to_its_end" => Sequence(up_to.0 - 1),
            "a_purge_keeps_what_is_later_and_other_threads" => Sequence(u64::MAX - 1),
            "a_purged_record_is_not_delivered" => return Ok(()),
            _ => up_to,
        };
        self.inner.purge(thread, up_to).await
    }

    async fn threads(&self, tenant: &TenantId, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        let mut found = self.inner.threads(tenant, limit).await?;
        match self.flaw {
            "threads_come_newest_first_up_to_the_limit" => found.reverse(),
            "threads_of_other_tenants_and_empty_ones_are_not_listed" => {
                found = self.everything().into_iter().map(|stored| stored.subject.thread).collect();
            }
            _ => {}
        }
        Ok(found)
    }

    async fn server_time(&self) -> Result<Timestamp, BusError> {
        self.inner.server_time().await
    }
}

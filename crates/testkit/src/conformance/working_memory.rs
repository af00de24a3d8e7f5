//! Rules of [`ports::working_memory::WorkingMemory`].

use std::time::Duration;

use ports::reads::{Joined, KeptRead, ReadKey};
use ports::working_memory::{Claim, Entry, Sample, Snapshot, TurnText};
use proto::ids::Sequence;
use proto::time::Timestamp;

use super::kit::{bytes, call_id, holds, name, same, thread, tool, until};
use super::{MemoryWorld, Outcome, suite};

suite!(MemoryWorld, MemoryHarness, run_memory:
    a_claim_is_won_by_one,
    a_refused_claim_names_its_holder_and_the_rest_of_the_lease,
    a_holder_renews_its_claim,
    a_claim_ends_with_its_lease,
    a_released_claim_is_free,
    only_its_holder_releases_a_claim,
    claims_are_told_apart_by_thread_and_call,
    the_first_outcome_stays,
    an_outcome_is_seen_by_every_process,
    an_outcome_is_kept_for_its_time_only,
    outcomes_are_told_apart_by_thread_and_call,
    an_entry_tells_result_mark_and_claim,
    a_cancel_mark_is_seen,
    a_cancel_mark_fades,
    a_snapshot_comes_back,
    a_newer_snapshot_stays,
    text_of_a_turn_comes_back_and_is_replaced,
    text_of_a_later_turn_stays,
    samples_come_oldest_first,
    old_samples_are_dropped,
    samples_are_told_apart_by_tool,
    a_probe_is_taken_by_one,
    a_probe_is_free_after_its_lease,
    one_call_leads_a_shared_read,
    a_leader_that_left_lets_the_next_one_lead,
    the_lead_of_a_shared_read_ends_with_its_lease,
    a_kept_read_is_told_unless_it_is_too_old,
    a_kept_read_ends_the_lead,
    an_older_read_does_not_replace_a_newer_one,
    a_read_is_kept_for_its_time_only,
    shared_reads_are_told_apart_by_key,
    places_are_limited_and_come_back,
    a_place_ends_with_its_lease,
    active_threads_come_earliest_first,
    active_threads_are_limited_by_deadline_and_number,
    a_new_deadline_replaces_the_old_one,
    a_thread_is_taken_off_the_list,
);

const LONG: Duration = Duration::from_hours(1);

fn is_held_by(claim: &Claim, holder: &str) -> bool {
    matches!(claim, Claim::Held { by, .. } if *by == name(holder))
}

/// The second one loses.
pub async fn a_claim_is_won_by_one(world: &dyn MemoryWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    let (thread, call) = (thread(1), call_id("call00001"));
    same("the first", one.claim(&thread, &call, &name("w1"), LONG).await?, Claim::Won)?;
    let second = other.claim(&thread, &call, &name("w2"), LONG).await?;
    holds("the second is refused", is_held_by(&second, "w1"))
}

/// Who has it and for how long at most.
pub async fn a_refused_claim_names_its_holder_and_the_rest_of_the_lease(
    world: &dyn MemoryWorld,
) -> Outcome {
    let one = world.peer().await;
    let (thread, call) = (thread(1), call_id("call00001"));
    one.claim(&thread, &call, &name("w1"), LONG).await?;
    let refused = one.claim(&thread, &call, &name("w2"), world.short()).await?;
    let Claim::Held { by, left } = refused else {
        return same("the claim", refused, Claim::Held { by: name("w1"), left: LONG });
    };
    same("the holder", by, name("w1"))?;
    holds("the rest is that of the lease", left <= LONG && left > LONG / 2)
}

/// Claiming again is allowed and starts the lease anew.
pub async fn a_holder_renews_its_claim(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    let (thread, call) = (thread(1), call_id("call00001"));
    one.claim(&thread, &call, &name("w1"), world.short()).await?;
    same("the renewal", one.claim(&thread, &call, &name("w1"), LONG).await?, Claim::Won)?;
    tokio::time::sleep(2 * world.short()).await;
    let other = one.claim(&thread, &call, &name("w2"), LONG).await?;
    holds("the renewed lease lasts", is_held_by(&other, "w1"))
}

/// A holder that is gone keeps nothing.
pub async fn a_claim_ends_with_its_lease(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    let (thread, call) = (thread(1), call_id("call00001"));
    one.claim(&thread, &call, &name("w1"), world.short()).await?;
    until(world.short() + world.patience(), "the claim is free", async || {
        let claim = one.claim(&thread, &call, &name("w2"), LONG).await?;
        Ok((claim == Claim::Won).then_some(()))
    })
    .await
}

/// Giving back is at once.
pub async fn a_released_claim_is_free(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    let (thread, call) = (thread(1), call_id("call00001"));
    one.claim(&thread, &call, &name("w1"), LONG).await?;
    one.release(&thread, &call, &name("w1")).await?;
    same("the next", one.claim(&thread, &call, &name("w2"), LONG).await?, Claim::Won)
}

/// A stranger's release changes nothing.
pub async fn only_its_holder_releases_a_claim(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    let (thread, call) = (thread(1), call_id("call00001"));
    one.release(&thread, &call, &name("w2")).await?;
    one.claim(&thread, &call, &name("w1"), LONG).await?;
    one.release(&thread, &call, &name("w2")).await?;
    let other = one.claim(&thread, &call, &name("w2"), LONG).await?;
    holds("the claim is held", is_held_by(&other, "w1"))
}

/// A call id is unique in its thread only.
pub async fn claims_are_told_apart_by_thread_and_call(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    for (n, id, holder) in [(1, "call00001", "w1"), (1, "call00002", "w2"), (2, "call00001", "w3")]
    {
        let claim = one.claim(&thread(n), &call_id(id), &name(holder), LONG).await?;
        same("the claim", claim, Claim::Won)?;
    }
    Ok(())
}

/// Whoever comes later is told what is kept.
pub async fn the_first_outcome_stays(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    let (thread, call) = (thread(1), call_id("call00001"));
    let first = one.keep_done(&thread, &call, bytes("first"), LONG).await?;
    same("the first answer", first, bytes("first"))?;
    let second = one.keep_done(&thread, &call, bytes("second"), LONG).await?;
    same("the second answer", second, bytes("first"))?;
    same("what is kept", one.done(&thread, &call).await?, Some(bytes("first")))
}

/// What one worker recorded another can publish.
pub async fn an_outcome_is_seen_by_every_process(world: &dyn MemoryWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    let (thread, call) = (thread(1), call_id("call00001"));
    same("nothing yet", other.done(&thread, &call).await?, None)?;
    one.keep_done(&thread, &call, bytes("result"), LONG).await?;
    same("what is kept", other.done(&thread, &call).await?, Some(bytes("result")))
}

/// Afterwards it is as if nothing had been kept.
pub async fn an_outcome_is_kept_for_its_time_only(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    let (thread, call) = (thread(1), call_id("call00001"));
    one.keep_done(&thread, &call, bytes("first"), world.short()).await?;
    until(world.short() + world.patience(), "the outcome is gone", async || {
        Ok(one.done(&thread, &call).await?.is_none().then_some(()))
    })
    .await?;
    let next = one.keep_done(&thread, &call, bytes("second"), LONG).await?;
    same("the next", next, bytes("second"))
}

/// Neither another call nor another thread.
pub async fn outcomes_are_told_apart_by_thread_and_call(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    one.keep_done(&thread(1), &call_id("call00001"), bytes("result"), LONG).await?;
    same("another call", one.done(&thread(1), &call_id("call00002")).await?, None)?;
    same("another thread", one.done(&thread(2), &call_id("call00001")).await?, None)
}

/// The mark is for one call of one thread.
pub async fn a_cancel_mark_is_seen(world: &dyn MemoryWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    let call = call_id("call00001");
    same("nothing yet", other.is_cancelled(&thread(1), &call).await?, false)?;
    one.mark_cancelled(&thread(1), &call, LONG).await?;
    same("the mark", other.is_cancelled(&thread(1), &call).await?, true)?;
    same("another call", other.is_cancelled(&thread(1), &call_id("call00002")).await?, false)?;
    same("another thread", other.is_cancelled(&thread(2), &call).await?, false)
}

/// A mark does not stay for ever.
pub async fn a_cancel_mark_fades(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    let (thread, call) = (thread(1), call_id("call00001"));
    one.mark_cancelled(&thread, &call, world.short()).await?;
    until(world.short() + world.patience(), "the mark is gone", async || {
        Ok((!one.is_cancelled(&thread, &call).await?).then_some(()))
    })
    .await
}

fn snapshot(sequence: u64, text: &str) -> Snapshot {
    Snapshot { sequence: Sequence(sequence), payload: bytes(text) }
}

/// Sequence and state, by thread.
pub async fn a_snapshot_comes_back(world: &dyn MemoryWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    same("nothing yet", other.snapshot(&thread(1)).await?, None)?;
    one.keep_snapshot(&thread(1), snapshot(5, "state")).await?;
    same("the snapshot", other.snapshot(&thread(1)).await?, Some(snapshot(5, "state")))?;
    same("another thread", other.snapshot(&thread(2)).await?, None)
}

/// An older planner does not overwrite what a newer one kept; a newer one does.
pub async fn a_newer_snapshot_stays(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    one.keep_snapshot(&thread(1), snapshot(5, "newer")).await?;
    one.keep_snapshot(&thread(1), snapshot(4, "older")).await?;
    same("the snapshot", one.snapshot(&thread(1)).await?, Some(snapshot(5, "newer")))?;
    one.keep_snapshot(&thread(1), snapshot(10, "newest")).await?;
    same("the snapshot", one.snapshot(&thread(1)).await?, Some(snapshot(10, "newest")))
}

fn words(started: u64, text: &str) -> TurnText {
    TurnText { started: Sequence(started), text: text.to_owned(), reasoning: format!("on {text}") }
}

/// More text of the same turn, or text of a later turn, takes the place of the earlier.
pub async fn text_of_a_turn_comes_back_and_is_replaced(world: &dyn MemoryWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    same("nothing yet", other.turn_text(&thread(1)).await?, None)?;
    for text in [words(3, "so"), words(3, "so far"), words(10, "next")] {
        one.keep_turn_text(&thread(1), text.clone()).await?;
        same("the text", other.turn_text(&thread(1)).await?, Some(text))?;
    }
    same("another thread", other.turn_text(&thread(2)).await?, None)
}

/// A planner whose turn is over does not overwrite the text of the next one.
pub async fn text_of_a_later_turn_stays(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    one.keep_turn_text(&thread(1), words(10, "later")).await?;
    one.keep_turn_text(&thread(1), words(9, "earlier")).await?;
    same("the text", one.turn_text(&thread(1)).await?, Some(words(10, "later")))
}

const fn sample(at: i64, ok: bool) -> Sample {
    Sample { at: Timestamp(at), ok }
}

/// By their own time, whoever added them.
pub async fn samples_come_oldest_first(world: &dyn MemoryWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    let probe = tool("probe");
    same("nothing yet", one.samples(&probe).await?, vec![])?;
    one.add_samples(&probe, &[sample(2_000, true)], LONG).await?;
    other.add_samples(&probe, &[sample(1_000, false)], LONG).await?;
    // Two outcomes of one moment are two samples, told together or not.
    one.add_samples(&probe, &[sample(3_000, false), sample(3_000, false)], LONG).await?;
    one.add_samples(&probe, &[sample(3_000, false)], LONG).await?;
    let last = [sample(3_000, false); 3];
    let wanted = [&[sample(1_000, false), sample(2_000, true)], &last[..]].concat();
    same("the samples", other.samples(&probe).await?, wanted)
}

/// The window ends at the newest sample.
pub async fn old_samples_are_dropped(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    let (probe, window) = (tool("probe"), Duration::from_secs(1));
    for at in [1_000, 1_500, 2_400] {
        one.add_samples(&probe, &[sample(at, true)], window).await?;
    }
    same("the samples", one.samples(&probe).await?, vec![sample(1_500, true), sample(2_400, true)])
}

/// A tool's failures are its own.
pub async fn samples_are_told_apart_by_tool(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    one.add_samples(&tool("probe"), &[sample(1, false)], LONG).await?;
    same("another tool", one.samples(&tool("restart")).await?, vec![])
}

/// One probe per tool; the other worker waits.
pub async fn a_probe_is_taken_by_one(world: &dyn MemoryWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    same("the first", one.take_probe(&tool("a"), &name("w1"), LONG).await?, true)?;
    same("the second", other.take_probe(&tool("a"), &name("w2"), LONG).await?, false)?;
    same("another tool", other.take_probe(&tool("b"), &name("w2"), LONG).await?, true)
}

/// A worker that took the probe and is gone keeps nothing.
pub async fn a_probe_is_free_after_its_lease(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    one.take_probe(&tool("a"), &name("w1"), world.short()).await?;
    until(world.short() + world.patience(), "the probe is free", async || {
        Ok(one.take_probe(&tool("a"), &name("w2"), LONG).await?.then_some(()))
    })
    .await
}

/// By deadline, whatever the order of listing.
pub async fn active_threads_come_earliest_first(world: &dyn MemoryWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    for (n, at) in [(1, 3_000), (2, 1_000), (3, 2_000)] {
        one.set_active(&thread(n), Some(Timestamp(at))).await?;
    }
    let wanted = vec![thread(2), thread(3), thread(1)];
    same("the threads", other.active(Timestamp(9_000), 10).await?, wanted)
}

/// A deadline at `until` counts; the earliest are kept.
pub async fn active_threads_are_limited_by_deadline_and_number(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    for n in 1..=3 {
        let at = Timestamp(i64::try_from(n).unwrap_or_default() * 1_000);
        one.set_active(&thread(n), Some(at)).await?;
    }
    let due = one.active(Timestamp(2_000), 10).await?;
    same("due threads", due, vec![thread(1), thread(2)])?;
    same("the first of them", one.active(Timestamp(9_000), 1).await?, vec![thread(1)])
}

/// A thread is listed once, with its newest deadline.
pub async fn a_new_deadline_replaces_the_old_one(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    one.set_active(&thread(1), Some(Timestamp(1_000))).await?;
    one.set_active(&thread(1), Some(Timestamp(5_000))).await?;
    same("before the new deadline", one.active(Timestamp(4_999), 10).await?, vec![])?;
    same("at the new deadline", one.active(Timestamp(5_000), 10).await?, vec![thread(1)])
}

/// No deadline, no listing; twice is no error.
pub async fn a_thread_is_taken_off_the_list(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    one.set_active(&thread(1), Some(Timestamp(1_000))).await?;
    one.set_active(&thread(2), Some(Timestamp(1_000))).await?;
    for _ in 0..2 {
        one.set_active(&thread(1), None).await?;
    }
    same("the threads", one.active(Timestamp(9_000), 10).await?, vec![thread(2)])
}

/// What a worker asks before an attempt is what the single questions would have told.
pub async fn an_entry_tells_result_mark_and_claim(world: &dyn MemoryWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    let (thread, call, me, you) = (thread(1), call_id("call00001"), name("w1"), name("w2"));
    let look = Entry { thread: &thread, call: &call, claim: None };
    let seen = one.enter(look).await?;
    same("a look", (seen.done, seen.cancelled, seen.claim), (None, false, None))?;
    let mine = one.enter(Entry { claim: Some((&me, LONG)), ..look }).await?;
    same("the claim", mine.claim, Some(Claim::Won))?;
    let again = one.enter(Entry { claim: Some((&me, LONG)), ..look }).await?;
    same("the claim again", again.claim, Some(Claim::Won))?;
    let yours = other.enter(Entry { claim: Some((&you, LONG)), ..look }).await?;
    holds("it is held", yours.claim.is_some_and(|claim| is_held_by(&claim, "w1")))?;
    let plain = other.claim(&thread, &call, &you, LONG).await?;
    holds("it is held for plain claims", is_held_by(&plain, "w1"))?;
    one.mark_cancelled(&thread, &call, LONG).await?;
    same("the mark", other.enter(look).await?.cancelled, true)?;
    one.keep_done(&thread, &call, bytes("result"), LONG).await?;
    let done = other.enter(Entry { claim: Some((&you, LONG)), ..look }).await?;
    same("the result", (done.done, done.claim), (Some(bytes("result")), None))
}

fn key(text: &str) -> ReadKey {
    ReadKey(text.to_owned())
}

fn read(at: i64, text: &str) -> KeptRead {
    KeptRead { at: Timestamp(at), value: bytes(text) }
}

fn is_led_by(joined: &Joined, who: &str) -> bool {
    matches!(joined, Joined::Held { by, left } if by == who && !left.is_zero() && *left <= LONG)
}

/// Who leads goes on leading; all others are told who it is.
pub async fn one_call_leads_a_shared_read(world: &dyn MemoryWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    let never = Timestamp(i64::MAX);
    same("the first", one.join_read(&key("k"), "a", LONG, never).await?, Joined::Lead)?;
    let second = other.join_read(&key("k"), "b", LONG, never).await?;
    holds("the second waits", is_led_by(&second, "a"))?;
    same("the first again", one.join_read(&key("k"), "a", LONG, never).await?, Joined::Lead)
}

/// A stranger's leaving changes nothing.
pub async fn a_leader_that_left_lets_the_next_one_lead(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    let never = Timestamp(i64::MAX);
    one.join_read(&key("k"), "a", LONG, never).await?;
    one.leave_read(&key("k"), "b").await?;
    let held = one.join_read(&key("k"), "b", LONG, never).await?;
    holds("it is still led", is_led_by(&held, "a"))?;
    one.leave_read(&key("k"), "a").await?;
    same("the next", one.join_read(&key("k"), "b", LONG, never).await?, Joined::Lead)
}

/// A leader that died holds nobody up for ever.
pub async fn the_lead_of_a_shared_read_ends_with_its_lease(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    let never = Timestamp(i64::MAX);
    one.join_read(&key("k"), "a", world.short(), never).await?;
    until(world.short() + world.patience(), "the lead is free", async || {
        let joined = one.join_read(&key("k"), "b", LONG, never).await?;
        Ok((joined == Joined::Lead).then_some(()))
    })
    .await
}

/// The age of a read is that of its beginning.
pub async fn a_kept_read_is_told_unless_it_is_too_old(world: &dyn MemoryWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    same("nothing yet", other.kept_read(&key("k")).await?, None)?;
    one.keep_read(&key("k"), "a", read(1_000, "v\0\u{e9}"), LONG).await?;
    same("whatever its age", other.kept_read(&key("k")).await?, Some(read(1_000, "v\0\u{e9}")))?;
    let joined = other.join_read(&key("k"), "b", LONG, Timestamp(1_000)).await?;
    same("young enough", joined, Joined::Kept(read(1_000, "v\0\u{e9}")))?;
    let joined = other.join_read(&key("k"), "b", LONG, Timestamp(1_001)).await?;
    same("too old", joined, Joined::Lead)
}

/// The others need not wait for the lease to end.
pub async fn a_kept_read_ends_the_lead(world: &dyn MemoryWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    let never = Timestamp(i64::MAX);
    one.join_read(&key("k"), "a", LONG, never).await?;
    one.keep_read(&key("k"), "a", read(5, "v"), LONG).await?;
    same("the next", other.join_read(&key("k"), "b", LONG, never).await?, Joined::Lead)?;
    one.keep_read(&key("k"), "a", read(6, "v"), LONG).await?;
    let third = one.join_read(&key("k"), "c", LONG, never).await?;
    holds("a late leader ends no other's lead", is_led_by(&third, "b"))
}

/// A slow execution does not hide a quick one that began later.
pub async fn an_older_read_does_not_replace_a_newer_one(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    one.keep_read(&key("k"), "a", read(9, "newer"), LONG).await?;
    one.keep_read(&key("k"), "b", read(8, "older"), LONG).await?;
    same("the read", one.kept_read(&key("k")).await?, Some(read(9, "newer")))?;
    one.keep_read(&key("k"), "b", read(10, "newest"), LONG).await?;
    same("the read", one.kept_read(&key("k")).await?, Some(read(10, "newest")))
}

/// Afterwards it is as if nothing had been kept.
pub async fn a_read_is_kept_for_its_time_only(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    one.keep_read(&key("k"), "a", read(5, "v"), world.short()).await?;
    until(world.short() + world.patience(), "the read is gone", async || {
        Ok(one.kept_read(&key("k")).await?.is_none().then_some(()))
    })
    .await
}

/// Another key is another read: another tenant's, or one with other arguments.
pub async fn shared_reads_are_told_apart_by_key(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    let never = Timestamp(i64::MAX);
    one.keep_read(&key("k"), "a", read(5, "v"), LONG).await?;
    same("another key", one.kept_read(&key("l")).await?, None)?;
    one.join_read(&key("k"), "a", LONG, never).await?;
    same("another lead", one.join_read(&key("l"), "b", LONG, never).await?, Joined::Lead)
}

/// So many at once and no more, by tool; one that is taken twice is one.
pub async fn places_are_limited_and_come_back(world: &dyn MemoryWorld) -> Outcome {
    let (one, other) = (world.peer().await, world.peer().await);
    for who in ["a", "b", "a"] {
        same(who, one.take_place(&tool("t"), who, 2, LONG).await?, None)?;
    }
    let full = other.take_place(&tool("t"), "c", 2, LONG).await?;
    holds("the third waits", full.is_some_and(|left| !left.is_zero() && left <= LONG))?;
    same("another tool", other.take_place(&tool("u"), "c", 2, LONG).await?, None)?;
    one.leave_place(&tool("t"), "a").await?;
    same("a free place", other.take_place(&tool("t"), "c", 2, LONG).await?, None)
}

/// A worker that died keeps no place.
pub async fn a_place_ends_with_its_lease(world: &dyn MemoryWorld) -> Outcome {
    let one = world.peer().await;
    one.take_place(&tool("t"), "a", 1, world.short()).await?;
    until(world.short() + world.patience(), "the place is free", async || {
        Ok(one.take_place(&tool("t"), "b", 1, LONG).await?.is_none().then_some(()))
    })
    .await
}

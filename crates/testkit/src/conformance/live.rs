//! Rules of [`ports::live::Live`].

use std::sync::Arc;

use bytes::Bytes;
use ports::live::{OwnerAnswer, Subscription, Topic};
use proto::ids::{Sequence, ThreadRef};
use proto::live::HeldQuestion;
use tokio::time::timeout;

use super::kit::{MOMENT, bytes, holds, name, peer, same, thread};
use super::{Broken, BusWorld, Outcome, suite};

suite!(BusWorld, BusHarness, run_bus:
    a_reader_hears_what_another_process_says,
    every_reader_hears,
    a_reader_hears_its_thread_only,
    text_and_hints_are_apart,
    the_control_of_all_threads_is_heard_together,
    a_late_reader_hears_nothing_old,
    a_slow_reader_holds_nobody_up,
    a_slow_reader_loses_the_oldest,
    an_owner_answers_for_what_it_holds,
    a_name_that_nobody_answers_to_is_gone,
    a_dropped_guard_is_gone,
);

const FLOOD: u32 = 5_000;

/// What a subscription hears next, or nothing for a moment.
async fn hear(
    world: &dyn BusWorld,
    reader: &mut Box<dyn Subscription>,
) -> Option<(ThreadRef, Bytes)> {
    timeout(world.timing().patience, reader.next()).await.ok().flatten()
}

async fn silence(reader: &mut Box<dyn Subscription>) -> Outcome {
    let heard = timeout(10 * MOMENT, reader.next()).await.ok().flatten();
    same("what is heard", heard, None)
}

/// The message and the thread that it belongs to.
pub async fn a_reader_hears_what_another_process_says(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    let topic = Topic::Text(thread(1));
    let mut reader = one.live.subscribe(&topic).await?;
    for word in ["first", "second"] {
        other.live.publish(&topic, bytes(word)).await?;
        same("the message", hear(world, &mut reader).await, Some((thread(1), bytes(word))))?;
    }
    Ok(())
}

/// Listening takes nothing away from others.
pub async fn every_reader_hears(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    let topic = Topic::Text(thread(1));
    let mut readers = [one.live.subscribe(&topic).await?, other.live.subscribe(&topic).await?];
    one.live.publish(&topic, bytes("word")).await?;
    for reader in &mut readers {
        same("the message", hear(world, reader).await, Some((thread(1), bytes("word"))))?;
    }
    Ok(())
}

/// Threads are told apart.
pub async fn a_reader_hears_its_thread_only(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let mut reader = one.live.subscribe(&Topic::Text(thread(1))).await?;
    one.live.publish(&Topic::Text(thread(2)), bytes("elsewhere")).await?;
    silence(&mut reader).await
}

/// A reader of text hears no hint, a reader of hints no text.
pub async fn text_and_hints_are_apart(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let mut text = one.live.subscribe(&Topic::Text(thread(1))).await?;
    let mut hints = one.live.subscribe(&Topic::Control(thread(1))).await?;
    one.live.publish(&Topic::Text(thread(1)), bytes("text")).await?;
    one.live.publish(&Topic::Control(thread(1)), bytes("hint")).await?;
    same("the text", hear(world, &mut text).await, Some((thread(1), bytes("text"))))?;
    same("the hint", hear(world, &mut hints).await, Some((thread(1), bytes("hint"))))?;
    silence(&mut text).await?;
    silence(&mut hints).await
}

/// `AllControl` hears the hints of every thread, and no text.
pub async fn the_control_of_all_threads_is_heard_together(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let mut reader = one.live.subscribe(&Topic::AllControl).await?;
    one.live.publish(&Topic::Text(thread(1)), bytes("text")).await?;
    for n in [1, 2] {
        one.live.publish(&Topic::Control(thread(n)), bytes("hint")).await?;
        same("the hint", hear(world, &mut reader).await, Some((thread(n), bytes("hint"))))?;
    }
    silence(&mut reader).await
}

/// Nothing is kept.
pub async fn a_late_reader_hears_nothing_old(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let topic = Topic::Text(thread(1));
    one.live.publish(&topic, bytes("old")).await?;
    let mut reader = one.live.subscribe(&topic).await?;
    silence(&mut reader).await
}

async fn flood(world: &dyn BusWorld, topic: &Topic) -> Outcome {
    let one = peer(world, "a").await;
    let all = async {
        for n in 1..=FLOOD {
            one.live.publish(topic, Bytes::copy_from_slice(&n.to_le_bytes())).await?;
        }
        Ok(())
    };
    match timeout(10 * world.timing().patience, all).await {
        Ok(done) => done,
        Err(_) => Err(Broken::Violated("the writer waits for a reader".to_owned())),
    }
}

/// A writer goes on while nobody reads what it says.
pub async fn a_slow_reader_holds_nobody_up(world: &dyn BusWorld) -> Outcome {
    let topic = Topic::Text(thread(1));
    let reader = peer(world, "a").await.live.subscribe(&topic).await?;
    let done = flood(world, &topic).await;
    drop(reader);
    done
}

/// Whatever is lost, the newest message is not, and the order stays.
pub async fn a_slow_reader_loses_the_oldest(world: &dyn BusWorld) -> Outcome {
    let topic = Topic::Text(thread(1));
    let mut reader = peer(world, "a").await.live.subscribe(&topic).await?;
    flood(world, &topic).await?;
    let mut last = 0;
    while last < FLOOD {
        let Some((_, message)) = hear(world, &mut reader).await else {
            return Err(Broken::Violated(format!("after message {last} of {FLOOD} nothing comes")));
        };
        let number = message.as_ref().try_into().map_or(0, u32::from_le_bytes);
        holds("messages keep their order", number > last)?;
        last = number;
    }
    Ok(())
}

fn question(n: u64) -> HeldQuestion {
    HeldQuestion { thread: thread(n), started: Sequence(n) }
}

/// The owner decides, question by question; any process may ask.
pub async fn an_owner_answers_for_what_it_holds(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    let held = Arc::new(|asked: &HeldQuestion| *asked == question(1));
    let guard = one.live.answer(&name("owner"), held).await?;
    let patience = world.timing().patience;
    for (n, wanted) in [(1, OwnerAnswer::Holding), (2, OwnerAnswer::NotHolding)] {
        for asker in [&one, &other] {
            let answer = asker.live.ask(&name("owner"), &question(n), patience).await?;
            same("the answer", answer, wanted)?;
        }
    }
    drop(guard);
    Ok(())
}

/// Nobody ever answered to it, though others do to theirs.
pub async fn a_name_that_nobody_answers_to_is_gone(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let guard = one.live.answer(&name("owner"), Arc::new(|_| true)).await?;
    let answer = one.live.ask(&name("stranger"), &question(1), world.timing().patience).await?;
    drop(guard);
    same("the answer", answer, OwnerAnswer::NoResponder)
}

/// An owner that lets go of its guard is gone at once.
pub async fn a_dropped_guard_is_gone(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    drop(one.live.answer(&name("owner"), Arc::new(|_| true)).await?);
    let patience = world.timing().patience;
    let gone = super::kit::until(patience, "the owner is gone", async || {
        let answer = other.live.ask(&name("owner"), &question(1), patience / 8).await?;
        Ok((answer == OwnerAnswer::NoResponder).then_some(()))
    });
    gone.await
}

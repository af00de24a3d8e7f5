//! Rules of [`ports::artifacts::Artifacts`].

use bytes::Bytes;
use proto::hash::artifact_id;
use proto::observation::ArtifactRef;

use super::kit::{bytes, peer, same, thread};
use super::{Broken, BusWorld, Outcome, suite};

suite!(BusWorld, BusHarness, run_bus:
    a_payload_is_named_by_its_hash,
    a_payload_comes_back_in_every_process,
    a_large_payload_comes_back,
    an_unknown_payload_is_none,
    storing_again_changes_nothing,
    a_payload_belongs_to_its_thread,
    a_removed_payload_is_gone_and_others_stay,
    erase_removes_the_payloads_of_its_thread,
    erase_keeps_other_threads,
    payloads_survive_a_reopen,
);

/// The address is the SHA-256, the length that of the payload.
pub async fn a_payload_is_named_by_its_hash(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let stored = one.artifacts.put(&thread(1), bytes("result")).await?;
    same("the name", stored, ArtifactRef { id: artifact_id(b"result"), bytes: 6 })
}

/// Another process reads what one wrote.
pub async fn a_payload_comes_back_in_every_process(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    for payload in [bytes("result"), Bytes::new(), Bytes::from_static(b"\x00\xff")] {
        let id = one.artifacts.put(&thread(1), payload.clone()).await?.id;
        same("the payload", other.artifacts.get(&thread(1), &id).await?, Some(payload))?;
    }
    Ok(())
}

/// Larger than a message of the journal may be.
pub async fn a_large_payload_comes_back(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let payload: Bytes = (0..=255_u8).cycle().take(3 << 20).collect();
    let id = one.artifacts.put(&thread(1), payload.clone()).await?.id;
    let found = one.artifacts.get(&thread(1), &id).await?;
    same("the payload is whole", found == Some(payload), true)
}

/// Nothing stored is no error.
pub async fn an_unknown_payload_is_none(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let found = one.artifacts.get(&thread(1), &artifact_id(b"never stored")).await?;
    same("the payload", found, None)
}

/// The same bytes have the same name and are still there.
pub async fn storing_again_changes_nothing(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    let first = one.artifacts.put(&thread(1), bytes("result")).await?;
    let again = other.artifacts.put(&thread(1), bytes("result")).await?;
    same("the name", &again, &first)?;
    same("the payload", one.artifacts.get(&thread(1), &first.id).await?, Some(bytes("result")))
}

/// A hash alone opens nothing.
pub async fn a_payload_belongs_to_its_thread(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let id = one.artifacts.put(&thread(1), bytes("result")).await?.id;
    same("another thread", one.artifacts.get(&thread(2), &id).await?, None)
}

/// Removing one twice, or one that never was, is no mistake; it may be stored again.
pub async fn a_removed_payload_is_gone_and_others_stay(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    let id = one.artifacts.put(&thread(1), bytes("result")).await?.id;
    let kept = one.artifacts.put(&thread(1), bytes("kept")).await?.id;
    one.artifacts.put(&thread(2), bytes("result")).await?;
    for id in [&id, &id, &artifact_id(b"never stored")] {
        other.artifacts.remove(&thread(1), id).await?;
    }
    same("the payload", one.artifacts.get(&thread(1), &id).await?, None)?;
    same("another one", one.artifacts.get(&thread(1), &kept).await?, Some(bytes("kept")))?;
    let elsewhere = one.artifacts.get(&thread(2), &id).await?;
    same("that of another thread", elsewhere, Some(bytes("result")))?;
    one.artifacts.put(&thread(1), bytes("result")).await?;
    same("stored again", other.artifacts.get(&thread(1), &id).await?, Some(bytes("result")))
}

/// All payloads of the thread are gone.
pub async fn erase_removes_the_payloads_of_its_thread(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let mut ids = Vec::new();
    for word in ["first", "second"] {
        ids.push(one.artifacts.put(&thread(1), bytes(word)).await?.id);
    }
    one.artifacts.erase(&thread(1)).await?;
    for id in ids {
        same("the payload", one.artifacts.get(&thread(1), &id).await?, None)?;
    }
    Ok(())
}

/// The same bytes in another thread stay.
pub async fn erase_keeps_other_threads(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    one.artifacts.put(&thread(1), bytes("result")).await?;
    let id = one.artifacts.put(&thread(2), bytes("result")).await?.id;
    one.artifacts.erase(&thread(1)).await?;
    same("the payload", one.artifacts.get(&thread(2), &id).await?, Some(bytes("result")))
}

/// A payload is as durable as the record that names it.
pub async fn payloads_survive_a_reopen(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let id = one.artifacts.put(&thread(1), bytes("result")).await?.id;
    drop(one);
    if !world.reopen().await {
        return Err(Broken::Skipped("the adapter cannot be reopened"));
    }
    let found = peer(world, "b").await.artifacts.get(&thread(1), &id).await?;
    same("the payload", found, Some(bytes("result")))
}

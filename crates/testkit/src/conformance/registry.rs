//! Rules of [`ports::registry::Registry`].

use std::time::Duration;

use proto::hash::fingerprint;
use proto::tool::{Approval, Effect, Registration, Retry, ToolContract};
use tokio::time::{Instant, sleep};

use super::kit::{holds, name, peer, same, tool, until};
use super::{Broken, BusWorld, Outcome, Peer, suite};

suite!(BusWorld, BusHarness, run_bus:
    an_offer_is_seen_by_every_process,
    offers_of_several_workers_are_seen_together,
    a_renewed_offer_replaces_the_earlier_one,
    an_offer_that_is_taken_back_is_gone,
    taking_back_touches_no_other_worker,
    an_offer_fades_unless_it_is_renewed,
    a_renewed_offer_does_not_fade,
);

fn offer(worker: &str, tools: &[&str]) -> Registration {
    let contract = |text: &&str| ToolContract {
        name: tool(text),
        description: format!("does {text}"),
        parameters: serde_json::json!({"type": "object"}),
        effect: Effect::ReadOnly,
        timeout_ms: 3_000,
        retry: Retry::default(),
        deadlines: proto::tool::Deadlines::default(),
        approval: Approval::Never,
        permissions: Vec::new(),
        result_tokens: 300,
        result_schema: None,
        fingerprint: fingerprint(text),
    };
    Registration { worker: name(worker), tools: tools.iter().map(contract).collect() }
}

/// The offers, ordered by worker.
async fn offers(peer: &Peer) -> Result<Vec<Registration>, Broken> {
    let mut found = peer.registry.registrations().await?;
    found.sort_by(|a, b| a.worker.cmp(&b.worker));
    Ok(found)
}

/// The other process sees the offers within the world's patience.
async fn become_seen(world: &dyn BusWorld, peer: &Peer, wanted: Vec<Registration>) -> Outcome {
    let seen = until(world.timing().patience, "the offers", async || {
        Ok((offers(peer).await? == wanted).then_some(()))
    });
    match seen.await {
        Ok(()) => Ok(()),
        Err(_) => same("the offers", offers(peer).await?, wanted),
    }
}

/// The whole contract arrives.
pub async fn an_offer_is_seen_by_every_process(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    same("no offer yet", offers(&other).await?, vec![])?;
    one.registry.register(offer("w1", &["probe", "restart"])).await?;
    become_seen(world, &other, vec![offer("w1", &["probe", "restart"])]).await
}

/// Workers do not replace each other, even with the same tool.
pub async fn offers_of_several_workers_are_seen_together(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    one.registry.register(offer("w2", &["probe"])).await?;
    one.registry.register(offer("w1", &["probe"])).await?;
    become_seen(world, &one, vec![offer("w1", &["probe"]), offer("w2", &["probe"])]).await
}

/// The newest offer of a worker counts.
pub async fn a_renewed_offer_replaces_the_earlier_one(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    one.registry.register(offer("w1", &["probe"])).await?;
    one.registry.register(offer("w1", &["restart"])).await?;
    become_seen(world, &other, vec![offer("w1", &["restart"])]).await
}

/// At once, long before it would have faded; taking back what is not offered is no error.
pub async fn an_offer_that_is_taken_back_is_gone(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    one.registry.register(offer("w1", &["probe"])).await?;
    one.registry.unregister(&name("w1")).await?;
    one.registry.unregister(&name("w1")).await?;
    let timing = world.timing();
    let soon = timing.offer_ttl.map_or(timing.patience, |ttl| timing.patience.min(ttl / 2));
    until(soon, "the offer is gone", async || Ok(offers(&other).await?.is_empty().then_some(())))
        .await
}

/// Only the named worker goes.
pub async fn taking_back_touches_no_other_worker(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    one.registry.register(offer("w1", &["probe"])).await?;
    one.registry.register(offer("w2", &["probe"])).await?;
    one.registry.unregister(&name("w1")).await?;
    become_seen(world, &one, vec![offer("w2", &["probe"])]).await
}

fn ttl(world: &dyn BusWorld) -> Result<Duration, Broken> {
    world.timing().offer_ttl.ok_or(Broken::Skipped("offers of this adapter last too long to wait"))
}

/// A worker that is gone is forgotten.
pub async fn an_offer_fades_unless_it_is_renewed(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let ttl = ttl(world)?;
    one.registry.register(offer("w1", &["probe"])).await?;
    let patience = ttl + world.timing().patience;
    until(patience, "the offer is gone", async || Ok(offers(&one).await?.is_empty().then_some(())))
        .await
}

/// A worker that renews its offer stays. Judged only if this task was never itself held up.
pub async fn a_renewed_offer_does_not_fade(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let ttl = ttl(world)?;
    for _ in 0..6 {
        let renewed = Instant::now();
        one.registry.register(offer("w1", &["probe"])).await?;
        sleep(ttl / 2).await;
        let seen = offers(&one).await?.len() == 1;
        if renewed.elapsed() >= ttl {
            return Err(Broken::Skipped("the machine was too slow to renew the offer"));
        }
        holds("a renewed offer is seen", seen)?;
    }
    Ok(())
}

//! Rules of [`ports::freezes::Freezes`].

use ports::BusError;
use ports::freezes::{LONGEST_REASON, MOST_FREEZES};
use proto::freeze::{Freeze, FreezeTarget};
use proto::time::Timestamp;

use super::kit::{holds, peer, same, tenant, tool};
use super::{Broken, BusWorld, Outcome, Peer, suite};

suite!(BusWorld, BusHarness, run_bus:
    a_freeze_is_seen_by_every_process_at_once,
    freezes_of_several_processes_stand_together,
    a_second_freeze_of_a_target_replaces_the_first,
    a_thaw_lets_go_of_its_target_alone,
    thawing_what_is_not_frozen_says_so,
    freezes_survive_a_reopen,
    freezes_and_their_reasons_are_bounded,
);

fn freeze(target: FreezeTarget, reason: &str) -> Freeze {
    Freeze { target, reason: reason.to_owned(), by: "ann".to_owned(), at: Timestamp(1_000) }
}

fn of_tool(text: &str) -> FreezeTarget {
    FreezeTarget::Tool(tool(text))
}

fn of_tenant(text: &str) -> FreezeTarget {
    FreezeTarget::Tenant(tenant(text))
}

async fn frozen(peer: &Peer) -> Result<Vec<Freeze>, Broken> {
    Ok(peer.freezes.frozen().await?)
}

/// Without any patience: what was answered holds.
pub async fn a_freeze_is_seen_by_every_process_at_once(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    same("nothing yet", frozen(&other).await?, vec![])?;
    one.freezes.freeze(freeze(FreezeTarget::All, "incident 7")).await?;
    same("the freeze", frozen(&other).await?, vec![freeze(FreezeTarget::All, "incident 7")])
}

/// Ordered by target, and none is lost to another.
pub async fn freezes_of_several_processes_stand_together(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    let (third, targets) = (
        peer(world, "c").await,
        [of_tool("pay"), of_tenant("acme"), of_tool("call"), FreezeTarget::All],
    );
    let [first, second, next, last] = targets.map(|target| freeze(target, ""));
    let (left, right) = tokio::join!(one.freezes.freeze(first), other.freezes.freeze(second));
    left?;
    right?;
    let (left, right) = tokio::join!(one.freezes.freeze(next), other.freezes.freeze(last));
    left?;
    right?;
    let wanted = [FreezeTarget::All, of_tenant("acme"), of_tool("call"), of_tool("pay")];
    same("all", frozen(&third).await?, wanted.map(|target| freeze(target, "")).to_vec())
}

/// The newest words count.
pub async fn a_second_freeze_of_a_target_replaces_the_first(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    one.freezes.freeze(freeze(of_tool("pay"), "night")).await?;
    one.freezes.freeze(freeze(of_tool("pay"), "incident 7")).await?;
    same("the freeze", frozen(&one).await?, vec![freeze(of_tool("pay"), "incident 7")])
}

/// A tenant and a tool of one name are two targets.
pub async fn a_thaw_lets_go_of_its_target_alone(world: &dyn BusWorld) -> Outcome {
    let (one, other) = (peer(world, "a").await, peer(world, "b").await);
    for target in [of_tool("pay"), of_tenant("pay"), FreezeTarget::All] {
        one.freezes.freeze(freeze(target, "")).await?;
    }
    same("it was frozen", other.freezes.thaw(&of_tool("pay")).await?, true)?;
    let left = vec![freeze(FreezeTarget::All, ""), freeze(of_tenant("pay"), "")];
    same("the rest", frozen(&one).await?, left)
}

/// So that an operator notices a wrong name.
pub async fn thawing_what_is_not_frozen_says_so(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    same("never frozen", one.freezes.thaw(&FreezeTarget::All).await?, false)?;
    one.freezes.freeze(freeze(FreezeTarget::All, "")).await?;
    same("frozen", one.freezes.thaw(&FreezeTarget::All).await?, true)?;
    same("thawed before", one.freezes.thaw(&FreezeTarget::All).await?, false)
}

/// A restart thaws nothing.
pub async fn freezes_survive_a_reopen(world: &dyn BusWorld) -> Outcome {
    peer(world, "a").await.freezes.freeze(freeze(of_tool("pay"), "incident 7")).await?;
    if !world.reopen().await {
        return Err(Broken::Skipped("this adapter has nothing to reopen"));
    }
    let found = frozen(&peer(world, "a").await).await?;
    same("the freeze", found, vec![freeze(of_tool("pay"), "incident 7")])
}

/// A full list takes what it has already, and nothing that was refused is in it.
pub async fn freezes_and_their_reasons_are_bounded(world: &dyn BusWorld) -> Outcome {
    let one = peer(world, "a").await;
    let long = one.freezes.freeze(freeze(FreezeTarget::All, &"x".repeat(LONGEST_REASON + 1))).await;
    holds("a longer reason is refused", matches!(long, Err(BusError::TooLarge { .. })))?;
    for n in 0..MOST_FREEZES {
        one.freezes.freeze(freeze(of_tool(&format!("tool_{n}")), "")).await?;
    }
    let more = one.freezes.freeze(freeze(of_tool("more"), "")).await;
    holds("one more is refused", matches!(more, Err(BusError::Full(_))))?;
    one.freezes.freeze(freeze(of_tool("tool_0"), "again")).await?;
    same("as many as there may be", frozen(&one).await?.len(), MOST_FREEZES)
}

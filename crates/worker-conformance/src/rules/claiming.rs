//! Claims: the one record that decides whether a call which must not happen twice may begin.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use proto::call::Start;
use proto::error_code::ErrorCode;
use proto::observation::Receipt;
use proto::time::Timestamp;
use serde_json::json;
use tokio::time::sleep;

use crate::calls::decode;
use crate::calls::{Call, TRACE};
use crate::stage::Stage;

pub(super) async fn precedes(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_append", json!({ "line": "first", "ms": 300 }))?.send().await?;
    stage.until_lines("append.log", "first", 1).await?;
    let begun = call.starts().await?;
    ensure!(begun.len() == 1, "the effect is there with {} start records", begun.len());
    let seen = call.answered().await?;
    let got = (seen.observation.attempt, seen.observation.code);
    ensure!(got == (1, None), "attempt and code are {got:?}");
    ensure!(seen.observation.content.contains("appended first"), "{}", seen.observation.content);
    let starts = call.starts().await?;
    let Some((stored, Start::Started(started))) = starts.first() else { bail!("no start record") };
    ensure!(starts.len() == 1, "{} start records", starts.len());
    ensure!(stored.sequence < seen.stored.sequence, "it lies behind the observation");
    let fence = stored.header("Nats-Expected-Last-Subject-Sequence");
    ensure!(fence == Some("0"), "its fence is {fence:?}, not 0");
    ensure!(started.attempt == 1, "attempt {}", started.attempt);
    ensure!(started.worker == stage.offer()?.worker, "it names worker {}", started.worker);
    ensure!(!started.host.is_empty(), "it names no host");
    let near = |a: Timestamp, b: Timestamp| a.since(b).max(b.since(a)) < Duration::from_secs(5);
    ensure!(near(started.at, stored.at), "`at` is {} at {}", started.at, stored.at);
    let span = started.until.since(started.at);
    let limit = stage.contract("cf_append")?.timeout();
    let most = limit.saturating_add(Duration::from_secs(30));
    ensure!(span > limit && span < most, "`until` is {span:?} later, for a limit of {limit:?}");
    let trace = decode(stored)?.traceparent;
    ensure!(trace.as_deref() == Some(TRACE), "the call's trace is not passed on");
    Ok(())
}

pub(super) async fn barred(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_append", json!({ "line": "barred" }))?;
    call.barred_by_planner().await?;
    let call = call.send().await?;
    call.acknowledged().await?;
    sleep(Duration::from_millis(500)).await;
    let (seen, starts) = (call.observations().await?.len(), call.starts().await?.len());
    ensure!((seen, starts) == (0, 1), "{seen} observations, {starts} start records");
    ensure!(stage.lines("append.log", "barred") == 0, "its effect happened");
    Ok(())
}

/// Calls that a planner bars at the very moment at which they are dispatched: whoever wins, there is
/// one start record, and an effect only with a start.
pub(super) async fn lost_race(stage: &Stage) -> Result<()> {
    for number in 0..20 {
        let line = format!("race {number}");
        let call = stage.call("cf_append", json!({ "line": line }))?;
        let now = stage.bus.now().await?;
        let body = json!({
            "kind": "start", "start": "barred", "tool_call_id": call.id, "by": "planner-1", "at": now,
        });
        let leaf = proto::subject::Leaf::Start(call.id.clone());
        // The bar is refused where the worker was first.
        let call = call.send_against(leaf, body).await?;
        call.acknowledged().await?;
        let starts = call.starts().await?;
        let [(_, first)] = starts.as_slice() else { bail!("{} start records", starts.len()) };
        let effects = stage.lines("append.log", &line);
        match first {
            Start::Barred(_) => ensure!(effects == 0, "barred, and its effect happened"),
            Start::Started(_) => ensure!(effects == 1, "started, and {effects} effects"),
            Start::Held(_) => bail!("a resource on a call's subject"),
        }
    }
    Ok(())
}

/// How much longer another worker could be at it.
const LEFT: i64 = 2500;

pub(super) async fn foreign(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_append", json!({ "line": "foreign" }))?.times(1000, LEFT + 500);
    call.started_by_another(LEFT).await?;
    let until = stage.bus.now().await?.after(Duration::from_millis(u64::try_from(LEFT)?));
    let call = call.send().await?;
    let seen = call.answered().await?;
    let early = until.since(seen.stored.at);
    ensure!(early < Duration::from_millis(300), "answered {early:?} before the other's end");
    let found = &seen.observation;
    let wanted = (0, Some(ErrorCode::InDoubt), Some(Receipt::Unknown));
    let got = (found.attempt, found.code, found.receipt);
    ensure!(got == wanted, "attempt, code, receipt are {got:?}, not {wanted:?}");
    for word in ["far-away", "other-worker"] {
        ensure!(found.content.contains(word), "{word} is not named: {}", found.content);
    }
    ensure!(stage.lines("append.log", "foreign") == 0, "its effect happened");
    Ok(())
}

/// A checkable call that another worker has begun, whose time is over.
async fn checkable<'a>(stage: &'a Stage, line: &str) -> Result<Call<'a>> {
    // A worker that shares working memory with others may wait for the deadline before it checks.
    let call = stage.call("cf_put", json!({ "line": line }))?.times(12_000, 2000);
    call.started_by_another(-100).await?;
    Ok(call)
}

pub(super) async fn foreign_effect(stage: &Stage) -> Result<()> {
    let file = std::fs::File::options().create(true).append(true).open(stage.path("put.log"))?;
    std::io::Write::write_all(&mut &file, b"effect there\n")?;
    let call = checkable(stage, "effect there").await?.send().await?;
    let seen = call.answered().await?;
    let got = (seen.observation.code, seen.observation.receipt);
    ensure!(got == (None, Some(Receipt::Completed)), "code and receipt are {got:?}");
    ensure!(stage.lines("put.log", "effect there") == 1, "it happened twice");
    ensure!(call.starts().await?.len() == 1, "another attempt was begun");
    Ok(())
}

pub(super) async fn foreign_nothing(stage: &Stage) -> Result<()> {
    let call = checkable(stage, "effect missing").await?.send().await?;
    let seen = call.answered().await?;
    let got = (seen.observation.attempt, seen.observation.code);
    ensure!(got == (2, None), "attempt and code are {got:?}");
    ensure!(stage.lines("put.log", "effect missing") == 1, "not exactly one effect");
    let starts = call.starts().await?;
    let [(first, _), (second, Start::Started(started))] = starts.as_slice() else {
        bail!("{} start records, not two", starts.len())
    };
    ensure!(started.attempt == 2, "the second start is attempt {}", started.attempt);
    let fence = second.header("Nats-Expected-Last-Subject-Sequence");
    let wanted = first.sequence.to_string();
    ensure!(fence == Some(wanted.as_str()), "its fence is {fence:?}, not {wanted}");
    Ok(())
}

pub(super) async fn used_up(stage: &Stage) -> Result<()> {
    let retry = json!({ "max_attempts": 1, "backoff_ms": 50 });
    let call = checkable(stage, "used up").await?.body("retry", retry).send().await?;
    let seen = call.answered().await?;
    let got = (seen.observation.code, seen.observation.receipt);
    let wanted = (Some(ErrorCode::ToolFailed), Some(Receipt::StoppedBeforeEffect));
    ensure!(got == wanted, "code and receipt are {got:?}, not {wanted:?}");
    ensure!(stage.lines("put.log", "used up") == 0, "its effect happened");
    let starts = call.starts().await?;
    let (_, last) = starts.last().context("no start record")?;
    ensure!(matches!(last, Start::Barred(_)), "it is not barred behind the first start");
    Ok(())
}

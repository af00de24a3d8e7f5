//! What is looked at before a call begins, and what its observation holds.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use proto::error_code::ErrorCode;
use proto::hash::{arguments_hash, artifact_id};
use proto::subject::Leaf;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::calls::{Call, PATIENCE, TRACE, decode};
use crate::stage::{LOOK, Stage};
use crate::traffic::delay;

/// The least time that a record rests which a worker cannot read.
const RESTS: Duration = Duration::from_secs(5);

pub(super) async fn observation(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_echo", json!({ "text": "héllo", "times": 2 }))?.send().await?;
    let seen = call.answered().await?;
    let found = &seen.observation;
    ensure!(found.content.trim_end() == "héllo héllo", "the content is `{}`", found.content);
    let got = (found.attempt, found.code, found.receipt, found.artifact.as_ref());
    ensure!(got == (1, None, None, None), "attempt, code, receipt, artifact are {got:?}");
    let contract = stage.contract("cf_echo")?;
    let Some(stamp) = &found.stamp else { bail!("it has no stamp") };
    ensure!(stamp.worker == stage.offer()?.worker, "the stamp names {}", stamp.worker);
    ensure!(stamp.fingerprint == contract.fingerprint, "the stamp has another fingerprint");
    let arguments = json!({ "text": "héllo", "times": 2 });
    let hash = arguments_hash(arguments.as_object().context("an object")?);
    ensure!(stamp.arguments_hash == hash, "the stamp has another hash of the arguments");
    let since = seen.stored.at.since(stamp.started_at);
    ensure!(since < Duration::from_secs(10), "it began {since:?} before its observation");
    let envelope = decode(&seen.stored)?;
    ensure!(envelope.traceparent.as_deref() == Some(TRACE), "the call's trace is not passed on");
    let wanted = format!("{}/{}/1", call.place, call.id);
    let dedup = seen.stored.header("Nats-Msg-Id");
    ensure!(dedup == Some(wanted.as_str()), "Nats-Msg-Id is {dedup:?}, not {wanted}");
    Ok(())
}

pub(super) async fn partitions(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_echo", json!({ "text": "second" }))?.partition(1).send().await?;
    let seen = call.answered().await?;
    ensure!(seen.observation.code.is_none(), "{:?}", seen.observation);
    Ok(())
}

pub(super) async fn unknown_fields(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_echo", json!({ "text": "new" }))?;
    let call = call.body("of_tomorrow", json!({ "a": [1] })).envelope("of_tomorrow", json!(true));
    let call = call.envelope("v", json!(99)).send().await?;
    let seen = call.answered().await?;
    ensure!(seen.observation.code.is_none(), "{:?}", seen.observation);
    Ok(())
}

pub(super) async fn too_new(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_append", json!({ "line": "too new" }))?;
    let call = call.envelope("min_reader", json!(99)).envelope("v", json!(99)).send().await?;
    handed_back(&call).await?;
    ensure!(stage.lines("append.log", "too new") == 0, "its effect happened");
    Ok(())
}

pub(super) async fn unreadable(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_echo", json!({}))?.send_bytes(b"no record").await?;
    handed_back(&call).await?;
    let why = "not JSON";
    let body = json!({ "kind": "fact", "fact": "parked", "sequence": call.sequence, "why": why });
    call.others(Leaf::Fact, body).await?;
    call.hand_out_again().await?;
    call.acknowledged().await
}

/// Given back for a while, and neither acknowledged nor answered.
async fn handed_back(call: &Call<'_>) -> Result<()> {
    let latest = Instant::now() + PATIENCE;
    loop {
        let words = call.words();
        ensure!(!call.said("+ACK") && !call.said("+TERM"), "it was settled: {words:?}");
        if let Some(delay) = words.iter().find_map(|word| delay(&word.said)) {
            ensure!(delay >= RESTS, "it was given back for {delay:?}: nobody could keep up");
            break;
        }
        ensure!(Instant::now() < latest, "it was not given back");
        sleep(LOOK).await;
    }
    let (seen, starts) = (call.observations().await?.len(), call.starts().await?.len());
    ensure!(seen == 0 && starts == 0, "{seen} observations and {starts} starts");
    Ok(())
}

pub(super) async fn arguments(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_echo", json!({ "text": "a", "times": "many" }))?.send().await?;
    let seen = call.refused(ErrorCode::InvalidArguments).await?;
    let content = &seen.observation.content;
    ensure!(content.contains("times"), "the field `times` is not named: {content}");
    let call = stage.call("cf_echo", json!({ "text": "a", "tmies": 2 }))?.send().await?;
    let seen = call.refused(ErrorCode::InvalidArguments).await?;
    let content = &seen.observation.content;
    ensure!(content.contains("tmies"), "the field `tmies` is not named: {content}");
    Ok(())
}

pub(super) async fn arguments_barred(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_append", json!({ "line": 7 }))?.send().await?;
    call.refused(ErrorCode::InvalidArguments).await?;
    ensure!(stage.lines("append.log", "7") == 0, "its effect happened");
    Ok(())
}

pub(super) async fn fingerprint(stage: &Stage) -> Result<()> {
    for (tool, arguments) in
        [("cf_echo", json!({ "text": "a" })), ("cf_append", json!({ "line": "old version" }))]
    {
        let call = stage.call(tool, arguments)?.body("fingerprint", json!("0".repeat(64)));
        call.send().await?.refused(ErrorCode::VersionMismatch).await?;
    }
    ensure!(stage.lines("append.log", "old version") == 0, "its effect happened");
    Ok(())
}

pub(super) async fn start_by(stage: &Stage) -> Result<()> {
    for (tool, arguments) in
        [("cf_echo", json!({ "text": "a" })), ("cf_append", json!({ "line": "too late" }))]
    {
        let call = stage.call(tool, arguments)?.times(-1000, 20_000).send().await?;
        call.refused(ErrorCode::Unavailable).await?;
    }
    ensure!(stage.lines("append.log", "too late") == 0, "its effect happened");
    Ok(())
}

pub(super) async fn already_answered(stage: &Stage) -> Result<()> {
    let body = |call: &Call<'_>| {
        let id = &call.id;
        json!({ "kind": "observation", "tool_call_id": id, "attempt": 1, "content": "by another" })
    };
    let alone = beside(stage, Leaf::Observation, &body).await?;
    ensure!(alone, "it was answered again");
    ensure!(stage.lines("append.log", "answered") == 0, "its effect happened");
    Ok(())
}

pub(super) async fn already_closed(stage: &Stage) -> Result<()> {
    let body = |call: &Call<'_>| {
        let observation = json!({
            "tool_call_id": call.id, "attempt": 0, "code": "timed_out", "content": "closed",
        });
        json!({ "kind": "fact", "fact": "call_closed", "observation": observation })
    };
    let alone = beside(stage, Leaf::Fact, &body).await?;
    ensure!(alone, "it was answered all the same");
    ensure!(stage.lines("append.log", "answered") == 0, "its effect happened");
    Ok(())
}

/// A late call with a record right behind it: whether the worker added nothing to them. The record is
/// there before the worker can have read the call and looked; a machine that stood still in between
/// is given two more tries.
async fn beside(
    stage: &Stage,
    leaf: Leaf,
    body: &(dyn Fn(&Call<'_>) -> Value + Sync),
) -> Result<bool> {
    for _ in 0..3 {
        let call = stage.call("cf_append", json!({ "line": "answered" }))?.times(-1000, 20_000);
        let word = body(&call);
        let others = usize::from(leaf == Leaf::Observation);
        let call = call.send_with(leaf.clone(), word).await?;
        call.acknowledged().await?;
        sleep(Duration::from_millis(400)).await;
        if call.observations().await?.len() == others && call.starts().await?.is_empty() {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) async fn artifact(stage: &Stage) -> Result<()> {
    let bytes = 200_000_usize;
    let call = stage.call("cf_big", json!({ "bytes": bytes }))?.send().await?;
    let seen = call.answered().await?;
    let found = &seen.observation;
    ensure!(found.code.is_none(), "{:?}", found.code);
    let budget = usize::try_from(stage.contract("cf_big")?.result_tokens)?.saturating_mul(4);
    let length = found.content.len();
    ensure!(length < budget.saturating_add(400), "{length} bytes for a budget of {budget}");
    ensure!(found.content.starts_with("0123456789"), "it does not begin as the result does");
    ensure!(found.content.contains("left out"), "it does not say that something is left out");
    let Some(artifact) = &found.artifact else { bail!("no artifact is named") };
    ensure!(artifact.bytes == u64::try_from(bytes)?, "the artifact has {} bytes", artifact.bytes);
    let name = format!("{}/{}/{}", call.place.tenant, call.place.thread, artifact.id);
    let stored = stage.bus.artifact(&name).await?;
    ensure!(stored == "0123456789".repeat(bytes / 10).as_bytes(), "the artifact differs");
    ensure!(artifact_id(&stored) == artifact.id, "its id is not its hash");
    Ok(())
}

pub(super) async fn frozen(stage: &Stage) -> Result<()> {
    let now = stage.bus.now().await?;
    stage
        .bus
        .freeze(&json!([
            { "target": { "kind": "tenant", "name": "cold" }, "reason": "incident 7", "by": "ann", "at": now },
            { "target": { "kind": "tool", "name": "another" }, "reason": "", "by": "", "at": now, "new": 1 },
        ]))
        .await?;
    let irreversible = stage.call("cf_append", json!({ "line": "frozen" }))?.tenant("cold")?;
    let seen = irreversible.send().await?.refused(ErrorCode::Frozen).await?;
    let content = &seen.observation.content;
    ensure!(content.contains("incident 7"), "the reason is not told: {content}");
    ensure!(stage.lines("append.log", "frozen") == 0, "its effect happened");
    let reading = stage.call("cf_echo", json!({ "text": "warm" }))?.tenant("cold")?.send().await?;
    let seen = reading.answered().await?;
    ensure!(seen.observation.code.is_none(), "a call that changes nothing was held back");
    // Another tenant's is not held back.
    let warm = stage.call("cf_append", json!({ "line": "not frozen" }))?.send().await?;
    let seen = warm.answered().await?;
    ensure!(seen.observation.code.is_none(), "another tenant's call was held back");
    stage.bus.freeze(&json!([])).await
}

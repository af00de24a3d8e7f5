//! Attempts: their limit, their signs of life, their failures, and cancels.

use std::time::Duration;

use anyhow::{Result, ensure};
use proto::error_code::ErrorCode;
use proto::observation::Receipt;
use serde_json::json;
use tokio::time::Instant;

use crate::stage::Stage;
use crate::worker::ACK_WAIT;

pub(super) async fn heartbeat(stage: &Stage) -> Result<()> {
    let ms = 5000;
    let call = stage.call("cf_slow", json!({ "name": "heartbeat", "ms": ms }))?.send().await?;
    let seen = call.answered().await?;
    ensure!(seen.observation.code.is_none(), "{:?}", seen.observation);
    let (lines, handed) = (stage.lines("slow.log", "heartbeat"), call.deliveries().len());
    ensure!((lines, handed) == (1, 1), "run {lines} times after {handed} deliveries");
    let signs: Vec<Instant> =
        call.words().iter().filter(|word| word.said == "+WPI").map(|word| word.at).collect();
    let longest = signs.windows(2).map(|pair| match pair {
        [a, b] => b.duration_since(*a),
        _ => Duration::ZERO,
    });
    let longest = longest.max().unwrap_or(ACK_WAIT);
    ensure!(longest < ACK_WAIT, "{} signs of life, {longest:?} between two", signs.len());
    Ok(())
}

pub(super) async fn again(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_flaky", json!({ "name": "flaky" }))?.send().await?;
    let seen = call.answered().await?;
    let got = (seen.observation.attempt, seen.observation.code, stage.lines("flaky.log", "flaky"));
    ensure!(got == (3, None, 3), "attempt, code, tries are {got:?}");
    Ok(())
}

pub(super) async fn not_again(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_fail", json!({ "name": "fail" }))?.send().await?;
    let seen = call.answered().await?;
    let got = (seen.observation.attempt, seen.observation.code, stage.lines("fail.log", "fail"));
    ensure!(got == (1, Some(ErrorCode::ToolFailed), 1), "attempt, code, tries are {got:?}");
    let content = &seen.observation.content;
    ensure!(content.contains("no such order"), "the reason is not told: {content}");
    Ok(())
}

pub(super) async fn same_key(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_keyed", json!({}))?.send().await?;
    let seen = call.answered().await?;
    ensure!(seen.observation.code.is_none(), "{:?}", seen.observation);
    let tries = stage.lines("keyed.log", &call.key());
    ensure!(tries == 2, "{tries} tries had the key {}", call.key());
    Ok(())
}

pub(super) async fn limit(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_hang", json!({ "name": "hang" }))?.send().await?;
    let seen = call.answered().await?;
    let got = (seen.observation.attempt, seen.observation.code, stage.lines("hang.log", "hang"));
    ensure!(got == (2, Some(ErrorCode::TimedOut), 2), "attempt, code, tries are {got:?}");
    Ok(())
}

pub(super) async fn limit_in_doubt(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_append", json!({ "line": "limit", "ms": 20_000 }))?.send().await?;
    let seen = call.answered().await?;
    let got = (seen.observation.code, seen.observation.receipt);
    ensure!(got == (Some(ErrorCode::InDoubt), Some(Receipt::Unknown)), "code, receipt: {got:?}");
    let lines = stage.lines("append.log", "limit");
    ensure!(lines == 1, "its effect happened {lines} times");
    Ok(())
}

pub(super) async fn crash_in_doubt(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_crash", json!({ "name": "crash" }))?.send().await?;
    let seen = call.answered().await?;
    let got = (seen.observation.code, seen.observation.receipt);
    ensure!(got == (Some(ErrorCode::InDoubt), Some(Receipt::Unknown)), "code, receipt: {got:?}");
    let lines = stage.lines("crash.log", "crash");
    ensure!(lines == 1, "it was run {lines} times");
    Ok(())
}

pub(super) async fn nothing_began(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_refuse", json!({}))?.send().await?;
    let seen = call.answered().await?;
    let got = (seen.observation.code, seen.observation.receipt);
    let wanted = (Some(ErrorCode::ToolNotStarted), Some(Receipt::NeverStarted));
    ensure!(got == wanted, "code and receipt are {got:?}, not {wanted:?}");
    Ok(())
}

pub(super) async fn cancel(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_slow", json!({ "name": "cancel", "ms": 10_000 }))?.send().await?;
    stage.until_lines("slow.log", "cancel", 1).await?;
    let asked = Instant::now();
    call.cancel().await?;
    let seen = call.answered().await?;
    ensure!(asked.elapsed() < Duration::from_secs(4), "stopped after {:?}", asked.elapsed());
    let got = (seen.observation.code, seen.observation.receipt);
    let wanted = (Some(ErrorCode::Cancelled), Some(Receipt::StoppedBeforeEffect));
    ensure!(got == wanted, "code and receipt are {got:?}, not {wanted:?}");
    Ok(())
}

pub(super) async fn cancel_irreversible(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_append", json!({ "line": "cancelled", "ms": 2000 }))?.send().await?;
    stage.until_lines("append.log", "cancelled", 1).await?;
    call.cancel().await?;
    let seen = call.answered().await?;
    let (code, receipt) = (seen.observation.code, seen.observation.receipt);
    let stopped = [Receipt::StoppedAfterEffectBegan, Receipt::Unknown];
    let is_told = match code {
        None => receipt == Some(Receipt::Completed),
        Some(code) => {
            code == ErrorCode::Cancelled && receipt.is_some_and(|got| stopped.contains(&got))
        }
    };
    ensure!(is_told, "its effect is there; code {code:?}, receipt {receipt:?}");
    Ok(())
}

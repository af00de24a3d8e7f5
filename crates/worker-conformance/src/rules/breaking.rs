//! What happens to deliveries, to answers, and to workers.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use proto::error_code::ErrorCode;
use proto::observation::Receipt;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::stage::{LOOK, Stage};

pub(super) async fn twice_at_once(stage: &Stage) -> Result<()> {
    let (ms, line, name) = (1500, "twice", "twice");
    let irreversible = stage.call("cf_append", json!({ "line": line, "ms": ms }))?.send().await?;
    let reading = stage.call("cf_slow", json!({ "name": name, "ms": ms }))?.send().await?;
    stage.until_lines("append.log", line, 1).await?;
    stage.until_lines("slow.log", name, 1).await?;
    irreversible.hand_out_again().await?;
    reading.hand_out_again().await?;
    for call in [&irreversible, &reading] {
        let seen = call.answered().await?;
        ensure!(call.deliveries().len() > 1, "it was not delivered twice");
        ensure!(seen.observation.code.is_none(), "{:?}", seen.observation);
    }
    let got = (stage.lines("append.log", line), stage.lines("slow.log", name));
    ensure!(got == (1, 1), "begun {got:?} times");
    Ok(())
}

/// Deletes the consumer of a tool, whose successor begins ten minutes ago.
async fn forget(stage: &Stage, tool: &str) -> Result<()> {
    let subject = format!("$JS.API.CONSUMER.DELETE.SY_0.tool_{tool}");
    stage.bus.ask(&subject, &json!({})).await.map(drop)
}

pub(super) async fn history(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_append", json!({ "line": "history" }))?.times(1500, 3000);
    let call = call.send().await?;
    let first = call.answered().await?;
    let handed = call.deliveries().len();
    forget(stage, "cf_append").await?;
    let latest = Instant::now() + Duration::from_secs(20);
    while call.deliveries().len() <= handed {
        ensure!(Instant::now() < latest, "the history was not delivered again");
        sleep(LOOK).await;
    }
    let settled = |count: usize| call.words().iter().filter(|w| w.said == "+ACK").count() > count;
    while !settled(1) {
        ensure!(Instant::now() < latest, "its second delivery was never acknowledged");
        sleep(LOOK).await;
    }
    let lines = stage.lines("append.log", "history");
    ensure!(lines == 1, "its effect happened {lines} times");
    for other in call.observations().await? {
        let same = other.observation == first.observation;
        ensure!(same, "it was answered otherwise: {:?}", other.observation);
    }
    Ok(())
}

pub(super) async fn recreated(stage: &Stage) -> Result<()> {
    forget(stage, "cf_echo").await?;
    let call = stage.call("cf_echo", json!({ "text": "after" }))?.send().await?;
    let seen = call.observed().await?;
    ensure!(seen.observation.code.is_none(), "{:?}", seen.observation);
    Ok(())
}

pub(super) async fn secrets(stage: &Stage) -> Result<()> {
    let argument = "canary-argument-71c4";
    let call = stage.call("cf_echo", json!({ "text": argument }))?.send().await?;
    call.observed().await?;
    let call = stage.call("cf_echo", json!({ "text": argument, "times": "x" }))?.send().await?;
    call.observed().await?;
    let log = stage.log();
    for canary in [argument, crate::server::PASSWORD] {
        let line = log.lines().find(|line| line.contains(canary));
        ensure!(line.is_none(), "it prints: {}", line.unwrap_or_default());
    }
    Ok(())
}

pub(super) async fn death_irreversible(stage: &Stage) -> Result<()> {
    let line = "death";
    let call = stage.call("cf_append", json!({ "line": line, "ms": 2000 }))?.times(1000, 9000);
    let call = call.send().await?;
    stage.until_lines("append.log", line, 1).await?;
    kill_first(stage).await?;
    stage.start_worker().await?;
    let seen = call.answered().await?;
    let got = (seen.observation.code, seen.observation.receipt);
    ensure!(got == (Some(ErrorCode::InDoubt), Some(Receipt::Unknown)), "code, receipt: {got:?}");
    let dead = &stage.offer()?.worker;
    let content = &seen.observation.content;
    ensure!(content.contains(dead.as_str()), "the dead worker is not named: {content}");
    let lines = stage.lines("append.log", line);
    ensure!(lines == 1, "its effect happened {lines} times");
    let starts = call.starts().await?.len();
    ensure!(starts == 1, "{starts} start records");
    Ok(())
}

async fn kill_first(stage: &Stage) -> Result<()> {
    let mut processes = stage.processes.lock().await;
    processes.first_mut().context("no worker")?.kill().await
}

pub(super) async fn death_read_only(stage: &Stage) -> Result<()> {
    let call = stage.call("cf_slow", json!({ "name": "death", "ms": 1500 }))?.send().await?;
    stage.until_lines("slow.log", "death", 1).await?;
    kill_first(stage).await?;
    stage.start_worker().await?;
    let seen = call.answered().await?;
    ensure!(seen.observation.code.is_none(), "{:?}", seen.observation);
    let runs = stage.lines("slow.log", "death");
    ensure!(runs == 2, "it was run {runs} times");
    Ok(())
}

pub(super) async fn drains(stage: &Stage) -> Result<()> {
    let worker = stage.offer()?.worker.clone();
    let call = stage.call("cf_slow", json!({ "name": "drain", "ms": 2000 }))?.send().await?;
    stage.until_lines("slow.log", "drain", 1).await?;
    let mut processes = stage.processes.lock().await;
    let process = processes.first_mut().context("no worker")?;
    process.terminate()?;
    // A pull that was open at that moment may still bring one call; it is given back.
    sleep(Duration::from_millis(2500)).await;
    let later = stage.call("cf_echo", json!({ "text": "later" }))?.send().await?;
    let seen = call.answered().await?;
    ensure!(seen.observation.code.is_none(), "{:?}", seen.observation);
    let status = process.ended().await?;
    ensure!(status.success(), "it ended with {status}");
    let offers = stage.bus.offers().await?;
    let is_withdrawn = offers.iter().all(|(_, offer)| offer.worker != worker);
    ensure!(is_withdrawn, "its tools are still on offer");
    let taken = later.observations().await?.len();
    ensure!(taken == 0, "it took a call that came after the signal");
    Ok(())
}

/// The server is stopped and started again while calls are under way.
pub(super) async fn restarted(stage: &Stage) -> Result<()> {
    let line = "restart";
    let irreversible = stage.call("cf_append", json!({ "line": line, "ms": 1500 }))?.send().await?;
    let reading = stage.call("cf_slow", json!({ "name": line, "ms": 1500 }))?.send().await?;
    stage.until_lines("append.log", line, 1).await?;
    stage.until_lines("slow.log", line, 1).await?;
    stage.server.restart().await?;
    let latest = Instant::now() + Duration::from_secs(20);
    while let Err(error) = stage.bus.now().await {
        ensure!(Instant::now() < latest, "the server does not come back: {error:#}");
        sleep(LOOK).await;
    }
    for call in [&irreversible, &reading] {
        let seen = call.observed().await?;
        ensure!(seen.observation.code.is_none(), "{:?}", seen.observation);
    }
    let lines = stage.lines("append.log", line);
    ensure!(lines == 1, "its effect happened {lines} times");
    let later = stage.call("cf_echo", json!({ "text": "later" }))?.send().await?;
    let seen = later.answered().await?;
    ensure!(seen.observation.code.is_none(), "{:?}", seen.observation);
    Ok(())
}

pub(super) async fn answer_lost(stage: &Stage) -> Result<()> {
    let proxy = crate::proxy::Proxy::open(stage.server.port).await?;
    let work = async {
        stage.begin_over(proxy.port).await?;
        let call = stage.call("cf_append", json!({ "line": "lost" }))?.send().await?;
        let seen = call.answered().await?;
        ensure!(proxy.dropped() > 0, "the worker wrote no start record over this connection");
        // A worker that took too long to be sure must not begin, and says so.
        let effects = match (seen.observation.code, seen.observation.receipt) {
            (None, None) => 1,
            (Some(ErrorCode::Unavailable), Some(Receipt::StoppedBeforeEffect)) => 0,
            other => bail!("code and receipt are {other:?}"),
        };
        let got = (stage.lines("append.log", "lost"), call.starts().await?.len());
        ensure!(got == (effects, 1), "effects and start records are {got:?}");
        Ok(())
    };
    tokio::select! {
        biased;
        done = work => done,
        () = proxy.run() => bail!("the proxy ended"),
    }
}

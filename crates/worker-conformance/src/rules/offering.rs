//! What a worker offers, and what its calls wait in.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::bus::OFFER_TTL;
use crate::stage::{LOOK, Stage};
use crate::tools::TOOLS;
use crate::worker::ACK_WAIT;

pub(super) async fn contracts(stage: &Stage) -> Result<()> {
    let offers = stage.bus.offers().await?;
    let (entry, offer) = offers.first().context("no offer")?;
    let key = format!("$KV.SY_TOOLS.{}", offer.worker);
    ensure!(entry.subject == key, "the offer lies at {}, not at {key}", entry.subject);
    for expected in &TOOLS {
        let contract = stage.contract(expected.name)?;
        let got = (contract.effect, contract.timeout_ms, contract.retry.max_attempts);
        let wanted = (expected.effect, expected.timeout_ms, expected.max_attempts);
        ensure!(got == wanted, "{}: {got:?}, not {wanted:?}", expected.name);
        let is_object = contract.parameters.get("type") == Some(&json!("object"));
        ensure!(is_object, "{}: its parameters are no object schema", expected.name);
        ensure!(!contract.description.is_empty(), "{}: no description", expected.name);
    }
    let mut prints: Vec<_> = offer.tools.iter().map(|tool| &tool.fingerprint).collect();
    prints.sort();
    prints.dedup();
    ensure!(prints.len() == offer.tools.len(), "two tools have the same fingerprint");
    Ok(())
}

pub(super) async fn renewed(stage: &Stage) -> Result<()> {
    let worker = stage.offer()?.worker.clone();
    let mut first = None;
    let latest = Instant::now() + Duration::from_secs(OFFER_TTL / 2);
    loop {
        let offers = stage.bus.offers().await?;
        let mine = offers.iter().find(|(_, offer)| offer.worker == worker);
        let place = mine.context("the offer is gone")?.0.sequence;
        if place > *first.get_or_insert(place) {
            return Ok(());
        }
        ensure!(Instant::now() < latest, "not renewed within {} s", OFFER_TTL / 2);
        sleep(LOOK).await;
    }
}

pub(super) async fn consumer(stage: &Stage) -> Result<()> {
    let ask = "$JS.API.CONSUMER.INFO.SY_0.tool_cf_echo";
    let latest = Instant::now() + Duration::from_secs(10);
    let info = loop {
        match stage.bus.ask(ask, &json!({})).await {
            Ok(info) => break info,
            Err(error) if Instant::now() > latest => return Err(error),
            Err(_) => sleep(LOOK).await,
        }
    };
    let config = info.get("config").context("no configuration")?;
    let filter = "sy.0.*.*.plan.tool_call.cf_echo";
    let filters = [config.get("filter_subject"), config.pointer("/filter_subjects/0")];
    let is_filtered = filters.iter().flatten().any(|found| **found == json!(filter));
    ensure!(is_filtered, "it does not filter {filter}: {config}");
    let nanos = u64::try_from(ACK_WAIT.as_nanos())?;
    let wanted = [
        ("durable_name", json!("tool_cf_echo")),
        ("ack_policy", json!("explicit")),
        ("ack_wait", json!(nanos)),
        ("deliver_policy", json!("by_start_time")),
    ];
    for (name, value) in wanted {
        ensure!(config.get(name) == Some(&value), "{name} is not {value}: {config}");
    }
    let deliveries = config.get("max_deliver").and_then(Value::as_i64);
    ensure!(deliveries.is_none_or(|most| most < 1), "deliveries are limited: {config}");
    let pending = config.get("max_ack_pending").and_then(Value::as_u64).unwrap_or(0);
    ensure!(pending >= 100_000, "max_ack_pending of {pending} would hold a fleet back");
    let since = config.get("opt_start_time").and_then(Value::as_str).context("no start")?;
    let since: jiff::Timestamp = since.parse()?;
    let age = stage.bus.now().await?.0.saturating_sub(since.as_millisecond()) / 1000;
    ensure!((540..720).contains(&age), "it begins {age} s ago, not ten minutes");
    Ok(())
}

//! What servers say of themselves and of a deployment on them. Nothing is created or changed.

use std::time::Duration;

use ports::BusError;
use ports::deployment::{
    BusFacts, Holds, LogFacts, LogSettings, QueueFacts, ServerFacts, Sync as Synced,
};
use proto::ids::Partition;
use proto::time::Timestamp;
use serde_json::{Value, json};

use crate::api::{ApiError, NO_STREAM, ask};
use crate::connect::{NatsBus, is_off};
use crate::layout::{ARTIFACTS_BUCKET, FREEZES_BUCKET, stream_name};
use crate::reads;
use crate::refusal::ConnectError;
use crate::settings::Settings;

/// Pages of consumers that are read at most; a page has 256.
const MOST_PAGES: usize = 64;

/// Asks a bus what it is.
pub async fn inspect(settings: Settings) -> Result<BusFacts, ConnectError> {
    let bus = NatsBus::reach(settings).await?;
    let info = bus.client.server_info();
    let mut facts = BusFacts {
        major_minor: major_minor(&info.version),
        version: info.version,
        server: info.server_name,
        max_message_bytes: u64::try_from(info.max_payload).unwrap_or(u64::MAX),
        keeps_nothing: why_off(&bus).await,
        ..BusFacts::default()
    };
    if facts.keeps_nothing.is_some() {
        return Ok(facts);
    }
    let partitions = (0..bus.settings.partitions).map(|part| stream_name(Partition(part)));
    let records = partitions.map(|name| (name, Holds::Records));
    let artifacts = (format!("OBJ_{ARTIFACTS_BUCKET}"), Holds::Artifacts);
    let freezes = (format!("KV_{FREEZES_BUCKET}"), Holds::Freezes);
    for (name, holds) in records.chain([artifacts, freezes]) {
        let Some((mut kept, time)) = log(&bus, &name).await? else {
            facts.logs.push(LogFacts { name, holds, kept: None });
            continue;
        };
        if holds == Holds::Records {
            facts.queues.extend(queues(&bus, &name).await?);
        }
        if holds == Holds::Freezes {
            // Of each name the newest word counts, which is all that a bucket keeps.
            kept.limits.retain(|limit| !limit.starts_with("max_msgs_per_subject"));
        }
        facts.time = time.or(facts.time);
        facts.logs.push(LogFacts { name, holds, kept: Some(kept) });
    }
    Ok(facts)
}

async fn why_off(bus: &NatsBus) -> Option<String> {
    match ask(bus, "$JS.API.INFO".to_owned(), &json!({})).await {
        Ok(Ok(_)) => None,
        Ok(Err(error)) if is_off(&error) => Some(error.description),
        Ok(Err(error)) => Some(error.into_bus().to_string()),
        Err(error) => Some(BusError::from(error).to_string()),
    }
}

async fn log(
    bus: &NatsBus,
    name: &str,
) -> Result<Option<(LogSettings, Option<Timestamp>)>, BusError> {
    match ask(bus, format!("$JS.API.STREAM.INFO.{name}"), &json!({})).await? {
        Ok(info) => {
            let time = info.get("ts").and_then(Value::as_str).and_then(reads::timestamp);
            Ok(Some((log_settings(&info), time)))
        }
        Err(error) if error.err_code == NO_STREAM => Ok(None),
        Err(error) => Err(error.into_bus()),
    }
}

fn log_settings(info: &Value) -> LogSettings {
    let config = info.get("config").unwrap_or(&Value::Null);
    let is = |field: &str, value: &str| config.get(field).and_then(Value::as_str) == Some(value);
    let limits = ["max_msgs", "max_bytes", "max_age", "max_msgs_per_subject"];
    let set = limits.iter().filter_map(|name| {
        let value = config.get(*name).and_then(Value::as_i64).filter(|value| *value > 0)?;
        Some(format!("{name} {value}"))
    });
    let leader = info.pointer("/cluster/leader").and_then(Value::as_str);
    let replicas = info.pointer("/cluster/replicas").and_then(Value::as_array);
    let others = replicas.into_iter().flatten().filter_map(|peer| peer.get("name")?.as_str());
    let copies = config.get("num_replicas").and_then(Value::as_u64).unwrap_or(1);
    LogSettings {
        on_disk: is("storage", "file"),
        copies: usize::try_from(copies).unwrap_or(usize::MAX),
        keepers: leader.into_iter().chain(others).map(str::to_owned).collect(),
        limits: set.collect(),
        by_limits: is("retention", "limits"),
        schedules: config.get("allow_msg_schedules").and_then(Value::as_bool).unwrap_or(false),
    }
}

/// All queues of a log, page by page.
async fn queues(bus: &NatsBus, log: &str) -> Result<Vec<QueueFacts>, BusError> {
    let mut found = Vec::new();
    for _ in 0..MOST_PAGES {
        let query = json!({ "offset": found.len() });
        let answer = ask(bus, format!("$JS.API.CONSUMER.LIST.{log}"), &query).await?;
        let page = answer.map_err(ApiError::into_bus)?;
        let all = page.get("consumers").and_then(Value::as_array);
        let count = all.map_or(0, Vec::len);
        found.extend(all.into_iter().flatten().map(|info| queue(log, info)));
        let total = page.get("total").and_then(Value::as_u64).unwrap_or(0);
        if count == 0 || u64::try_from(found.len()).unwrap_or(u64::MAX) >= total {
            break;
        }
    }
    Ok(found)
}

fn queue(log: &str, info: &Value) -> QueueFacts {
    let config = info.get("config").unwrap_or(&Value::Null);
    let limit = |name: &str| {
        let value = config.get(name).and_then(Value::as_i64)?;
        u64::try_from(value).ok().filter(|value| *value > 0)
    };
    QueueFacts {
        log: log.to_owned(),
        name: info.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        most_held: limit("max_ack_pending"),
        ack_wait: Duration::from_nanos(limit("ack_wait").unwrap_or(0)),
        most_deliveries: limit("max_deliver"),
        deleted_after: limit("inactive_threshold").map(Duration::from_nanos),
        acknowledged: config.get("ack_policy").and_then(Value::as_str) == Some("explicit"),
        paused: info.get("paused").and_then(Value::as_bool).unwrap_or(false),
    }
}

/// What the monitoring port of one server says under `/varz`; `None` if it is something else.
pub fn server(varz: &Value) -> Option<ServerFacts> {
    let text = |pointer: &str| varz.pointer(pointer).and_then(Value::as_str);
    let number = |pointer: &str| varz.pointer(pointer).and_then(Value::as_u64);
    text("/server_id")?;
    let always = varz.pointer("/jetstream/config/sync_always").and_then(Value::as_bool);
    let every = number("/jetstream/config/sync_interval");
    Some(ServerFacts {
        name: text("/server_name")?.to_owned(),
        sync: match (always, every) {
            (Some(true), _) => Some(Synced::Always),
            (_, Some(nanos)) => Some(Synced::Every(Duration::from_nanos(nanos))),
            (_, None) => None,
        },
        most_bytes: number("/jetstream/config/max_storage").unwrap_or(0),
        used_bytes: number("/jetstream/stats/storage").unwrap_or(0),
        folder: text("/jetstream/config/store_dir").unwrap_or_default().to_owned(),
    })
}

fn major_minor(version: &str) -> (u32, u32) {
    let mut parts =
        version.trim_start_matches('v').split('.').map(|part| part.parse().unwrap_or(0));
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monitoring_port_is_read() {
        let varz = json!({
            "server_id": "N1", "server_name": "one",
            "jetstream": {
                "config": { "max_storage": 7, "store_dir": "/s", "sync_interval": 120_000_000_000_u64 },
                "stats": { "storage": 3 },
            },
        });
        let expected = ServerFacts {
            name: "one".to_owned(),
            sync: Some(Synced::Every(Duration::from_mins(2))),
            most_bytes: 7,
            used_bytes: 3,
            folder: "/s".to_owned(),
        };
        assert_eq!(server(&varz), Some(expected));
        let mut always = varz;
        always["jetstream"]["config"]["sync_always"] = json!(true);
        assert_eq!(server(&always).unwrap().sync, Some(Synced::Always));
        let off = json!({ "server_id": "N1", "server_name": "one" });
        assert_eq!(server(&off).unwrap().sync, None);
        assert_eq!(server(&json!({ "status": "ok" })), None);
    }

    #[test]
    fn limits_and_keepers_of_a_log_are_read() {
        let info = json!({
            "config": {
                "storage": "file", "retention": "limits", "num_replicas": 3, "max_msgs": -1,
                "max_bytes": 1024, "max_age": 0, "allow_msg_schedules": true,
            },
            "cluster": { "leader": "b", "replicas": [{ "name": "a" }, { "name": "c" }] },
        });
        let expected = LogSettings {
            on_disk: true,
            copies: 3,
            keepers: ["b", "a", "c"].map(str::to_owned).to_vec(),
            limits: vec!["max_bytes 1024".to_owned()],
            by_limits: true,
            schedules: true,
        };
        assert_eq!(log_settings(&info), expected);
    }

    #[test]
    fn a_queue_without_limits_has_none() {
        let info = json!({
            "name": "planner_in",
            "config": {
                "ack_policy": "explicit", "ack_wait": 6_000_000_000_u64, "max_deliver": -1,
                "max_ack_pending": 1000,
            },
        });
        let queue = queue("SY_0", &info);
        assert_eq!((queue.most_held, queue.most_deliveries), (Some(1000), None));
        assert_eq!((queue.ack_wait, queue.deleted_after), (Duration::from_secs(6), None));
        assert!(queue.acknowledged && !queue.paused);
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(major_minor("2.15.1"), (2, 15));
        assert_eq!(major_minor("v2.9.0-beta"), (2, 9));
        assert_eq!(major_minor("other"), (0, 0));
    }
}

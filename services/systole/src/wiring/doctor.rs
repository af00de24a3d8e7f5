//! Facts for `doctor`, from the technologies that know them. Nothing is created or changed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bus_sqlite::{Durability, read_only};
use ports::deployment::{BusFacts, MemoryFacts, ServerFacts};
use rustix::fs::statfs;
use serde_json::Value;
use working_redis::RedisMemory;

use super::clock;
use super::servers::{nats, redis};
use crate::arguments::Common;
use crate::doctor::facts::{
    Deployment, Disk, Embedded, FileSystem, Memory, Monitor, Store, Wanted,
};
use crate::failure::Failure;
use crate::nodes::settings::{BusSettings, DoctorSettings};

/// How long anything is waited for: whoever asks wants to know how it is at this moment.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the servers of a deployment.
pub(crate) async fn deployment(settings: &DoctorSettings) -> Result<Deployment, Failure> {
    let bus_settings =
        BusSettings { wait: settings.bus.wait.min(PATIENCE), ..settings.bus.clone() };
    let bus = bus_nats::inspect::inspect(nats(&bus_settings, "doctor")).await;
    let bus = bus.map_err(|error| error.to_string());
    let ahead_ms = bus.as_ref().ok().and_then(ahead_ms);
    let mut monitors = Vec::new();
    for url in &settings.monitors {
        monitors.push(monitor(url).await?);
    }
    let wanted = Wanted { copies: settings.bus.replicas, ack_wait: settings.bus.ack_wait };
    Ok(Deployment { wanted, bus, monitors, memory: memory(&bus_settings).await, ahead_ms })
}

/// The server told its time a moment ago.
fn ahead_ms(bus: &BusFacts) -> Option<i64> {
    let (theirs, mine) = (bus.time?.0, clock().now().0);
    let ahead = i128::from(theirs).checked_sub(i128::from(mine))?;
    i64::try_from(ahead).ok()
}

async fn monitor(url: &str) -> Result<Monitor, Failure> {
    let client = reqwest::Client::builder().timeout(PATIENCE).no_proxy().build();
    let client = client.map_err(|error| Failure::other("an HTTP client", error))?;
    let server = ask(&client, url).await;
    let folder = server.as_ref().ok().map(|server| PathBuf::from(&server.folder));
    let free = folder.filter(|_| is_here(url)).and_then(|folder| free_bytes(&folder));
    Ok(Monitor { url: url.to_owned(), server, free_bytes: free })
}

async fn ask(client: &reqwest::Client, url: &str) -> Result<ServerFacts, String> {
    let words = |error: reqwest::Error| error.without_url().to_string();
    let answer = client.get(format!("{url}/varz")).send().await.map_err(words)?;
    let varz: Value = answer.json().await.map_err(words)?;
    bus_nats::inspect::server(&varz).ok_or_else(|| "it is not the port of a NATS server".to_owned())
}

/// A disk can be looked at only where it is this machine's.
fn is_here(url: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| rest.starts_with(host))
}

async fn memory(settings: &BusSettings) -> Memory {
    let Some(wanted) = redis(settings) else { return Memory::None };
    let facts = match RedisMemory::inspect(wanted).await {
        Ok(facts) => facts,
        Err(error) => return Memory::Unreachable(error.to_string()),
    };
    let policy = facts.eviction_policy.clone().filter(|policy| policy != "noeviction");
    Memory::There(MemoryFacts {
        too_old: facts.is_too_old(),
        version: format!("{} {}", facts.product, facts.version),
        evicts: policy,
        most_bytes: facts.memory_limit.filter(|bytes| *bytes > 0),
        used_bytes: facts.memory_used,
        on_disk: facts.append_only.unwrap_or(false),
    })
}

/// Looks at the store that the command line names, and at its disk.
pub(crate) fn store(common: &Common) -> Result<Embedded, Failure> {
    let path = &common.store;
    let store = if path.exists() {
        match read_only::inspect(path, Durability::default()) {
            Ok(facts) => Store::There(facts),
            Err(error) => Store::Unreadable(error.to_string()),
        }
    } else {
        Store::Missing
    };
    Ok(Embedded {
        path: path.display().to_string(),
        store,
        disk: disk(path)?,
        most_bytes: common.store_max_bytes,
    })
}

/// The disk of a path, or of the nearest folder above it that is there.
fn disk(path: &Path) -> Result<Disk, Failure> {
    let whole = std::path::absolute(path).map_err(|error| Failure::other("the store", error))?;
    let there = whole.ancestors().find(|place| place.exists()).unwrap_or_else(|| Path::new("/"));
    let about =
        statfs(there).map_err(|error| Failure::other(&there.display().to_string(), error))?;
    let magic = u64::try_from(about.f_type).unwrap_or(0);
    Ok(Disk { free_bytes: room(&about), system: FileSystem::of(magic) })
}

fn free_bytes(folder: &Path) -> Option<u64> {
    statfs(folder).ok().map(|about| room(&about))
}

fn room(about: &rustix::fs::StatFs) -> u64 {
    about.f_bavail.saturating_mul(u64::try_from(about.f_bsize).unwrap_or(0))
}

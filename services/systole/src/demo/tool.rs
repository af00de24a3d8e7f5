//! The commands behind the ops agent's tools.

use std::io::{self, Write};
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use super::control::{Birth, client, get, start, stop};
use super::folder::Folder;
use super::{DIR, bookings};
use crate::arguments::{DemoTool, Scenario};
use crate::failure::{Exit, Failure};
use crate::settings::Environment;
use crate::wiring;

/// Requests of one probe.
const REQUESTS: u32 = 5;

/// Carries out one call.
pub(crate) async fn run(tool: &DemoTool, environment: &Environment) -> Result<Exit, Failure> {
    if let DemoTool::Mcp = tool {
        return bookings::serve();
    }
    let root = environment.text(DIR).ok_or_else(|| Failure::input(format!("{DIR} is not set")))?;
    let folder = Folder::at(PathBuf::from(root));
    match tool {
        DemoTool::Probe => print_json(&probe(&folder).await?),
        DemoTool::Log { lines } => print(&tail(&folder, *lines)?),
        DemoTool::Restart { reason } => {
            tracing::info!(reason, "restart");
            let call = environment.text("SYSTOLE_TOOL_CALL_ID");
            let call = call.unwrap_or_else(|| "by-hand".to_owned());
            print_json(&restart(&folder, &call).await?)
        }
        DemoTool::Mcp => Ok(Exit::Done),
    }
}

fn print(text: &str) -> Result<Exit, Failure> {
    let printed = io::stdout().write_all(text.as_bytes());
    printed.map_err(|error| Failure::other("standard output", error))?;
    Ok(Exit::Done)
}

fn print_json(value: &impl Serialize) -> Result<Exit, Failure> {
    let text = serde_json::to_string(value).map_err(|error| Failure::other("JSON", error))?;
    print(&text)
}

/// How the service is, the most telling field first.
#[derive(Debug, Serialize)]
struct Health {
    healthy: bool,
    status: u16,
    error_rate: f64,
    pid: Value,
    pool: Value,
    uptime_s: Value,
    requests: u32,
}

/// What came of a restart.
#[derive(Debug, Serialize)]
struct Restarted {
    restarted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    pid_before: Option<i32>,
}

async fn probe(folder: &Folder) -> Result<Health, Failure> {
    let client = client().map_err(|error| Failure::other("an HTTP client", error))?;
    let mut errors = 0_u32;
    for _ in 0..REQUESTS {
        let answer = get(&client, folder, "/work").await;
        let is_good = answer.is_some_and(|answer| answer.status == 200);
        errors = errors.saturating_add(u32::from(!is_good));
    }
    let health = get(&client, folder, "/healthz").await;
    let error_rate = f64::from(errors) / f64::from(REQUESTS);
    let status = health.as_ref().map_or(0, |answer| answer.status);
    let body = health.map_or(Value::Null, |answer| answer.body);
    let of = |field: &str| body.get(field).cloned().unwrap_or_default();
    Ok(Health {
        healthy: status == 200 && error_rate < 0.5,
        status,
        error_rate,
        pid: of("pid"),
        pool: of("pool"),
        uptime_s: of("uptime_s"),
        requests: REQUESTS,
    })
}

fn tail(folder: &Folder, lines: usize) -> Result<String, Failure> {
    let path = folder.log();
    let text = std::fs::read_to_string(&path)
        .map_err(|error| Failure::other(&path.display().to_string(), error))?;
    let all: Vec<&str> = text.lines().collect();
    let newest = all.get(all.len().saturating_sub(lines)..).unwrap_or_default();
    Ok(newest.iter().flat_map(|line| [*line, "\n"]).collect())
}

/// The effect is written down before it begins, so that whoever counts sees one that was cut off.
async fn restart(folder: &Folder, call: &str) -> Result<Restarted, Failure> {
    let failed = |error: io::Error| Failure::other("restart", error);
    folder.effect(&format!("restart {call}"), wiring::clock().now()).map_err(failed)?;
    let before = folder.pid();
    if let Some(pid) = before {
        stop(folder, pid).await.map_err(failed)?;
    }
    let birth = match folder.scenario() {
        Some(Scenario::RestartFails) => Birth::Broken,
        Some(Scenario::Failing | Scenario::Healthy) | None => Birth::Sound,
    };
    let (pid, error) = match start(folder, port(folder), birth).await {
        Ok(pid) => (Some(pid), None),
        Err(error) => (None, Some(error)),
    };
    Ok(Restarted { restarted: pid.is_some(), pid, error, pid_before: before })
}

/// The port that the service's callers know.
fn port(folder: &Folder) -> u16 {
    let url = folder.url().unwrap_or_default();
    url.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap_or(0)
}

//! All parts, one after another, in a folder beside the store that is gone afterwards: it is that
//! disk whose speed counts.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::distributed::command as distributed;
use super::early::Early;
use super::floor::Floor;
use super::processes::{ModelProcess, load, part};
use super::report::{Rates, Report};
use super::throughput::Throughput;
use super::{cold, disk, table};
use crate::arguments::{Bench, Measured};
use crate::commands::Context;
use crate::drill::servers::Programs;
use crate::failure::{Exit, Failure};
use crate::wiring;

/// How much is measured.
struct Amount {
    sync: Duration,
    span_ms: u64,
    overhead_runs: usize,
    cold_starts: usize,
    waiting: usize,
    words_per_second: u32,
}

const WHOLE: Amount = Amount {
    sync: Duration::from_secs(1),
    span_ms: 8000,
    overhead_runs: 50,
    cold_starts: 5,
    waiting: 1000,
    words_per_second: 100,
};

const QUICK: Amount = Amount {
    sync: Duration::from_millis(200),
    span_ms: 700,
    overhead_runs: 10,
    cold_starts: 2,
    waiting: 200,
    words_per_second: 500,
};

/// Measures and prints.
pub(crate) async fn bench(context: &Context, asked: &Bench) -> Result<Exit, Failure> {
    is_sound(asked)?;
    let folder = Folder::beside(&context.common.store)?;
    if asked.distributed {
        return over_servers(context, asked, &folder.0).await;
    }
    let model = ModelProcess::start().await?;
    let amount = if asked.quick { QUICK } else { WHOLE };
    let bench = Parts { folder: &folder.0, model: &model, amount: &amount, only: &asked.only };
    let measured = bench.all().await;
    model.stop().await;
    let report = Report { quick: asked.quick, ..measured? };
    print(&report, table::table, asked.json)
}

/// Replies that stream are measured over servers, and nothing else is by itself.
fn is_sound(asked: &Bench) -> Result<(), Failure> {
    let streams = asked.only.contains(&Measured::Streams);
    let others = asked.only.iter().any(|part| *part != Measured::Streams);
    match (asked.distributed, streams, others) {
        (true, _, true) => Err(Failure::input("with --distributed only `streams` stands alone")),
        (false, true, _) => Err(Failure::input("`streams` is measured over servers")
            .and("Add --distributed: systole bench --distributed --only streams")),
        (true, _, false) | (false, false, _) => Ok(()),
    }
}

async fn over_servers(context: &Context, asked: &Bench, folder: &Path) -> Result<Exit, Failure> {
    let programs = Programs::find(&context.environment)?;
    let amount = if asked.quick { distributed::QUICK } else { distributed::WHOLE };
    let bench = distributed::Bench { folder, programs: &programs, amount: &amount };
    if !asked.only.is_empty() {
        let measured = bench.streams().await?;
        let report = super::distributed::report::Streaming { quick: asked.quick, ..measured };
        return print(&report, super::distributed::table::streaming, asked.json);
    }
    let measured = bench.all().await?;
    let report = super::distributed::report::Report { quick: asked.quick, ..measured };
    print(&report, super::distributed::table::table, asked.json)
}

fn print<T: Serialize>(report: &T, table: fn(&T) -> String, json: bool) -> Result<Exit, Failure> {
    let text = if json {
        let json = serde_json::to_string_pretty(report);
        json.map_err(|error| Failure::other("JSON", error))? + "\n"
    } else {
        table(report)
    };
    io::stdout().write_all(text.as_bytes()).map_err(|error| Failure::other("the report", error))?;
    Ok(Exit::Done)
}

struct Parts<'a> {
    folder: &'a Path,
    model: &'a ModelProcess,
    amount: &'a Amount,
    /// The parts that are measured; empty is all of them.
    only: &'a [Measured],
}

impl Parts<'_> {
    fn wants(&self, part: Measured) -> bool {
        self.only.is_empty() || self.only.contains(&part)
    }

    async fn all(&self) -> Result<Report, Failure> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut report = Report { cores, load_before: load(), ..Report::default() };
        if self.wants(Measured::Throughput) {
            report.rates = Some(self.rates().await?.with_ratios());
        }
        if self.wants(Measured::Overhead) {
            say("overhead per turn");
            let runs = self.amount.overhead_runs.to_string();
            report.overhead = Some(self.part("overhead", &["overhead", "--runs", &runs]).await?.0);
        }
        if self.wants(Measured::ColdStart) {
            say("cold starts");
            let starts = self.amount.cold_starts;
            report.cold_start = Some(cold::measure(self.folder, &self.model.client, starts).await?);
        }
        if self.wants(Measured::EarlyDispatch) {
            report.early_dispatch = self.early_dispatch().await?;
        }
        // Last: its requests are still open when it ends.
        if self.wants(Measured::Memory) {
            say("memory");
            let threads = self.amount.waiting.to_string();
            report.memory = Some(self.part("memory", &["memory", "--threads", &threads]).await?.0);
        }
        Ok(report)
    }

    async fn rates(&self) -> Result<Rates, Failure> {
        let span = self.amount.span_ms.to_string();
        say("how often the disk syncs");
        let syncs_per_second = disk::syncs_per_second(self.folder, self.amount.sync)
            .map_err(|error| Failure::other("syncing", error))?;
        say("tool calls with the journal synced");
        let (full, cpu) = self.part("full", &["throughput", "--span-ms", &span]).await?;
        let full = Throughput { model_cpu_seconds: cpu, ..full };
        say("tool calls with the journal not synced");
        let words = ["throughput", "--span-ms", &span, "--unsynced"];
        let (normal, cpu) = self.part("normal", &words).await?;
        let normal = Throughput { model_cpu_seconds: cpu, ..normal };
        say("the floor");
        let (floor, cpu) = self.part("floor", &["floor", "--span-ms", &span]).await?;
        let floor = Floor { model_cpu_seconds: cpu, ..floor };
        Ok(Rates { syncs_per_second, full, normal, floor, ..Rates::default() })
    }

    async fn early_dispatch(&self) -> Result<Vec<Early>, Failure> {
        say("early dispatch");
        let pace = self.amount.words_per_second.to_string();
        let mut measured = Vec::new();
        for mode in ["off", "safe", "all"] {
            let words = ["early", "--early-dispatch", mode, "--pace", &pace];
            measured.push(self.part(mode, &words).await?.0);
        }
        Ok(measured)
    }

    /// One part, with the processor time that the model took meanwhile.
    async fn part<T: serde::de::DeserializeOwned>(
        &self,
        store: &str,
        words: &[&str],
    ) -> Result<(T, f64), Failure> {
        let url = self.model.client.url.as_str();
        let words = words.iter().copied().chain(["--url", url]);
        let words: Vec<String> = words.map(str::to_owned).collect();
        let before = self.model.cpu_seconds();
        let measured = part(&self.folder.join(format!("{store}.db")), &words).await?;
        Ok((measured, self.model.cpu_seconds() - before))
    }
}

/// What is under way, for whoever waits.
pub(crate) fn say(what: &str) {
    // Without anybody to tell, it is measured all the same.
    writeln!(io::stderr(), "bench: {what} …").unwrap_or_default();
}

/// A folder of its own, removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn beside(store: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::other("the bench's folder", error);
        let parent = store.parent().filter(|parent| !parent.as_os_str().is_empty());
        let name = format!("bench-{}", wiring::ids().nonce());
        let path = parent.unwrap_or_else(|| Path::new(".")).join(name);
        std::fs::create_dir_all(&path).map_err(failed)?;
        Ok(Self(path.canonicalize().map_err(failed)?))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, "the bench's folder stays");
        }
    }
}

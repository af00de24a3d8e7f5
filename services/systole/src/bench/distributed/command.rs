//! One measurement after another, each over servers of its own.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;

use super::super::command::say;
use super::super::disk;
use super::super::files::PAUSE;
use super::super::processes::{Helper, ModelProcess, load, part};
use super::super::script::{FAST, TALKING, THINKING, TURNS_WITH_CALLS};
use super::super::statistics::{number, ratio, wide};
use super::deployment::{Deployment, Kept, LARGE, Size};
use super::fleet::Fleet;
use super::report::{Idle, Pair, Report, Scale, Slow, Streaming};
use super::talking::Talking;
use crate::drill::servers::Programs;
use crate::failure::Failure;

/// How much is measured.
pub(crate) struct Amount {
    pub(crate) sync: Duration,
    pub(crate) span_ms: u64,
    pub(crate) threads: &'static [usize],
    pub(crate) synced_partitions: &'static [u16],
    pub(crate) slow_threads: usize,
    pub(crate) scale_threads: usize,
    pub(crate) waiting: usize,
    /// Replies that stream at once, and how many chunks a second each has.
    pub(crate) streams: &'static [usize],
    pub(crate) pace: u32,
    pub(crate) streams_ms: u64,
}

pub(crate) const WHOLE: Amount = Amount {
    sync: Duration::from_secs(1),
    span_ms: 6000,
    threads: &[16, 64, 256],
    synced_partitions: &[1, 4, 8],
    slow_threads: 500,
    scale_threads: 64,
    waiting: 10_000,
    streams: &[1000, 3000],
    pace: 50,
    streams_ms: 10_000,
};

pub(crate) const QUICK: Amount = Amount {
    sync: Duration::from_millis(200),
    span_ms: 500,
    threads: &[16],
    synced_partitions: &[2],
    slow_threads: 32,
    scale_threads: 16,
    waiting: 200,
    streams: &[40],
    pace: 20,
    streams_ms: 1000,
};

/// What a slow model takes for a reply.
const SLOW_MS: u64 = 200;
/// Longer than it takes to begin all runs that wait.
const SILENT_MS: u64 = 110_000;
/// Inputs a second of the runs that wait.
const INPUTS: &str = "500";
/// Planners and workers with the slow model: how much a second one brings.
const STAFFS: [(usize, usize); 2] = [(1, 1), (2, 2)];

/// Small ones, so that their number is the limit and not this machine.
const SMALL: Size = Size { turns: "8", slots: "4", tool: PAUSE };
/// Planners and workers of them.
const SMALL_STAFFS: [(usize, usize); 4] = [(1, 1), (2, 1), (1, 2), (2, 2)];

/// What measures.
pub(crate) struct Bench<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) programs: &'a Programs,
    pub(crate) amount: &'a Amount,
}

impl Bench<'_> {
    /// Everything.
    pub(crate) async fn all(&self) -> Result<Report, Failure> {
        let load_before = load();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let syncs_per_second = disk::syncs_per_second(self.folder, self.amount.sync)
            .map_err(|error| Failure::other("syncing", error))?;
        let mut report = Report { cores, load_before, syncs_per_second, ..Report::default() };
        say("one thread");
        self.unloaded(&mut report).await?;
        report.pairs.push(self.pair(Kept { synced: false, partitions: 1 }).await?);
        for partitions in self.amount.synced_partitions {
            let kept = Kept { synced: true, partitions: *partitions };
            report.pairs.push(self.pair(kept).await?);
        }
        for staff in STAFFS {
            report.slow.push(self.slow(staff).await?);
        }
        for staff in SMALL_STAFFS {
            report.scale.push(self.scale(staff).await?);
        }
        report.idle = self.idle().await?;
        report.talking = self.talking().await?;
        Ok(report)
    }

    /// Replies that stream, and nothing else.
    pub(crate) async fn streams(&self) -> Result<Streaming, Failure> {
        let load_before = load();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Streaming { quick: false, cores, load_before, talking: self.talking().await? })
    }

    async fn talking(&self) -> Result<Vec<Talking>, Failure> {
        let mut measured = Vec::new();
        for streams in self.amount.streams {
            say(&format!("{streams} replies that stream"));
            measured.push(self.talking_of(*streams).await?);
        }
        Ok(measured)
    }

    async fn talking_of(&self, streams: usize) -> Result<Talking, Failure> {
        let Amount { pace, streams_ms, .. } = self.amount;
        let model = ModelProcess::start().await?;
        // Long enough for all to begin, one after another, and to be measured then.
        let seconds = streams.div_ceil(100).saturating_add(15);
        let name = format!("{TALKING}{pace}-{}", wide(seconds).saturating_add(streams_ms / 1000));
        let kept = Kept { synced: false, partitions: 1 };
        let deployment = self.deployment(kept, &name, &model, (1, 1), LARGE).await?;
        let mut processes = deployment.ids().await;
        processes.extend(model.id().map(|id| ("model".to_owned(), id)));
        let numbers = [streams.to_string(), pace.to_string(), streams_ms.to_string()];
        let [threads, pace, span] = &numbers;
        let url = model.client.url.as_str();
        let own =
            ["talking", "--url", url, "--threads", threads, "--pace", pace, "--span-ms", span];
        let weighed = processes.iter().map(|(name, id)| format!("{name}={id}"));
        let weighed: Vec<String> =
            weighed.flat_map(|process| ["--process".to_owned(), process]).collect();
        let measured = self.part(&own, &[deployment.words(), weighed].concat()).await?;
        deployment.stop()?;
        model.stop().await;
        Ok(measured)
    }

    async fn unloaded(&self, report: &mut Report) -> Result<(), Failure> {
        let model = ModelProcess::start().await?;
        let kept = Kept { synced: false, partitions: 1 };
        report.unloaded_floor = self.floor(&model, kept, 1).await?;
        let deployment = self.deployment(kept, FAST, &model, (1, 1), LARGE).await?;
        report.unloaded = self.fleet(&deployment, 1, &["--calls"]).await?;
        deployment.stop()?;
        model.stop().await;
        Ok(())
    }

    async fn pair(&self, kept: Kept) -> Result<Pair, Failure> {
        let how = if kept.synced { "every write synced" } else { "default flush" };
        say(&format!("floor and product, {how}, {} partition(s)", kept.partitions));
        let model = ModelProcess::start().await?;
        let mut pair = Pair { synced: kept.synced, partitions: kept.partitions, ..Pair::default() };
        for threads in self.amount.threads {
            pair.floor.push(self.floor(&model, kept, *threads).await?);
        }
        for threads in self.amount.threads {
            let mut deployment = self.deployment(kept, FAST, &model, (1, 1), LARGE).await?;
            deployment.mark().await;
            let fleet: Fleet = self.fleet(&deployment, *threads, &[]).await?;
            if fleet.calls_per_second > super::report::best(&pair.product) {
                pair.processes = deployment.processes().await;
            }
            pair.product.push(fleet);
            deployment.stop()?;
        }
        model.stop().await;
        Ok(pair.with_ratio())
    }

    async fn slow(&self, staff: (usize, usize)) -> Result<Slow, Failure> {
        say(&format!("a slow model, {} planner(s), {} worker(s)", staff.0, staff.1));
        let model = ModelProcess::start().await?;
        let kept = Kept { synced: false, partitions: 1 };
        let name = format!("{THINKING}{SLOW_MS}");
        let mut deployment = self.deployment(kept, &name, &model, staff, LARGE).await?;
        deployment.mark().await;
        let fleet: Fleet = self.fleet(&deployment, self.amount.slow_threads, &[]).await?;
        let processes = deployment.processes().await;
        let requests = model.client.counts().await?.requests;
        deployment.stop()?;
        model.stop().await;
        let turns = number(TURNS_WITH_CALLS) + 1.0;
        let ideal_ms = turns * u32::try_from(SLOW_MS).map_or(0.0, f64::from);
        let over_ideal_p99_ms = fleet.run_p99_ms - ideal_ms;
        // One run more than those that count goes first.
        let asked_for = number(fleet.runs.saturating_add(1)) * turns;
        let requests_per_turn =
            ratio(u32::try_from(requests).map_or(f64::INFINITY, f64::from), asked_for);
        let (planners, workers) = staff;
        Ok(Slow {
            model_ms: SLOW_MS,
            ideal_ms,
            fleet,
            over_ideal_p99_ms,
            requests_per_turn,
            planners,
            workers,
            processes,
        })
    }

    /// How much more a second planner and a second worker carry, each of them small.
    async fn scale(&self, (planners, workers): (usize, usize)) -> Result<Scale, Failure> {
        say(&format!("small ones: {planners} planner(s), {workers} worker(s)"));
        let model = ModelProcess::start().await?;
        let kept = Kept { synced: false, partitions: 1 };
        let name = format!("{THINKING}{SLOW_MS}");
        let deployment = self.deployment(kept, &name, &model, (planners, workers), SMALL).await?;
        let fleet = self.fleet(&deployment, self.amount.scale_threads, &[]).await?;
        deployment.stop()?;
        model.stop().await;
        Ok(Scale { planners, workers, fleet })
    }

    async fn idle(&self) -> Result<Idle, Failure> {
        say("runs that wait");
        let name = format!("{THINKING}{SILENT_MS}");
        let threads = self.amount.waiting.to_string();
        let model = ModelProcess::start().await?;
        let url = model.client.url.clone();
        let words = ["streams", "--url", &url, "--model", &name, "--threads", &threads];
        let bare = self.part(&words, &[]).await?;
        model.stop().await;
        let model = ModelProcess::start().await?;
        let kept = Kept { synced: false, partitions: 1 };
        let deployment = self.deployment(kept, &name, &model, (1, 1), LARGE).await?;
        let planner_before_mb = deployment.planner_mb();
        let url = model.client.url.clone();
        let words = ["waiting", "--url", &url, "--threads", &threads, "--per-second", INPUTS];
        let waiting = self.part(&words, &deployment.words()).await?;
        let planner_mb = deployment.planner_mb();
        deployment.stop()?;
        model.stop().await;
        let idle = Idle { waiting, planner_before_mb, planner_mb, bare, kb_per_thread: 0.0 };
        Ok(idle.with_difference())
    }

    async fn floor(
        &self,
        model: &ModelProcess,
        kept: Kept,
        threads: usize,
    ) -> Result<super::bare::Floor, Failure> {
        let deployment = Deployment::start(self.programs, self.fresh(), kept).await?;
        let (nats, partitions) = (deployment.nats_url(), kept.partitions.to_string());
        let servers = ["--nats", &nats, "--partitions", &partitions];
        let worker = Helper::start(&[&["bench-part", "bare-worker"], &servers[..]].concat())?;
        let (threads, span) = (threads.to_string(), self.amount.span_ms.to_string());
        let url = model.client.url.as_str();
        let own = ["bare", "--url", url, "--threads", &threads, "--span-ms", &span];
        let measured = self.part(&[&own[..], &servers].concat(), &[]).await;
        worker.stop().await;
        deployment.stop()?;
        measured
    }

    async fn fleet(
        &self,
        deployment: &Deployment,
        threads: usize,
        more: &[&str],
    ) -> Result<Fleet, Failure> {
        let (threads, span) = (threads.to_string(), self.amount.span_ms.to_string());
        let own = ["fleet", "--threads", &threads, "--span-ms", &span];
        self.part(&[&own[..], more].concat(), &deployment.words()).await
    }

    async fn deployment(
        &self,
        kept: Kept,
        model: &str,
        at: &ModelProcess,
        (planners, workers): (usize, usize),
        size: Size,
    ) -> Result<Deployment, Failure> {
        let mut deployment = Deployment::start(self.programs, self.fresh(), kept).await?;
        for _ in 0..workers {
            deployment.worker(size).await?;
        }
        for _ in 0..planners {
            deployment.planner(model, &at.client.url, size).await?;
        }
        Ok(deployment)
    }

    fn fresh(&self) -> PathBuf {
        self.folder.join(crate::wiring::ids().nonce().to_string())
    }

    async fn part<T: DeserializeOwned>(
        &self,
        words: &[&str],
        servers: &[String],
    ) -> Result<T, Failure> {
        let words = words.iter().map(|word| (*word).to_owned());
        let words: Vec<String> = words.chain(servers.iter().cloned()).collect();
        part(&self.folder.join("unused.db"), &words).await
    }
}

//! Servers, planners and workers of one measurement, each a process of its own.

use std::path::{Path, PathBuf};

use super::super::files::{NO_OP, agent};
use super::super::processes::{cpu_seconds, resident_mb};
use super::report::Process;
use crate::drill::servers::{Programs, Server};
use crate::drill::world::{Node, command, write};
use crate::failure::Failure;

/// How much a planner and a worker of the bench may do at once, and with which tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// Model requests that a planner may hold.
    pub(crate) turns: &'static str,
    /// Calls that a worker works on.
    pub(crate) slots: &'static str,
    pub(crate) tool: &'static str,
}

/// As much as comes, of a tool that takes no time.
pub(crate) const LARGE: Size = Size { turns: "16384", slots: "256", tool: NO_OP };

/// How the servers keep what they are given.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// Whether each write is synced before it is answered.
    pub(crate) synced: bool,
    pub(crate) partitions: u16,
}

/// What runs.
pub(crate) struct Deployment {
    folder: PathBuf,
    nats: Server,
    redis: Server,
    kept: Kept,
    planners: Vec<Node>,
    workers: Vec<Node>,
    /// Processor seconds at the last look.
    before: Vec<f64>,
}

impl Deployment {
    /// Starts the servers in `folder`, which must not exist.
    pub(crate) async fn start(
        programs: &Programs,
        folder: PathBuf,
        kept: Kept,
    ) -> Result<Self, Failure> {
        std::fs::create_dir_all(&folder)
            .map_err(|error| Failure::other("the bench's folder", error))?;
        let more = if kept.synced { "sync_interval: always" } else { "" };
        let nats = Server::nats_with(&programs.nats, &folder, more).await?;
        let redis = Server::redis(&programs.redis, &folder).await?;
        let (planners, workers, before) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { folder, nats, redis, kept, planners, workers, before })
    }

    /// How to reach the servers.
    pub(crate) fn words(&self) -> Vec<String> {
        let words = [
            "--nats".to_owned(),
            self.nats_url(),
            "--redis".to_owned(),
            format!("redis://127.0.0.1:{}", self.redis.port),
            "--partitions".to_owned(),
            self.kept.partitions.to_string(),
        ];
        words.into()
    }

    pub(crate) fn nats_url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.nats.port)
    }

    /// Adds a planner whose agent asks `model` at `url`.
    pub(crate) async fn planner(
        &mut self,
        model: &str,
        url: &str,
        size: Size,
    ) -> Result<(), Failure> {
        let text = agent(model, "safe", size.tool);
        write(&self.folder, "agents/bench/agent.yaml", &text)?;
        let own = ["planner", "--agents", "agents", "--base-url", url, "--max-turns", size.turns];
        let node = self.node(&own, "planner.log", &["--listen", "127.0.0.1:0"]).await?;
        self.planners.push(node);
        Ok(())
    }

    /// Adds a worker with the bench's tools.
    pub(crate) async fn worker(&mut self, size: Size) -> Result<(), Failure> {
        let own = ["bench-part", "worker", "--slots", size.slots];
        let node = self.node(&own, "worker.log", &[]).await?;
        self.workers.push(node);
        Ok(())
    }

    async fn node(&self, own: &[&str], log: &str, more: &[&str]) -> Result<Node, Failure> {
        let words = self.words();
        let words: Vec<&str> = own
            .iter()
            .copied()
            .chain(words.iter().map(String::as_str))
            .chain(more.iter().copied())
            .collect();
        let mut node = Node::start(command(&self.folder, &words), &self.folder.join(log)).await?;
        node.until_ready().await?;
        Ok(node)
    }

    /// From now on processor time is counted.
    pub(crate) async fn mark(&mut self) {
        self.before = self.ids().await.iter().map(|(_, id)| cpu_seconds(*id)).collect();
    }

    /// What each process took since the mark, and what it holds.
    pub(crate) async fn processes(&self) -> Vec<Process> {
        let before = self.before.iter().copied().chain(std::iter::repeat(0.0));
        let weighed = self.ids().await.into_iter().zip(before).map(|((name, id), before)| {
            Process { name, cpu_seconds: cpu_seconds(id) - before, resident_mb: resident_mb(id) }
        });
        weighed.collect()
    }

    /// Servers, planners and workers by the ids of their processes.
    pub(crate) async fn ids(&self) -> Vec<(String, u32)> {
        let named = |name: &str, nodes: &[Node]| {
            let ids = nodes.iter().filter_map(Node::id);
            ids.map(|id| (name.to_owned(), id)).collect::<Vec<_>>()
        };
        let servers = [("nats", self.nats.id().await), ("redis", self.redis.id().await)];
        let servers = servers.into_iter().filter_map(|(name, id)| Some((name.to_owned(), id?)));
        let nodes = [named("planner", &self.planners), named("worker", &self.workers)].concat();
        servers.chain(nodes).collect()
    }

    /// Memory of the planners.
    pub(crate) fn planner_mb(&self) -> f64 {
        self.planners.iter().filter_map(Node::id).map(resident_mb).sum()
    }

    /// Ends everything and removes the folder.
    pub(crate) fn stop(self) -> Result<(), Failure> {
        let folder = self.folder.clone();
        drop(self);
        remove(&folder)
    }
}

fn remove(folder: &Path) -> Result<(), Failure> {
    std::fs::remove_dir_all(folder).map_err(|error| Failure::other("the bench's folder", error))
}

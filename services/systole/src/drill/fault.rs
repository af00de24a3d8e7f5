//! Rows that no kill point makes: what happens to servers, clocks and deliveries while planners and
//! workers live.

use std::fmt;
use std::path::PathBuf;

use super::cell::Load;
use super::cells::Role;
use super::late::stopped;
use super::other;
use super::outage::{self, Outage};
use super::replay::replayed;
use super::servers::Programs;
use super::silent::silent;
use super::stage::Outcome;
use super::tail::{Restorer, tail_lost};
use super::twice::twice;
use super::{clocks, cluster, shared};
use crate::failure::Failure;
use crate::nodes::kill::KillPoint as Point;

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Something happens to a server, or to the way to it.
    Outage(Outage),
    /// NATS comes back with an earlier copy of its store: its newest records are lost, and their
    /// numbers are used again. The planner that knew more goes on, or ends while it restores.
    TailLost(Restorer),
    /// Every consumer is deleted while runs are under way, and again after they have ended: the
    /// stream's history is delivered again.
    Replayed,
    /// Every delivery is handed out a second time while the first is being worked on.
    Twice,
    /// A worker stands still past the deadline of its calls and then goes on.
    WorkerStopped,
    /// A worker takes calls, keeps them alive and never answers.
    WorkerSilent,
    /// A worker of another language is killed while its tools are under way. Only where there is one.
    OtherWorkerKilled,
    /// A process's clock is ahead, or behind.
    ClockOff(Role, Clock),
    /// The worker that executes a read which others wait for dies.
    ReadShared(Point),
    /// The worker that takes a resource dies.
    ResourceHeld(Point),
    /// Every process is replaced while people are asked.
    ApprovalsPending,
    /// The server that leads the stream of a cluster of three is killed.
    LeaderKilled,
}

/// Which way a clock is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    Ahead,
    Behind,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outage(outage) => outage.fmt(f),
            Self::TailLost(Restorer::Lives) => f.write_str("nats/tail_lost/orders"),
            Self::TailLost(Restorer::Killed(point)) => {
                write!(f, "planner/{}/killed/tail_lost", point.as_str())
            }
            Self::Replayed => f.write_str("consumers/replayed/orders"),
            Self::Twice => f.write_str("deliveries/twice/orders"),
            Self::OtherWorkerKilled => f.write_str("other_worker/running/killed/bookings"),
            Self::WorkerSilent => f.write_str("worker/silent/orders"),
            Self::WorkerStopped => f.write_str("worker/past_deadline/stopped/bookings"),
            Self::ClockOff(role, Clock::Ahead) => write!(f, "{role}/clock_ahead/orders"),
            Self::ClockOff(role, Clock::Behind) => write!(f, "{role}/clock_behind/orders"),
            Self::ReadShared(point) => write!(f, "worker/{}/killed/reads", point.as_str()),
            Self::ResourceHeld(point) => write!(f, "worker/{}/killed/turns", point.as_str()),
            Self::ApprovalsPending => f.write_str("processes/replaced/approvals"),
            Self::LeaderKilled => f.write_str("cluster/leader_killed/turns"),
        }
    }
}

const ALL: [Fault; 24] = [
    // The slowest first, so that others go on beside it.
    Fault::WorkerStopped,
    Fault::WorkerSilent,
    Fault::LeaderKilled,
    Fault::OtherWorkerKilled,
    Fault::ReadShared(Point::BeforeShared),
    Fault::ReadShared(Point::AfterShared),
    Fault::ResourceHeld(Point::BeforeHold),
    Fault::ResourceHeld(Point::AfterHold),
    Fault::ApprovalsPending,
    Fault::Outage(Outage::NatsKilled),
    Fault::TailLost(Restorer::Lives),
    Fault::TailLost(Restorer::Killed(Point::BeforeRestored)),
    Fault::TailLost(Restorer::Killed(Point::AfterRestored)),
    Fault::Outage(Outage::RedisKilled),
    Fault::Outage(Outage::RedisWiped),
    Fault::Outage(Outage::RedisForgets),
    Fault::Outage(Outage::PlannerCutOff),
    Fault::Outage(Outage::ConsumersDeleted),
    Fault::Replayed,
    Fault::Twice,
    Fault::ClockOff(Role::Planner, Clock::Ahead),
    Fault::ClockOff(Role::Planner, Clock::Behind),
    Fault::ClockOff(Role::Worker, Clock::Ahead),
    Fault::ClockOff(Role::Worker, Clock::Behind),
];

/// All faults, or those whose name holds `only`.
pub(crate) fn all(only: Option<&str>) -> Vec<Fault> {
    let all = ALL.into_iter();
    all.filter(|fault| only.is_none_or(|only| fault.to_string().contains(only))).collect()
}

impl Fault {
    /// The kill point that it comes to, if it is about one.
    pub(crate) fn point(self) -> Option<Point> {
        match self {
            Self::TailLost(Restorer::Killed(point))
            | Self::ReadShared(point)
            | Self::ResourceHeld(point) => Some(point),
            Self::TailLost(Restorer::Lives)
            | Self::Outage(_)
            | Self::Replayed
            | Self::Twice
            | Self::WorkerStopped
            | Self::WorkerSilent
            | Self::OtherWorkerKilled
            | Self::ClockOff(..)
            | Self::ApprovalsPending
            | Self::LeaderKilled => None,
        }
    }
}

/// Runs one in a folder of its own, which is removed afterwards unless it went wrong.
pub(crate) async fn run(
    programs: &Programs,
    fault: Fault,
    load: Load,
    folder: PathBuf,
) -> Result<Outcome, Failure> {
    let name = fault.to_string();
    let (stage, found) = match fault {
        Fault::Outage(outage) => outage::run(programs, outage, load, folder).await?,
        Fault::TailLost(restorer) => tail_lost(programs, restorer, load, folder).await?,
        Fault::Replayed => replayed(programs, load.threads, folder).await?,
        Fault::Twice => twice(programs, load.threads, folder).await?,
        Fault::WorkerStopped => stopped(programs, load.threads, folder).await?,
        Fault::OtherWorkerKilled => other::killed(programs, load, folder).await?,
        Fault::WorkerSilent => silent(programs, load.threads, folder).await?,
        Fault::ClockOff(role, clock) => {
            clocks::off(programs, role, clock, load.threads, folder).await?
        }
        Fault::ReadShared(point) => shared::reads(programs, point, load.threads, folder).await?,
        Fault::ResourceHeld(point) => {
            shared::resource(programs, point, load.threads, folder).await?
        }
        Fault::ApprovalsPending => shared::approvals(programs, load.threads, folder).await?,
        Fault::LeaderKilled => cluster::run(programs, load.turns, folder).await?,
    };
    stage.close(name, found).await
}

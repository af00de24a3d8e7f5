//! Judges the bus: its servers, logs and queues.

use std::time::Duration;

use ports::deployment::{BusFacts, Holds, LogFacts, LogSettings, QueueFacts, ServerFacts, Sync};

use super::facts::{Deployment, Monitor, Wanted};
use super::finding::{Finding, Kind, found};
use super::size;

/// Schedules came with it.
const OLDEST: (u32, u32) = (2, 12);
/// Older ones refuse fences in batches wrongly and stall on a lost tail.
const RECOMMENDED: (u32, u32) = (2, 15);
/// A record carries up to 64 KiB of payload and what names all calls of a turn.
const LEAST_MESSAGE: u64 = 512 * 1024;
/// Fewer held deliveries cap a fleet.
const LEAST_HELD: u64 = 100_000;
/// Deadlines follow the server, so that seconds cost nothing but patience.
const MOST_OFFSET_MS: u64 = 5_000;
/// Above it a store counts as nearly full, in percent.
const NEARLY_FULL: u64 = 80;

/// Everything that is to be said about it.
pub(super) fn judge(deployment: &Deployment) -> Vec<Finding> {
    let bus = match &deployment.bus {
        Ok(bus) => bus,
        Err(why) => return vec![unreachable(why)],
    };
    let mut findings = version(bus);
    if let Some(why) = &bus.keeps_nothing {
        findings.push(found(
            Kind::BusKeepsNothing,
            format!("JetStream is off: {why}."),
            "Nothing is kept at all: no process of a deployment starts.",
            "Enable it for this account: `jetstream { store_dir: …, sync_interval: always }`.",
        ));
        return findings;
    }
    findings.extend(message_limit(bus));
    findings.extend(syncs(bus, &deployment.monitors));
    findings.extend(deployment.monitors.iter().flat_map(room));
    findings.extend(bus.logs.iter().flat_map(|log| judge_log(log, deployment.wanted)));
    findings.extend(bus.queues.iter().flat_map(|queue| judge_queue(queue, deployment.wanted)));
    findings.extend(deployment.ahead_ms.and_then(offset));
    findings
}

fn unreachable(why: &str) -> Finding {
    found(
        Kind::BusUnreachable,
        why,
        "Nothing is known about it, so nothing can be promised.",
        "Start NATS, or correct --nats and the login.",
    )
}

fn version(bus: &BusFacts) -> Vec<Finding> {
    let version = &bus.version;
    if bus.major_minor < OLDEST {
        return vec![found(
            Kind::BusTooOld,
            format!("NATS {version} has no message schedules."),
            "No process of a deployment starts.",
            "Upgrade to NATS 2.12 or newer, 2.15 is recommended; its store stays as it is.",
        )];
    }
    if bus.major_minor < RECOMMENDED {
        return vec![found(
            Kind::BusOld,
            format!("NATS {version} is older than 2.15."),
            "Faults of the server that are repaired since then are yours: consumers that stall after a lost tail, \
             slower syncs.",
            "Upgrade to NATS 2.15 or newer.",
        )];
    }
    Vec::new()
}

fn message_limit(bus: &BusFacts) -> Option<Finding> {
    let limit = bus.max_message_bytes;
    (limit < LEAST_MESSAGE).then(|| {
        found(
            Kind::MessageLimit,
            format!("The server takes messages of at most {}.", size(limit)),
            "A turn with many or large calls does not fit into one record: its run fails.",
            "Set `max_payload: 1MB`, the server's own default, or more.",
        )
    })
}

/// When acknowledged records are on a disk, for each server that keeps some.
fn syncs(bus: &BusFacts, monitors: &[Monitor]) -> Vec<Finding> {
    let mut keepers: Vec<&str> = bus
        .logs
        .iter()
        .filter_map(|log| log.kept.as_ref())
        .flat_map(|kept| kept.keepers.iter().map(String::as_str))
        .collect();
    if keepers.is_empty() {
        keepers.push(&bus.server);
    }
    keepers.sort_unstable();
    keepers.dedup();
    let seen: Vec<&ServerFacts> =
        monitors.iter().filter_map(|monitor| monitor.server.as_ref().ok()).collect();
    let alone = keepers.len() == 1;
    let findings = keepers.into_iter().map(|keeper| {
        let server = seen.iter().find(|server| server.name == keeper);
        match server.and_then(|server| server.sync) {
            Some(Sync::Always) if alone => Some(acks_forgotten(keeper)),
            Some(Sync::Always) => None,
            Some(Sync::Every(interval)) => Some(sync_late(keeper, interval)),
            None => Some(sync_unknown(keeper)),
        }
    });
    let silent = monitors.iter().filter_map(silent);
    findings.flatten().chain(silent).collect()
}

fn sync_late(keeper: &str, interval: Duration) -> Finding {
    found(
        Kind::SyncLate,
        format!(
            "Server {keeper} acknowledges records up to {} s before they are on its disk.",
            interval.as_secs_f64()
        ),
        "A power cut loses the acknowledged records of that time: inputs, calls, observations, and the records that \
         keep irreversible calls from running twice. Copies help only while no two servers lose power together.",
        "Set `sync_interval: always` in the `jetstream` block of that server, and restart it.",
    )
}

fn sync_unknown(keeper: &str) -> Finding {
    found(
        Kind::SyncUnknown,
        format!("Unknown when records of server {keeper} reach its disk; clients are not told."),
        "By default that is up to two minutes after they were acknowledged: a power cut loses them. What is unknown \
         is not durable.",
        "Name the server's monitoring address (`http: 127.0.0.1:8222` in its configuration) with --monitor \
         http://HOST:8222, once per server.",
    )
}

fn acks_forgotten(keeper: &str) -> Finding {
    found(
        Kind::AcksForgotten,
        format!(
            "Server {keeper} keeps records before it acknowledges them, but not what consumers acknowledged."
        ),
        "After a crash of the server the deliveries of its last second come again. That costs time: finished calls \
         are recognised, irreversible ones are not repeated.",
        "Nothing has to be done.",
    )
}

fn silent(monitor: &Monitor) -> Option<Finding> {
    let why = monitor.server.as_ref().err()?;
    Some(found(
        Kind::MonitorUnreachable,
        format!("{} did not tell about its server: {why}.", monitor.url),
        "What only that address tells stays unknown.",
        "Correct --monitor, or enable the port with `http: HOST:8222` in the server's configuration.",
    ))
}

fn room(monitor: &Monitor) -> Vec<Finding> {
    let Ok(server) = &monitor.server else { return Vec::new() };
    let ServerFacts { name, most_bytes, used_bytes, folder, .. } = server;
    let mut findings = Vec::new();
    let percent = used_bytes.saturating_mul(100).checked_div(*most_bytes).unwrap_or(0);
    if percent >= NEARLY_FULL {
        findings.push(found(
            Kind::BusNearlyFull,
            format!("Server {name} keeps {} of at most {}.", size(*used_bytes), size(*most_bytes)),
            "When it is full it refuses: runs pause, nothing that was accepted is lost.",
            "Raise `max_file_store`, add disk, or erase threads.",
        ));
    }
    let left = most_bytes.saturating_sub(*used_bytes);
    if let Some(free) = monitor.free_bytes.filter(|free| *free < left) {
        findings.push(found(
            Kind::BusBeyondDisk,
            format!("Server {name} may still take {} in {folder}, and {} are free there.", size(left), size(free)),
            "The disk is full before the server refuses: writes fail half way, and the server may need a hand to \
             come up again.",
            "Lower `max_file_store` below the room of the disk, or add disk.",
        ));
    }
    findings
}

fn judge_log(log: &LogFacts, wanted: Wanted) -> Vec<Finding> {
    let name = &log.name;
    let Some(kept) = &log.kept else {
        return vec![found(
            Kind::LogMissing,
            format!("There is no stream {name} yet."),
            "How it will be kept is not judged.",
            "Start a planner, worker or gateway, which creates it; then ask again.",
        )];
    };
    let mut findings = Vec::new();
    if !kept.on_disk {
        findings.push(found(
            Kind::LogInMemory,
            format!("Stream {name} lies in memory."),
            "All of it is gone when its servers stop.",
            "Move it away and let a process create it again: storage cannot be changed in place.",
        ));
    }
    if !kept.limits.is_empty() {
        findings.push(limited(log, kept));
    }
    if !kept.by_limits {
        findings.push(found(
            Kind::LogForgets,
            format!("Stream {name} forgets what was read."),
            "Threads cannot be folded again: their records are gone once they were acknowledged.",
            "Move it away and let a process create it again with retention `limits`.",
        ));
    }
    findings.extend(copies(log, kept, wanted));
    if log.holds == Holds::Records && !kept.schedules {
        findings.push(found(
            Kind::NoSchedules,
            format!("Stream {name} takes no message schedules."),
            "No process arms a deadline on it: calls without an answer are not closed in time.",
            "Restart a planner, worker or gateway of this version: it allows them.",
        ));
    }
    findings
}

fn limited(log: &LogFacts, kept: &LogSettings) -> Finding {
    let consequence = match log.holds {
        Holds::Records => {
            "The oldest records are discarded in silence: threads lose their beginning, runs their inputs."
        }
        Holds::Artifacts => {
            "Large results are discarded in silence; a later look at them finds nothing."
        }
        Holds::Freezes => {
            "What operators froze is let go of in silence: irreversible tools start again while all believe them held."
        }
    };
    found(
        Kind::LogLimited,
        format!("Stream {} has a limit: {}.", log.name, kept.limits.join(", ")),
        consequence,
        format!(
            "Remove it: `nats stream edit {} --max-msgs=-1 --max-bytes=-1 --max-age=0 \
             --max-msgs-per-subject=-1`. Bound the disk with the server's `max_file_store`, which refuses.",
            log.name
        ),
    )
}

fn copies(log: &LogFacts, kept: &LogSettings, wanted: Wanted) -> Option<Finding> {
    let (name, copies) = (&log.name, kept.copies);
    if copies != wanted.copies {
        return Some(found(
            Kind::CopiesDiffer,
            format!("Stream {name} has {copies} copies, the settings say {}.", wanted.copies),
            "The next process that starts changes the copies of records to what its settings say.",
            format!("Give every process `replicas: {copies}`, or change the stream."),
        ));
    }
    (copies < 3).then(|| {
        found(
            Kind::OneCopy,
            format!("Stream {name} survives the loss of no server: {copies} of 3 copies."),
            "A disk that breaks takes the records on it along; while the server is away all runs pause.",
            "Run a cluster of three servers and give every process `replicas: 3`.",
        )
    })
}

fn judge_queue(queue: &QueueFacts, wanted: Wanted) -> Vec<Finding> {
    let name = format!("Consumer {} of {}", queue.name, queue.log);
    let edit =
        |change: &str| format!("`nats consumer edit {} {} {change}`.", queue.log, queue.name);
    let mut findings = Vec::new();
    if let Some(times) = queue.most_deliveries {
        findings.push(found(
            Kind::QueueGivesUp,
            format!("{name} gives up after {times} deliveries."),
            "A record that failed so often wakes nobody any more: its run sleeps for ever.",
            edit("--max-deliver=-1"),
        ));
    }
    if !queue.acknowledged {
        findings.push(found(
            Kind::QueueUnacknowledged,
            format!("{name} does not wait for acknowledgements."),
            "What a dead process held is never delivered again.",
            "Delete the consumer; the next process creates it with explicit acknowledgements.",
        ));
    }
    if let Some(most) = queue.most_held.filter(|most| *most < LEAST_HELD) {
        findings.push(found(
            Kind::QueueHeldLimit,
            format!("{name} hands out at most {most} deliveries at once, over all processes."),
            "The next one waits, whatever it is: with so many turns under way nothing else moves, not even cancels.",
            edit("--max-pending=1000000"),
        ));
    }
    if queue.ack_wait != wanted.ack_wait {
        findings.push(found(
            Kind::QueueAckWait,
            format!(
                "{name} waits {} s for a sign of life, the settings say {} s.",
                queue.ack_wait.as_secs_f64(),
                wanted.ack_wait.as_secs_f64()
            ),
            "A dead process is replaced later, or a living one that stalls is replaced too early.",
            edit(&format!("--wait={}s", wanted.ack_wait.as_secs())),
        ));
    }
    if let Some(span) = queue.deleted_after {
        findings.push(found(
            Kind::QueueDeleted,
            format!("{name} is deleted after {} s without a reader.", span.as_secs_f64()),
            "When it is created again its whole history comes again, or calls that waited longer than ten minutes \
             never come.",
            edit("--inactive-threshold=0s"),
        ));
    }
    if queue.paused {
        findings.push(found(
            Kind::QueuePaused,
            format!("{name} is paused."),
            "Nothing is delivered from it until somebody resumes it.",
            format!("`nats consumer resume {} {}`.", queue.log, queue.name),
        ));
    }
    findings
}

fn offset(ahead_ms: i64) -> Option<Finding> {
    let off = ahead_ms.unsigned_abs();
    (off > MOST_OFFSET_MS).then(|| {
        let side = if ahead_ms > 0 { "behind" } else { "ahead of" };
        let seconds = Duration::from_millis(off).as_secs_f64();
        found(
            Kind::ClockOffset,
            format!("The clock of this machine is {seconds} s {side} the server's."),
            "Deadlines follow the server, so runs are right; certificates, logs and what tools see are not.",
            "Let both machines follow the same time, such as with chrony.",
        )
    })
}

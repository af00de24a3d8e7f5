//! From facts to findings: a sound deployment has none worth fixing, and each fault brings its own.

use std::time::Duration;

use ports::deployment::{
    BusFacts, Holds, LogFacts, LogSettings, MemoryFacts, QueueFacts, ServerFacts, StoreFacts, Sync,
};

use super::facts::{Deployment, Disk, Embedded, FileSystem, Memory, Monitor, Store, Wanted};
use super::finding::{Finding, Kind};
use super::{judge, judge_store, report};

const GIB: u64 = 1 << 30;

fn log(name: &str, holds: Holds) -> LogFacts {
    let kept = LogSettings {
        on_disk: true,
        copies: 3,
        keepers: ["a", "b", "c"].map(str::to_owned).to_vec(),
        limits: Vec::new(),
        by_limits: true,
        schedules: holds == Holds::Records,
    };
    LogFacts { name: name.to_owned(), holds, kept: Some(kept) }
}

fn monitor(name: &str) -> Monitor {
    let server = ServerFacts {
        name: name.to_owned(),
        sync: Some(Sync::Always),
        most_bytes: 100 * GIB,
        used_bytes: GIB,
        folder: "/data".to_owned(),
    };
    Monitor { url: format!("http://{name}:8222"), server: Ok(server), free_bytes: Some(200 * GIB) }
}

/// A cluster of three that keeps every promise.
fn sound() -> Deployment {
    let queue = QueueFacts {
        log: "SY_0".to_owned(),
        name: "planner_in".to_owned(),
        most_held: Some(1_000_000),
        ack_wait: Duration::from_secs(6),
        most_deliveries: None,
        deleted_after: None,
        acknowledged: true,
        paused: false,
    };
    let bus = BusFacts {
        version: "2.15.1".to_owned(),
        major_minor: (2, 15),
        server: "a".to_owned(),
        max_message_bytes: 1 << 20,
        keeps_nothing: None,
        logs: vec![
            log("SY_0", Holds::Records),
            log("OBJ_SY_ARTIFACTS", Holds::Artifacts),
            log("KV_SY_FREEZES", Holds::Freezes),
        ],
        queues: vec![queue],
        time: None,
    };
    let memory = MemoryFacts {
        version: "redis 7.2.5".to_owned(),
        most_bytes: Some(GIB),
        used_bytes: Some(1),
        on_disk: true,
        ..MemoryFacts::default()
    };
    Deployment {
        wanted: Wanted { copies: 3, ack_wait: Duration::from_secs(6) },
        bus: Ok(bus),
        monitors: ["a", "b", "c"].map(monitor).to_vec(),
        memory: Memory::There(memory),
        ahead_ms: Some(40),
    }
}

fn kinds(findings: &[Finding]) -> Vec<Kind> {
    findings.iter().map(|finding| finding.kind).collect()
}

/// What is found once `spoil` has changed the sound deployment.
fn spoilt(spoil: impl FnOnce(&mut Deployment)) -> Vec<Kind> {
    let mut deployment = sound();
    spoil(&mut deployment);
    kinds(&judge(&deployment))
}

fn with_bus(spoil: impl FnOnce(&mut BusFacts)) -> Vec<Kind> {
    spoilt(|deployment| spoil(deployment.bus.as_mut().unwrap()))
}

fn with_log(spoil: impl FnOnce(&mut LogSettings)) -> Vec<Kind> {
    with_bus(|bus| spoil(bus.logs[0].kept.as_mut().unwrap()))
}

fn with_queue(spoil: impl FnOnce(&mut QueueFacts)) -> Vec<Kind> {
    with_bus(|bus| spoil(&mut bus.queues[0]))
}

fn with_server(spoil: impl FnOnce(&mut ServerFacts)) -> Vec<Kind> {
    spoilt(|deployment| spoil(deployment.monitors[1].server.as_mut().unwrap()))
}

fn with_memory(spoil: impl FnOnce(&mut MemoryFacts)) -> Vec<Kind> {
    spoilt(|deployment| {
        let Memory::There(memory) = &mut deployment.memory else { panic!("there is one") };
        spoil(memory);
    })
}

#[test]
fn a_sound_cluster_has_no_finding() {
    let findings = judge(&sound());
    assert_eq!(findings, []);
    assert!(report::is_durable(&findings));
}

#[test]
fn a_bus_that_cannot_be_judged_is_not_durable() {
    assert_eq!(spoilt(|all| all.bus = Err("refused".to_owned())), [Kind::BusUnreachable]);
    let off = with_bus(|bus| bus.keeps_nothing = Some("not enabled".to_owned()));
    assert_eq!(off, [Kind::BusKeepsNothing]);
    assert_eq!(with_bus(|bus| bus.major_minor = (2, 11)), [Kind::BusTooOld]);
    assert_eq!(with_bus(|bus| bus.major_minor = (2, 12)), [Kind::BusOld]);
    assert_eq!(with_bus(|bus| bus.max_message_bytes = 65_536), [Kind::MessageLimit]);
}

#[test]
fn a_record_that_reaches_the_disk_later_or_nobody_knows_when_is_not_durable() {
    let late = with_server(|server| server.sync = Some(Sync::Every(Duration::from_mins(2))));
    assert_eq!(late, [Kind::SyncLate]);
    // Two of three servers are known; the third may lose everything.
    assert_eq!(spoilt(|all| drop(all.monitors.pop())), [Kind::SyncUnknown]);
    let silent = spoilt(|all| all.monitors[2].server = Err("refused".to_owned()));
    assert_eq!(silent, [Kind::SyncUnknown, Kind::MonitorUnreachable]);
    // The address of a server that keeps none of the records says nothing about those that do.
    let other = with_server(|server| server.name = "z".to_owned());
    assert_eq!(other, [Kind::SyncUnknown]);
}

#[test]
fn one_server_that_syncs_is_durable_and_says_what_is_left() {
    let findings = spoilt(|all| {
        all.wanted.copies = 1;
        all.monitors.truncate(1);
        for log in &mut all.bus.as_mut().unwrap().logs {
            let kept = log.kept.as_mut().unwrap();
            (kept.copies, kept.keepers) = (1, Vec::new());
        }
    });
    let log = Kind::OneCopy;
    assert_eq!(findings, [log, log, log, Kind::AcksForgotten], "records, artifacts, freezes");
}

#[test]
fn room_is_judged_by_what_the_server_may_take() {
    assert_eq!(with_server(|server| server.used_bytes = 80 * GIB), [Kind::BusNearlyFull]);
    let short = spoilt(|all| all.monitors[0].free_bytes = Some(98 * GIB));
    assert_eq!(short, [Kind::BusBeyondDisk]);
    assert_eq!(spoilt(|all| all.monitors[0].free_bytes = None), []);
}

#[test]
fn a_log_that_forgets_is_named() {
    assert_eq!(with_log(|log| log.on_disk = false), [Kind::LogInMemory]);
    assert_eq!(with_log(|log| log.limits.push("max_age 1".to_owned())), [Kind::LogLimited]);
    assert_eq!(with_log(|log| log.by_limits = false), [Kind::LogForgets]);
    assert_eq!(with_log(|log| log.copies = 1), [Kind::CopiesDiffer]);
    assert_eq!(with_log(|log| log.schedules = false), [Kind::NoSchedules]);
    assert_eq!(with_bus(|bus| bus.logs[0].kept = None), [Kind::LogMissing]);
    // Artifacts are kept without schedules.
    let artifacts = with_bus(|bus| bus.logs[1].kept.as_mut().unwrap().schedules = false);
    assert_eq!(artifacts, []);
}

#[test]
fn a_queue_that_stops_or_stalls_is_named() {
    assert_eq!(with_queue(|queue| queue.most_deliveries = Some(5)), [Kind::QueueGivesUp]);
    assert_eq!(with_queue(|queue| queue.acknowledged = false), [Kind::QueueUnacknowledged]);
    assert_eq!(with_queue(|queue| queue.most_held = Some(1000)), [Kind::QueueHeldLimit]);
    assert_eq!(with_queue(|queue| queue.most_held = None), []);
    let wait = with_queue(|queue| queue.ack_wait = Duration::from_secs(30));
    assert_eq!(wait, [Kind::QueueAckWait]);
    let deleted = with_queue(|queue| queue.deleted_after = Some(Duration::from_secs(5)));
    assert_eq!(deleted, [Kind::QueueDeleted]);
    assert_eq!(with_queue(|queue| queue.paused = true), [Kind::QueuePaused]);
}

#[test]
fn a_clock_may_be_seconds_off_and_not_more() {
    assert_eq!(spoilt(|all| all.ahead_ms = Some(-5_000)), []);
    assert_eq!(spoilt(|all| all.ahead_ms = Some(5_001)), [Kind::ClockOffset]);
    let mut deployment = sound();
    deployment.ahead_ms = Some(-300_000);
    let what = judge(&deployment).remove(0).what;
    assert_eq!(what, "The clock of this machine is 300 s ahead of the server's.");
}

#[test]
fn working_memory_never_makes_a_deployment_less_durable() {
    assert_eq!(spoilt(|all| all.memory = Memory::None), [Kind::MemoryNone]);
    let gone = |all: &mut Deployment| all.memory = Memory::Unreachable("refused".to_owned());
    assert_eq!(spoilt(gone), [Kind::MemoryUnreachable]);
    assert_eq!(with_memory(|memory| memory.too_old = true), [Kind::MemoryTooOld]);
    let evicts = |memory: &mut MemoryFacts| memory.evicts = Some("allkeys-lru".to_owned());
    assert_eq!(with_memory(evicts), [Kind::MemoryEvicts]);
    let full = |memory: &mut MemoryFacts| memory.used_bytes = memory.most_bytes;
    assert_eq!(with_memory(full), [Kind::MemoryNearlyFull]);
    assert_eq!(with_memory(|memory| memory.on_disk = false), [Kind::MemoryNotOnDisk]);
    let mut deployment = sound();
    deployment.memory = Memory::None;
    assert!(report::is_durable(&judge(&deployment)));
}

fn sound_store() -> Embedded {
    let store = StoreFacts { synced: true, journal_mode: "wal".to_owned(), bytes: 1 };
    Embedded {
        path: "a.db".to_owned(),
        store: Store::There(store),
        disk: Disk { free_bytes: GIB, system: FileSystem::Local },
        most_bytes: Some(100),
    }
}

fn spoilt_store(spoil: impl FnOnce(&mut Embedded)) -> Vec<Kind> {
    let mut embedded = sound_store();
    spoil(&mut embedded);
    kinds(&judge_store(&embedded))
}

fn with_file(spoil: impl FnOnce(&mut StoreFacts)) -> Vec<Kind> {
    spoilt_store(|embedded| {
        let Store::There(file) = &mut embedded.store else { panic!("there is one") };
        spoil(file);
    })
}

#[test]
fn a_store_is_judged_with_the_disk_that_it_lies_on() {
    assert_eq!(judge_store(&sound_store()), []);
    assert_eq!(spoilt_store(|all| all.store = Store::Missing), [Kind::StoreMissing]);
    let unreadable = |all: &mut Embedded| all.store = Store::Unreadable("torn".to_owned());
    assert_eq!(spoilt_store(unreadable), [Kind::StoreUnreadable]);
    assert_eq!(with_file(|file| file.synced = false), [Kind::StoreUnsynced]);
    assert_eq!(with_file(|file| file.bytes = 90), [Kind::StoreNearlyFull]);
    let mode = |file: &mut StoreFacts| "delete".clone_into(&mut file.journal_mode);
    assert_eq!(with_file(mode), [Kind::StoreJournalMode]);
    assert_eq!(spoilt_store(|all| all.disk.free_bytes = 1), [Kind::DiskNearlyFull]);
    let on = |magic: u64| spoilt_store(|all| all.disk.system = FileSystem::of(magic));
    assert_eq!(on(0x0102_1994), [Kind::StoreVolatile]);
    assert_eq!(on(0x6969), [Kind::StoreRemote]);
    assert_eq!(on(0x794c_7630), [Kind::StoreInLayer]);
    assert_eq!(on(0xef53), []);
}

#[test]
fn the_worst_comes_first() {
    let mut deployment = sound();
    deployment.memory = Memory::None;
    deployment.monitors.clear();
    let severities: Vec<_> =
        judge(&deployment).iter().map(|finding| finding.kind.severity()).collect();
    assert!(severities.is_sorted(), "{severities:?}");
    assert!(!report::is_durable(&judge(&deployment)));
}

#[test]
fn people_and_programs_are_told_the_same() {
    let mut deployment = sound();
    deployment.memory = Memory::None;
    deployment.monitors.truncate(2);
    let findings = judge(&deployment);
    let text = report::text("nats://a:4222", &findings);
    assert!(text.starts_with("nats://a:4222: not durable."), "{text}");
    assert!(
        text.contains("NOT DURABLE sync_unknown") && text.contains("RISK memory_none"),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&report::json("a", &findings)).unwrap();
    assert_eq!(json["durable"], false);
    assert_eq!(json["findings"][0]["finding"], "sync_unknown");
    assert_eq!(json["findings"][1]["severity"], "risk");
}

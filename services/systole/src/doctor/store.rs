//! Judges a store in one file.

use ports::deployment::StoreFacts;

use super::facts::{Disk, Embedded, FileSystem, Store};
use super::finding::{Finding, Kind, found};
use super::size;

/// Less room than this is short.
const LEAST_FREE: u64 = 512 * 1024 * 1024;
/// Above it a file counts as nearly full, in percent.
const NEARLY_FULL: u64 = 90;

/// Everything that is to be said about it.
pub(super) fn judge(embedded: &Embedded) -> Vec<Finding> {
    let path = &embedded.path;
    let mut findings = judge_disk(path, &embedded.disk);
    match &embedded.store {
        Store::Missing => findings.push(found(
            Kind::StoreMissing,
            format!("There is no store {path} yet."),
            "The disk that it would lie on is judged.",
            "`systole run` creates it; --store names another.",
        )),
        Store::Unreadable(why) => findings.push(found(
            Kind::StoreUnreadable,
            format!("{path} cannot be judged: {why}."),
            "What it holds cannot be promised.",
            "Copy what is left of the file before anything else; then restore a backup, or name another with --store.",
        )),
        Store::There(store) => findings.extend(judge_file(embedded, store)),
    }
    findings
}

fn judge_file(embedded: &Embedded, store: &StoreFacts) -> Vec<Finding> {
    let path = &embedded.path;
    let mut findings = Vec::new();
    if !store.synced {
        findings.push(found(
            Kind::StoreUnsynced,
            format!("{path} is written without a sync of each commit."),
            "A power cut loses what was answered last.",
            "Use `synchronous=FULL`.",
        ));
    }
    if store.journal_mode != "wal" {
        findings.push(found(
            Kind::StoreJournalMode,
            format!("{path} is in the journal mode `{}`; another program has changed it.", store.journal_mode),
            "Nothing is lost; readers and the writer wait for each other until the next start sets it back.",
            "Stop what works on the file besides systole, and start systole once.",
        ));
    }
    if let Some(most) = embedded.most_bytes
        && store.bytes.saturating_mul(100) >= most.saturating_mul(NEARLY_FULL)
    {
        findings.push(found(
            Kind::StoreNearlyFull,
            format!("{path} has {} of at most {}.", size(store.bytes), size(most)),
            "When it is full it refuses: runs pause, nothing that was accepted is lost.",
            "Raise SYSTOLE_STORE_MAX_BYTES.",
        ));
    }
    findings
}

fn judge_disk(path: &str, disk: &Disk) -> Vec<Finding> {
    let mut findings = Vec::new();
    match disk.system {
        FileSystem::Local => {}
        FileSystem::Volatile(name) => findings.push(found(
            Kind::StoreVolatile,
            format!("{path} lies on {name}, which is memory."),
            "All of it is gone when the machine stops.",
            "Name a file on a disk with --store.",
        )),
        FileSystem::Remote(name) => findings.push(found(
            Kind::StoreRemote,
            format!("{path} lies on {name}."),
            "Whether its locks keep a second process out and its syncs reach a disk is not known: two processes on \
             one file damage it.",
            "Name a file on a disk of this machine with --store; for several machines there is the distributed mode.",
        )),
        FileSystem::Layer => findings.push(found(
            Kind::StoreInLayer,
            format!("{path} lies in the writable layer of a container."),
            "It is gone when the container is removed.",
            "Mount a volume and name a file on it with --store.",
        )),
    }
    if disk.free_bytes < LEAST_FREE {
        findings.push(found(
            Kind::DiskNearlyFull,
            format!("{} are free where {path} lies.", size(disk.free_bytes)),
            "When the disk is full writes are refused: runs pause, nothing that was accepted is lost.",
            "Make room.",
        ));
    }
    findings
}

//! A process that is killed while it writes, and what the next one finds.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use bus_sqlite::SqliteBus;
use futures_util::future::join_all;
use ports::BusError;
use ports::queues::{Queue, Queues};
use proto::ids::Partition;
use proto::subject::Leaf;

use crate::world::{Place, fresh_options, put, records};

/// Names the file to the child.
const CHILD: &str = "BUS_SQLITE_TEST_CHILD";
const INBOX: Queue = Queue::Inbox(Partition(0));
const WRITERS: u64 = 6;

/// What the child was answered, as it told us.
#[derive(Debug, Default)]
struct Ledger {
    /// Thread and sequence of every answered append.
    appended: BTreeSet<(u64, u64)>,
    /// Sequences that were acked before a later append was answered.
    acked: BTreeSet<u64>,
}

impl Ledger {
    fn take(&mut self, line: &str) {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            ["appended", thread, sequence] => {
                self.appended.insert((thread.parse().unwrap(), sequence.parse().unwrap()));
            }
            ["acked", sequence] => {
                self.acked.insert(sequence.parse().unwrap());
            }
            _ => {}
        }
    }
}

/// One line in one write, so that a kill never leaves half of one that counts.
fn tell(line: &str) {
    let mut out = std::io::stdout();
    out.write_all(format!("{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

async fn write_for_ever(bus: &SqliteBus, thread: u64) {
    loop {
        let sequence = put(bus, thread, Leaf::In, format!("{thread}")).await;
        tell(&format!("appended {thread} {sequence}"));
    }
}

/// Acks every other record; an ack counts once an append made after it is answered.
async fn ack_for_ever(bus: &SqliteBus) {
    loop {
        let mut acked = Vec::new();
        for delivery in bus.pull(&INBOX, 8, Duration::from_secs(1)).await.unwrap() {
            if delivery.stored.sequence.0.is_multiple_of(2) {
                bus.ack(&delivery.token).await.unwrap();
                acked.push(delivery.stored.sequence.0);
            }
        }
        put(bus, WRITERS, Leaf::Fact, "after the acks").await;
        for sequence in acked {
            tell(&format!("acked {sequence}"));
        }
    }
}

/// Does nothing unless the test below starts it as a process of its own.
#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "the parent names the file in the environment")]
async fn the_process_that_gets_killed() {
    let Ok(path) = std::env::var(CHILD) else { return };
    let bus = SqliteBus::open(path, fresh_options()).unwrap();
    tell("\nopened");
    let writers = join_all((0..WRITERS).map(|thread| write_for_ever(&bus, thread)));
    futures_util::future::join(writers, ack_for_ever(&bus)).await;
}

fn spawn(path: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "durability::the_process_that_gets_killed", "--nocapture"])
        .env(CHILD, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    (child, out)
}

/// Lets the child work until it has told `lines` lines, kills it and takes in all that it told.
fn kill_after(path: &Path, lines: usize, ledger: &mut Ledger) {
    let (mut child, mut out) = spawn(path);
    let mut line = String::new();
    for _ in 0..lines {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the child ended by itself");
        ledger.take(line.trim_end());
    }
    child.kill().unwrap();
    child.wait().unwrap();
    for line in out.split(b'\n').map_while(Result::ok) {
        ledger.take(&String::from_utf8(line).unwrap());
    }
}

async fn all_pending(bus: &SqliteBus) -> BTreeSet<u64> {
    let mut pending = BTreeSet::new();
    loop {
        let deliveries = bus.pull(&INBOX, 1000, Duration::ZERO).await.unwrap();
        if deliveries.is_empty() {
            return pending;
        }
        pending.extend(deliveries.iter().map(|delivery| delivery.stored.sequence.0));
    }
}

#[tokio::test]
async fn a_killed_process_loses_nothing_that_was_answered() {
    let place = Place::new();
    let mut ledger = Ledger::default();
    for lines in [50, 400, 1500, 900] {
        kill_after(&place.path(), lines, &mut ledger);
        let bus = place.open();
        let mut found = BTreeMap::new();
        for thread in 0..WRITERS {
            let records = records(&bus, thread).await;
            assert!(records.iter().all(|(_, text)| *text == format!("{thread}").as_bytes()));
            found.extend(records.into_iter().map(|(sequence, _)| (sequence, thread)));
        }
        let missing = ledger.appended.iter().find(|(thread, s)| found.get(s) != Some(thread));
        assert_eq!(missing, None, "an answered append is gone");
        let pending = all_pending(&bus).await;
        let odd: BTreeSet<u64> = found.into_keys().filter(|s| !s.is_multiple_of(2)).collect();
        assert_eq!(odd.difference(&pending).next(), None, "a record without ack does not come");
        assert_eq!(ledger.acked.intersection(&pending).next(), None, "an acked record comes again");
        bus.close().await.unwrap();
    }
    assert!(ledger.acked.len() > 100, "only {} acks", ledger.acked.len());
}

/// A power cut may take the end of the log. What is left is what was written first.
#[tokio::test]
async fn a_log_without_its_end_leaves_the_first_records() {
    let place = Place::new();
    let bus = place.open();
    for n in 0..60 {
        put(&bus, 1, Leaf::In, format!("{n}")).await;
    }
    let written = records(&bus, 1).await;
    let log = std::fs::read(place.path().with_file_name("store.db-wal")).unwrap();
    let mut lengths = BTreeSet::new();
    for part in 0..=24 {
        let cut = Place::new();
        std::fs::copy(place.path(), cut.path()).unwrap();
        let left = &log[..log.len() * part / 24];
        std::fs::write(cut.path().with_file_name("store.db-wal"), left).unwrap();
        let bus = cut.open();
        let found = records(&bus, 1).await;
        assert_eq!(found[..], written[..found.len()], "{part} of 24 parts of the log");
        assert_eq!(all_pending(&bus).await.len(), found.len());
        lengths.insert(found.len());
    }
    assert_eq!((lengths.first(), lengths.last()), (Some(&0), Some(&60)));
}

#[tokio::test]
async fn a_living_process_keeps_others_out_and_a_killed_one_does_not() {
    let place = Place::new();
    let (mut child, mut out) = spawn(&place.path());
    let mut line = String::new();
    while line.trim_end() != "opened" {
        line.clear();
        assert!(out.read_line(&mut line).unwrap() > 0, "the child ended by itself");
    }
    let refusal = SqliteBus::open(place.path(), place.options()).unwrap_err();
    let path = place.path().canonicalize().unwrap();
    let why = format!("{} is in use by process {}", path.display(), child.id());
    assert_eq!(refusal, BusError::Locked(why));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(SqliteBus::open(place.path(), place.options()).is_ok());
}

//! All of a thread is gone, from every byte of the file.

use std::path::Path;
use std::time::Duration;

use bus_sqlite::SqliteBus;
use bytes::Bytes;
use ports::artifacts::Artifacts;
use ports::journal::{Append, Fence, Journal};
use ports::working_memory::{Snapshot, TurnText, WorkingMemory};
use proto::envelope::Envelope;
use proto::ids::{InputKey, Nonce, Partition, Sequence, TenantId, ThreadId, ThreadRef, ToolCallId};
use proto::input::{Input, InputBody, Message, Source};
use proto::record::Record;
use proto::subject::{Leaf, Subject};

use crate::world::Place;

const CANARY: &str = "canary7f3a91";

fn thread(n: u64) -> ThreadRef {
    let tenant = TenantId::new("acme").unwrap();
    ThreadRef {
        partition: Partition(0),
        tenant,
        thread: ThreadId::from_parts(1_767_225_600_000 + n, 1),
    }
}

fn holds_canary(file: &Path) -> bool {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    [file.to_path_buf(), log.into()].iter().any(|file| {
        let bytes = std::fs::read(file).unwrap_or_default();
        bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes())
    })
}

async fn say(bus: &SqliteBus, thread: &ThreadRef, n: u64, text: &str) {
    let nonce = Nonce::new(format!("{n:016x}")).unwrap();
    let key = InputKey::new(format!("{CANARY}-{n}")).unwrap();
    let dedup = Some(format!("{}/{}/{key}", thread.tenant, thread.thread));
    let input =
        Input { key, source: Source::Client, body: InputBody::Message(Message::text(text)) };
    let payload = Envelope::new(nonce.clone(), None, Record::Input(input)).encode().into();
    let subject = Subject::new(thread.clone(), Leaf::In);
    bus.append(Append { subject, payload, nonce, fence: Fence::None, dedup }).await.unwrap();
}

/// A canary in every table that keeps something of a thread.
async fn plant(bus: &SqliteBus, thread: &ThreadRef) {
    let bytes = Bytes::from_static(CANARY.as_bytes());
    let call = ToolCallId::new("abc123xyz").unwrap();
    say(bus, thread, 1, CANARY).await;
    bus.put(thread, bytes.clone()).await.unwrap();
    bus.keep_done(thread, &call, bytes.clone(), Duration::from_hours(1)).await.unwrap();
    bus.mark_cancelled(thread, &call, Duration::from_hours(1)).await.unwrap();
    bus.keep_snapshot(thread, Snapshot { sequence: Sequence(1), payload: bytes }).await.unwrap();
    let text =
        TurnText { started: Sequence(1), text: CANARY.to_owned(), reasoning: CANARY.to_owned() };
    bus.keep_turn_text(thread, text).await.unwrap();
    bus.set_active(thread, Some(proto::time::Timestamp(1))).await.unwrap();
}

#[tokio::test]
async fn a_canary_in_every_tier_of_a_thread_is_in_no_byte_after_it_was_forgotten() {
    let place = Place::new();
    let bus = SqliteBus::open(place.path(), place.options()).unwrap();
    plant(&bus, &thread(1)).await;
    say(&bus, &thread(2), 7, "something else").await;
    bus.close().await.unwrap();
    drop(bus);
    assert!(holds_canary(place.path().as_ref()), "the search itself works");
    let bus = SqliteBus::open(place.path(), place.options()).unwrap();
    let gone = bus.forget_thread(&thread(1)).await.unwrap();
    let kinds: Vec<&str> =
        gone.iter().filter(|(_, rows)| *rows == 1).map(|(kind, _)| *kind).collect();
    let wanted = [
        "records",
        "artifacts",
        "results",
        "cancel marks",
        "snapshots",
        "texts of turns",
        "wake-ups",
        "keys of inputs",
    ];
    assert_eq!(kinds, wanted);
    assert_eq!(bus.read(&thread(1), Sequence::NONE, Sequence::NONE).await.unwrap(), vec![]);
    assert_eq!(bus.read(&thread(2), Sequence::NONE, Sequence::NONE).await.unwrap().len(), 1);
    bus.close().await.unwrap();
    drop(bus);
    let left = std::fs::read(place.path()).unwrap();
    let at = left.windows(CANARY.len()).position(|window| window == CANARY.as_bytes());
    // The key of the other thread's input has it too.
    let other = format!("{CANARY}-7");
    let count = |needle: &str| {
        left.windows(needle.len()).filter(|window| *window == needle.as_bytes()).count()
    };
    assert_eq!(count(CANARY), count(&other), "{at:?}");
}

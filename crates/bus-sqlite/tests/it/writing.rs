//! Many writers at once, and limits.

use std::collections::BTreeSet;
use std::time::Duration;

use bus_sqlite::{ARTIFACT_LIMIT, RECORD_LIMIT, SqliteBus};
use bytes::Bytes;
use futures_util::future::join_all;
use ports::BusError;
use ports::artifacts::Artifacts;
use ports::journal::{AppendError, Fence, Journal};
use ports::queues::{Queue, Queues};
use ports::working_memory::{Sample, TurnText, WorkingMemory};
use proto::ids::{Partition, Sequence, ToolName};
use proto::subject::Leaf;
use proto::time::Timestamp;

use crate::world::{PATIENCE, Place, append, put, records, thread};

const INBOX: Queue = Queue::Inbox(Partition(0));

#[tokio::test]
async fn of_many_racers_in_one_batch_one_per_thread_wins() {
    let place = Place::new();
    let bus = place.open();
    let race = |n: u64| {
        let append = append(n % 20, Leaf::Fact, "x", Fence::Plan(Sequence::NONE));
        let bus = &bus;
        async move { (n % 20, bus.append(append).await) }
    };
    let outcomes = join_all((0..400).map(race)).await;
    let winners: Vec<u64> =
        outcomes.iter().filter(|(_, outcome)| outcome.is_ok()).map(|(n, _)| *n).collect();
    assert_eq!(winners.iter().collect::<BTreeSet<_>>().len(), 20);
    assert_eq!(winners.len(), 20);
    for (n, outcome) in outcomes {
        let [(first, _)] = records(&bus, n).await[..] else { panic!("one record per thread") };
        let lost = Err(AppendError::Fenced { last: Some(Sequence(first)) });
        assert!(outcome.is_ok() || outcome == lost, "{outcome:?}");
    }
}

#[tokio::test]
async fn every_answered_append_of_a_crowd_is_there_once() {
    let place = Place::new();
    let bus = place.open();
    let written = join_all((0..3000).map(|n| put(&bus, n % 10, Leaf::In, format!("{n}")))).await;
    let distinct: BTreeSet<u64> = written.iter().copied().collect();
    assert_eq!(distinct.len(), 3000);
    let mut found = BTreeSet::new();
    for n in 0..10 {
        found.extend(records(&bus, n).await.into_iter().map(|(sequence, _)| sequence));
    }
    assert_eq!(found, distinct);
}

#[tokio::test]
async fn a_caller_that_goes_away_does_not_undo_its_append() {
    let place = Place::new();
    let bus = place.open();
    {
        let mut gone = Box::pin(bus.append(append(1, Leaf::In, "gone", Fence::None)));
        assert!(futures_util::poll!(&mut gone).is_pending());
    }
    put(&bus, 1, Leaf::In, "stays").await;
    let payloads: Vec<Bytes> = records(&bus, 1).await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(payloads, ["gone", "stays"]);
}

#[tokio::test]
async fn an_append_without_an_answer_says_so_and_may_still_land() {
    let place = Place::new();
    let mut options = place.options();
    options.deadline = Duration::from_millis(200);
    let bus = SqliteBus::open(place.path(), options).unwrap();
    let other = rusqlite::Connection::open(place.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let append = append(1, Leaf::Fact, "late", Fence::Plan(Sequence::NONE));
    let unanswered = bus.append(append.clone()).await;
    assert_eq!(unanswered, Err(AppendError::NoAnswer("no answer within 200ms".to_owned())));
    other.execute_batch("COMMIT").unwrap();
    let mut again = bus.append(append.clone()).await;
    while matches!(again, Err(AppendError::NoAnswer(_))) {
        again = bus.append(append.clone()).await;
    }
    assert_eq!(again, Err(AppendError::Fenced { last: Some(Sequence(1)) }));
    assert_eq!(records(&bus, 1).await, [(1, Bytes::from("late"))]);
}

#[tokio::test]
async fn what_is_too_large_is_refused_with_the_limit() {
    let place = Place::new();
    let bus = place.open();
    let just = append(1, Leaf::In, vec![b'x'; RECORD_LIMIT], Fence::None);
    assert!(bus.append(just).await.is_ok());
    let large = append(1, Leaf::In, vec![b'x'; RECORD_LIMIT + 1], Fence::None);
    let refusal = BusError::TooLarge { bytes: RECORD_LIMIT + 1, limit: RECORD_LIMIT };
    assert_eq!(bus.append(large).await, Err(AppendError::Bus(refusal)));
    let bytes = ARTIFACT_LIMIT + 1;
    let refusal = BusError::TooLarge { bytes, limit: ARTIFACT_LIMIT };
    let artifact = bus.put(&thread(1), Bytes::from(vec![0; bytes])).await;
    assert_eq!(artifact, Err(refusal));
}

#[tokio::test]
async fn the_largest_artifact_comes_back() {
    let place = Place::new();
    let bus = place.open();
    let bytes: Bytes = (0..=250_u8).cycle().take(ARTIFACT_LIMIT).collect();
    let stored = bus.put(&thread(1), bytes.clone()).await.unwrap();
    let found = bus.get(&thread(1), &stored.id).await.unwrap();
    assert!(found == Some(bytes));
}

#[tokio::test]
async fn a_schedule_is_not_appended_by_hand() {
    let place = Place::new();
    let bus = place.open();
    let refused = bus.append(append(1, Leaf::Schedule, "x", Fence::None)).await;
    assert!(matches!(refused, Err(AppendError::Bus(BusError::Refused(_)))), "{refused:?}");
}

#[tokio::test]
async fn a_purged_thread_leaves_neither_deliveries_nor_a_schedule() {
    let place = Place::new();
    let bus = place.open();
    let last = put(&bus, 1, Leaf::In, "gone").await;
    let at = bus.server_time().await.unwrap().after(Duration::from_hours(1));
    bus.schedule(&thread(1), at, Fence::None).await.unwrap();
    bus.purge(&thread(1), Sequence(last)).await.unwrap();
    assert_eq!(bus.scheduled(&thread(1)).await, Ok(None));
    assert_eq!(bus.pull(&INBOX, 1, Duration::ZERO).await, Ok(vec![]));
    bus.close().await.unwrap();
    let bus = place.open();
    assert_eq!(bus.pull(&INBOX, 1, Duration::ZERO).await, Ok(vec![]));
    assert!(put(&bus, 1, Leaf::In, "later").await > last, "a sequence is never used again");
}

#[tokio::test]
async fn a_backlog_beyond_memory_is_delivered_whole() {
    let place = Place::new();
    let bus = place.open();
    let write = |n: u64| put(&bus, n, Leaf::In, vec![u8::try_from(n).unwrap(); 1 << 20]);
    let written = join_all((0..40).map(write)).await;
    let mut pulled = Vec::new();
    while pulled.len() < written.len() {
        for delivery in bus.pull(&INBOX, 16, PATIENCE).await.unwrap() {
            let first = delivery.stored.payload.first().copied();
            assert_eq!(delivery.stored.payload.len(), 1 << 20);
            assert_eq!(delivery.stored.subject.thread, thread(u64::from(first.unwrap())));
            bus.ack(&delivery.token).await.unwrap();
            pulled.push(delivery.stored.sequence.0);
        }
    }
    pulled.sort_unstable();
    let mut written = written;
    written.sort_unstable();
    assert_eq!(pulled, written);
}

#[tokio::test]
async fn acks_texts_and_samples_are_written_when_the_bus_closes() {
    let place = Place::new();
    let bus = place.open();
    put(&bus, 1, Leaf::In, "done").await;
    let delivery = bus.pull(&INBOX, 1, PATIENCE).await.unwrap().pop().unwrap();
    bus.ack(&delivery.token).await.unwrap();
    let text =
        TurnText { started: Sequence(4), text: "so far".to_owned(), reasoning: "hm".to_owned() };
    bus.keep_turn_text(&thread(1), text.clone()).await.unwrap();
    let tool = ToolName::new("probe").unwrap();
    let sample = Sample { at: Timestamp(5), ok: false };
    bus.add_samples(&tool, &[sample], PATIENCE).await.unwrap();
    drop(bus);
    let bus = place.open();
    assert_eq!(bus.pull(&INBOX, 1, Duration::ZERO).await, Ok(vec![]));
    assert_eq!(bus.turn_text(&thread(1)).await, Ok(Some(text)));
    assert_eq!(bus.samples(&tool).await, Ok(vec![sample]));
}

#[tokio::test]
async fn texts_beyond_what_memory_holds_wait_and_are_kept() {
    let place = Place::new();
    let bus = place.open();
    for n in 0..48 {
        let text =
            TurnText { started: Sequence(n), text: "x".repeat(1 << 20), reasoning: String::new() };
        bus.keep_turn_text(&thread(n), text).await.unwrap();
    }
    for n in 0..48 {
        let kept = bus.turn_text(&thread(n)).await.unwrap().unwrap();
        assert_eq!((kept.started, kept.text.len()), (Sequence(n), 1 << 20));
    }
}

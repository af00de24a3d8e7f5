//! The memory bus in virtual time, and its faults.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::Arc;
use std::time::Duration;

use ports::append::{Landed, Patience, append_surely};
use ports::journal::{Append, AppendError, Fence, Journal, Stored};
use ports::queues::{Delivery, Queue, Queues};
use proto::envelope::Envelope;
use proto::ids::{InstanceId, Nonce, Partition, Sequence, TenantId, ThreadId, ThreadRef};
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use testkit::memory::faults::{Fault, Faults, Firing, Landing, Op, OpKind};
use testkit::memory::{BusHandle, Config, MemoryBus};
use tokio::time::{Instant, timeout};

const INBOX: Queue = Queue::Inbox(Partition(0));
const PROGRESS: Queue = Queue::Progress(Partition(0));

fn process(name: &str) -> InstanceId {
    InstanceId::new(name).unwrap()
}

fn thread() -> ThreadRef {
    ThreadRef {
        partition: Partition(0),
        tenant: TenantId::new("acme").unwrap(),
        thread: ThreadId::from_parts(1, 1),
    }
}

fn record(leaf: Leaf, nonce: u64, fence: Fence) -> Append {
    let nonce = Nonce::new(format!("{nonce:016x}")).unwrap();
    let payload = Envelope::new(nonce.clone(), None, Record::Tick).encode().into();
    Append { subject: Subject::new(thread(), leaf), payload, nonce, fence, dedup: None }
}

/// One fault for the first operation of one kind.
struct Once(OpKind, Fault, std::sync::atomic::AtomicBool);

impl Faults for Once {
    fn on(&self, _: &InstanceId, op: &Op<'_>) -> Fault {
        let first = op.kind == self.0 && !self.2.swap(true, std::sync::atomic::Ordering::Relaxed);
        if first { self.1 } else { Fault::None }
    }
}

fn bus_with(kind: OpKind, fault: Fault) -> MemoryBus {
    let faults = Arc::new(Once(kind, fault, std::sync::atomic::AtomicBool::new(false)));
    MemoryBus::new(Config { faults, ..Config::default() })
}

async fn one(handle: &BusHandle, queue: &Queue, wait: Duration) -> Option<Delivery> {
    handle.pull(queue, 1, wait).await.unwrap().pop()
}

fn places(records: &[Stored]) -> Vec<u64> {
    records.iter().map(|stored| stored.sequence.0).collect()
}

#[tokio::test(start_paused = true)]
async fn a_held_delivery_comes_again_exactly_one_ack_wait_later() {
    let bus = MemoryBus::default();
    let (a, b) = (bus.handle(&process("a")), bus.handle(&process("b")));
    a.append(record(Leaf::In, 1, Fence::None)).await.unwrap();
    let held = one(&a, &INBOX, Duration::ZERO).await.unwrap();
    let start = Instant::now();
    let again = one(&b, &INBOX, Duration::from_mins(1)).await.unwrap();
    assert_eq!((start.elapsed(), again.count), (Duration::from_secs(6), held.count + 1));
}

#[tokio::test(start_paused = true)]
async fn a_schedule_fires_in_virtual_time_and_wakes_a_waiting_pull() {
    let bus = MemoryBus::default();
    let handle = bus.handle(&process("a"));
    let at = bus.now().after(Duration::from_secs(90));
    handle.schedule(&thread(), at, Fence::None).await.unwrap();
    let tick = one(&handle, &PROGRESS, Duration::from_mins(5)).await.unwrap();
    let decoded = Envelope::decode(&tick.stored.payload).unwrap();
    assert_eq!((tick.stored.at, decoded.body), (at, Record::Tick));
    assert_eq!(handle.scheduled(&thread()).await, Ok(None));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_crashes_after_an_append_leaves_the_record_and_never_returns() {
    let bus = bus_with(OpKind::Append, Fault::CrashAfter);
    let handle = bus.handle(&process("a"));
    let append = handle.append(record(Leaf::In, 1, Fence::None));
    assert!(timeout(Duration::from_hours(1), append).await.is_err());
    assert!(timeout(Duration::from_hours(1), handle.server_time()).await.is_err());
    assert_eq!(bus.history(0).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_append_that_lands_after_its_caller_gave_up_is_recognised() {
    let late = Landing::After(Duration::from_millis(50));
    let bus = bus_with(OpKind::Append, Fault::LoseAnswer(late));
    let handle = bus.handle(&process("a"));
    let append = record(Leaf::Fact, 1, Fence::Plan(Sequence::NONE));
    let landed = append_surely(&handle, &append, Patience::default()).await.unwrap();
    assert_eq!(landed, Landed::At(Sequence(1)));
    assert_eq!(bus.history(0).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refusal_without_number_writes_nothing() {
    let bus = bus_with(OpKind::Append, Fault::RefuseWithoutNumber);
    let handle = bus.handle(&process("a"));
    let append = record(Leaf::Fact, 1, Fence::Plan(Sequence::NONE));
    let refused = handle.append(append).await;
    assert_eq!(refused, Err(AppendError::Fenced { last: None }));
    assert_eq!(bus.history(0), vec![]);
}

#[tokio::test(start_paused = true)]
async fn a_stale_read_never_falls_below_its_floor() {
    let bus = bus_with(OpKind::Read, Fault::Stale(2));
    let handle = bus.handle(&process("a"));
    for nonce in 1..=3 {
        handle.append(record(Leaf::In, nonce, Fence::None)).await.unwrap();
    }
    let read = handle.read(&thread(), Sequence::NONE, Sequence(2)).await.unwrap();
    assert_eq!(places(&read), [1, 2]);
    let fresh = handle.read(&thread(), Sequence::NONE, Sequence::NONE).await.unwrap();
    assert_eq!(places(&fresh), [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn forgotten_acks_and_a_new_consumer_bring_records_again() {
    let bus = MemoryBus::default();
    let handle = bus.handle(&process("a"));
    handle.append(record(Leaf::In, 1, Fence::None)).await.unwrap();
    let held = one(&handle, &INBOX, Duration::ZERO).await.unwrap();
    handle.ack(&held.token).await.unwrap();
    assert_eq!(one(&handle, &INBOX, Duration::ZERO).await, None);
    assert_eq!(bus.forget_acks(Duration::from_secs(1)), 1);
    assert_eq!(one(&handle, &INBOX, Duration::ZERO).await.unwrap().count, 2);
    assert_eq!(bus.replay(&INBOX), 1);
    assert_eq!(one(&handle, &INBOX, Duration::ZERO).await.unwrap().count, 1);
}

struct Fires(Firing);

impl Faults for Fires {
    fn firing(&self, _: &ThreadRef, _: proto::time::Timestamp) -> Firing {
        self.0
    }
}

async fn ticks_of(firing: Firing) -> Vec<Duration> {
    let config = Config { faults: Arc::new(Fires(firing)), ..Config::default() };
    let (bus, base) = (MemoryBus::new(config.clone()), config.base);
    let handle = bus.handle(&process("a"));
    let at = base.after(Duration::from_secs(10));
    handle.schedule(&thread(), at, Fence::None).await.unwrap();
    tokio::time::sleep(Duration::from_mins(1)).await;
    bus.history(0).iter().map(|stored| stored.at.since(base)).collect()
}

#[tokio::test(start_paused = true)]
async fn schedules_fire_early_twice_or_never() {
    let second = Duration::from_secs(1);
    assert_eq!(ticks_of(Firing::OnTime).await, [10 * second]);
    assert_eq!(ticks_of(Firing::Early(second)).await, [9 * second]);
    assert_eq!(ticks_of(Firing::Twice(second)).await, [10 * second, 11 * second]);
    assert_eq!(ticks_of(Firing::Never).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_paused_process_gets_its_answer_when_it_goes_on() {
    let bus = MemoryBus::default();
    let handle = bus.handle(&process("a"));
    bus.pause(&process("a"), Duration::from_secs(30));
    let start = Instant::now();
    handle.append(record(Leaf::In, 1, Fence::None)).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(30));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_is_cut_off_hears_that_nothing_answers() {
    let bus = MemoryBus::default();
    let handle = bus.handle(&process("a"));
    bus.cut_off(&process("a"), Duration::from_secs(5));
    assert!(handle.append(record(Leaf::In, 1, Fence::None)).await.is_err());
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(handle.append(record(Leaf::In, 1, Fence::None)).await.is_ok());
}

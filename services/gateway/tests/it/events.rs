//! A thread as it happens: from the beginning, from anywhere, and after a lost tail.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ports::BusError;
use ports::clock::Ids;
use ports::journal::{Append, AppendError, Appended, Fence, Journal, Stored};
use ports::working_memory::{TurnText, WorkingMemory};
use proto::fact::{EndReason, Fact, Outcome, RunFinished, TurnCompleted, TurnStarted, Usage};
use proto::hash::fingerprint;
use proto::ids::{InstanceId, Sequence, TenantId, ThreadRef};
use proto::input::{Input, InputBody, Message, Source};
use proto::model::Finish;
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use proto::time::Timestamp;
use serde_json::{Value, json};
use testkit::memory::{BusHandle, MemoryBus, SeededIds};
use testkit::model::{ScriptedModel, Step, end, text};
use tokio::sync::watch;

use crate::client::{Events, Told};
use crate::world::{World, append, place, settings, unknown_thread};

fn started(start: u32) -> Record {
    Record::Fact(Fact::TurnStarted(TurnStarted {
        run: 1,
        turn: 1,
        start,
        seen: Sequence(1),
        owner: InstanceId::new("p1").unwrap(),
        held_by: Sequence(1),
        deadline: Timestamp(9_999_999_999_999),
        agent: "helper".parse().unwrap(),
        agent_fingerprint: fingerprint("helper"),
        note: None,
        verify: None,
        recalled: Vec::new(),
        draft: false,
    }))
}

fn completed(started: Sequence, text: &str) -> Record {
    Record::Fact(Fact::TurnCompleted(TurnCompleted {
        run: 1,
        turn: 1,
        started,
        text: text.to_owned(),
        reasoning: String::new(),
        calls: Vec::new(),
        model: "m".to_owned(),
        usage: Usage::default(),
        confidence: None,
        opaque: None,
        counted: None,
    }))
}

fn finished() -> Record {
    Record::Fact(Fact::RunFinished(RunFinished {
        run: 1,
        seen: Sequence(1),
        outcome: Outcome::Answered,
        reason: EndReason::Answer,
        code: None,
        answer: "done".to_owned(),
        turns: 1,
        calls: 0,
        usage: Usage::default(),
        unevaluated: false,
        verification: None,
    }))
}

fn names(told: &[Told]) -> Vec<&str> {
    told.iter().map(|told| told.event.as_str()).collect()
}

/// A thread whose one run is over.
async fn over(world: &World) -> String {
    let thread = world.begin("hello").await;
    let at = world.append(&thread, Leaf::Fact, started(1)).await;
    world.append(&thread, Leaf::Fact, completed(at, "done")).await;
    world.append(&thread, Leaf::Fact, finished()).await;
    thread
}

#[tokio::test]
async fn a_run_is_told_from_its_input_to_its_answer() {
    let mut world = World::new().await;
    let reply = || vec![text("all "), text("is well"), end(Finish::Stop)];
    world.planner(ScriptedModel::new(move |_| Ok(reply()))).await;
    let thread = world.begin("hello").await;
    let told = world.events(&thread).await.until("run_finished").await;
    let journaled: Vec<_> =
        told.iter().filter(|told| told.event != "delta" && told.event != "lagged").collect();
    let kinds: Vec<_> = journaled.iter().map(|told| told.event.as_str()).collect();
    assert_eq!(kinds, ["input", "turn_started", "turn_completed", "run_finished"]);
    assert!(journaled.iter().all(|told| told.id.is_some()), "{told:?}");
    assert_eq!(told.last().unwrap().data["answer"], "all is well");
    let shown = world.get(&format!("/v1/threads/{thread}")).await;
    assert_eq!(shown.body["finished"]["answer"], "all is well");
    assert_eq!(shown.body["active"], false);
}

#[tokio::test]
async fn a_client_that_goes_away_does_not_stop_the_run() {
    let mut world = World::new().await;
    let slow = || vec![Step::Wait(Duration::from_millis(300)), text("done"), end(Finish::Stop)];
    world.planner(ScriptedModel::new(move |_| Ok(slow()))).await;
    let thread = world.begin("hello").await;
    let mut events = world.events(&thread).await;
    events.until("turn_started").await;
    drop(events);
    let told = world.events(&thread).await.until("run_finished").await;
    assert_eq!(told.last().unwrap().data["outcome"], "answered");
    assert_eq!(names(&told).iter().filter(|name| **name == "turn_started").count(), 1);
}

#[tokio::test]
async fn from_any_event_on_a_reader_is_told_the_rest_and_nothing_twice() {
    let world = World::new().await;
    let thread = over(&world).await;
    let all = world.events(&thread).await.all().await;
    let named: Vec<_> = all.iter().filter(|told| told.id.is_some()).cloned().collect();
    assert_eq!(names(&named), ["input", "turn_started", "turn_completed", "run_finished"]);
    for (index, told) in all.iter().enumerate().take(all.len() - 1) {
        let Some(id) = told.id.as_deref() else { continue };
        let rest = world.events_after(&thread, id).await.all().await;
        assert_eq!(rest, all[index + 1..], "after {id}");
    }
}

#[tokio::test]
async fn a_reader_that_came_back_is_told_what_happens_next() {
    let world = World::new().await;
    let thread = over(&world).await;
    let all = world.events(&thread).await.until("run_finished").await;
    let last = all.last().unwrap().id.clone().unwrap();
    let mut events = world.events_after(&thread, &last).await;
    let path = format!("/v1/threads/{thread}/inputs");
    let said = world.post(&path, &json!({ "text": "and?" })).await;
    let told = events.next().await.unwrap();
    assert_eq!((told.event.as_str(), &told.data["text"]), ("input", &json!("and?")));
    assert_eq!(json!(told.id), said.body["id"]);
}

#[tokio::test]
async fn an_id_that_is_not_in_the_journal_resets_the_reader() {
    let world = World::new().await;
    let thread = over(&world).await;
    let all = world.events(&thread).await.until("run_finished").await;
    let (sequence, _) = all[1].id.as_deref().unwrap().split_once('-').unwrap();
    for strange in [format!("{sequence}-ffffffff"), "4711-00000000".to_owned()] {
        let told = world.events_after(&thread, &strange).await.until("run_finished").await;
        assert_eq!((told[0].event.as_str(), told[0].id.as_deref()), ("reset", Some("")));
        assert_eq!(told[1..], all, "after {strange}");
    }
    let bad = Events::open(world.address, &thread, &[("last-event-id", "nonsense")]).await;
    assert_eq!(bad.err(), Some(400));
    let unknown = Events::open(world.address, &unknown_thread(), &[]).await;
    assert_eq!(unknown.err(), Some(404));
}

#[tokio::test]
async fn a_repeated_input_is_told_once() {
    let world = World::new().await;
    let thread = world.begin("hello").await;
    let key = world.events(&thread).await.next().await.unwrap();
    assert_eq!(key.event, "input");
    for said in ["one", "two"] {
        let body = InputBody::Steer(Message::text(said));
        let input = Input { key: "same".parse().unwrap(), source: Source::Client, body };
        world.append(&thread, Leaf::In, Record::Input(input)).await;
    }
    world.append(&thread, Leaf::Fact, started(1)).await;
    let told = world.events(&thread).await.until("turn_started").await;
    let texts: Vec<_> = told.iter().filter_map(|told| told.data["text"].as_str()).collect();
    assert_eq!(texts, ["hello", "one"]);
}

#[tokio::test]
async fn a_record_that_nobody_can_read_does_not_stop_the_reader() {
    let world = World::new().await;
    let thread = world.begin("hello").await;
    let mut events = world.events(&thread).await;
    events.until("input").await;
    let stranger = world.working();
    let append = Append {
        subject: Subject::new(place(&thread), Leaf::In),
        payload: b"not JSON".as_slice().into(),
        nonce: SeededIds::new(99).nonce(),
        fence: Fence::None,
        dedup: None,
    };
    stranger.append(append).await.unwrap();
    tokio::time::sleep(Duration::from_millis(100)).await;
    world.append(&thread, Leaf::Fact, started(1)).await;
    assert_eq!(events.next().await.unwrap().event, "turn_started");
}

fn delta(told: &Told) -> (&str, &Value, &Value) {
    (told.event.as_str(), &told.data["offset"], &told.data["delta"])
}

#[tokio::test]
async fn text_is_told_as_it_comes_with_turn_and_offset() {
    let world = World::new().await;
    let thread = world.begin("hello").await;
    let mut events = world.events(&thread).await;
    let at = world.append(&thread, Leaf::Fact, started(1)).await;
    world.say(&thread, at, 0, "so ").await;
    world.say(&thread, at, 3, "far").await;
    let told = events.until("delta").await;
    assert_eq!(names(&told), ["input", "turn_started", "delta"]);
    assert_eq!(delta(&told[2]), ("delta", &json!(0), &json!("so ")));
    assert_eq!((&told[2].data["turn"], &told[2].id), (&json!(1), &None));
    assert_eq!(told[2].data["sequence"], json!(at));
    assert_eq!(delta(&events.next().await.unwrap()), ("delta", &json!(3), &json!("far")));
}

#[tokio::test]
async fn words_of_a_start_that_was_given_up_are_not_told() {
    let world = World::new().await;
    let thread = world.begin("hello").await;
    let mut events = world.events(&thread).await;
    let at = world.append(&thread, Leaf::Fact, started(1)).await;
    world.say(&thread, at, 0, "so ").await;
    events.until("delta").await;
    let again = world.append(&thread, Leaf::Fact, started(2)).await;
    events.until("turn_started").await;
    world.say(&thread, at, 3, "lost").await;
    world.say(&thread, again, 0, "anew").await;
    assert_eq!(delta(&events.next().await.unwrap()), ("delta", &json!(0), &json!("anew")));
}

#[tokio::test]
async fn records_are_told_while_text_keeps_coming() {
    let world = World::new().await;
    let thread = world.begin("hello").await;
    let mut events = world.events(&thread).await;
    let at = world.append(&thread, Leaf::Fact, started(1)).await;
    events.until("turn_started").await;
    let path = format!("/v1/threads/{thread}/inputs");
    let said = world.post(&path, &json!({ "text": "and?", "mode": "steer" })).await;
    assert_eq!(said.status, 202);
    let speaking = async {
        for offset in 0.. {
            world.say(&thread, at, offset, "x").await;
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        () = speaking => unreachable!("it never ends"),
        told = events.until("input") => assert_eq!(told.last().unwrap().data["text"], "and?"),
    }
}

#[tokio::test]
async fn who_comes_late_is_told_what_was_said_before() {
    let world = World::new().await;
    let thread = world.begin("hello").await;
    let at = world.append(&thread, Leaf::Fact, started(1)).await;
    let kept = TurnText { started: at, text: "so far and".to_owned(), ..TurnText::default() };
    world.working().keep_turn_text(&place(&thread), kept).await.unwrap();
    let mut events = world.events(&thread).await;
    events.until("turn_started").await;
    world.say(&thread, at, 7, "and on").await;
    assert_eq!(delta(&events.next().await.unwrap()), ("delta", &json!(0), &json!("so far ")));
    assert_eq!(delta(&events.next().await.unwrap()), ("delta", &json!(7), &json!("and on")));
}

#[tokio::test]
async fn a_reader_that_is_too_slow_is_told_what_it_missed_and_misses_no_record() {
    let world = World::new().await;
    let thread = world.begin("hello").await;
    let mut events = world.events(&thread).await;
    let at = world.append(&thread, Leaf::Fact, started(1)).await;
    events.until("turn_started").await;
    // Far more than any buffer on the way holds, while nobody reads.
    let piece = "x".repeat(64 * 1024);
    let mut offset = 0;
    for _ in 0..1000 {
        world.say(&thread, at, offset, &piece).await;
        offset += u64::try_from(piece.len()).unwrap();
        tokio::task::yield_now().await;
    }
    world.append(&thread, Leaf::Fact, completed(at, "done")).await;
    let told = events.until("turn_completed").await;
    let heard: usize =
        told.iter().filter_map(|told| told.data["delta"].as_str()).map(str::len).sum();
    assert!(heard < 1000 * piece.len(), "nothing was held back for it");
    // What was not told of the text was said to be missing, or the record came first.
    let mut next = 0;
    for told in &told[..told.len() - 1] {
        let (from, to) = match told.event.as_str() {
            "lagged" => (told.data["from"].as_u64(), told.data["to"].as_u64()),
            "delta" => {
                let length = u64::try_from(told.data["delta"].as_str().unwrap().len()).unwrap();
                let offset = told.data["offset"].as_u64();
                (offset, offset.map(|offset| offset + length))
            }
            other => panic!("{other} amid the text"),
        };
        assert_eq!(from, Some(next));
        next = to.unwrap();
    }
}

/// A journal that can be exchanged for one whose tail is another.
struct Exchangeable {
    now: watch::Receiver<BusHandle>,
}

impl Exchangeable {
    fn now(&self) -> BusHandle {
        self.now.borrow().clone()
    }
}

#[async_trait]
impl Journal for Exchangeable {
    async fn append(&self, append: Append) -> Result<Appended, AppendError> {
        self.now().append(append).await
    }
    async fn read(
        &self,
        thread: &ThreadRef,
        from: Sequence,
        floor: Sequence,
    ) -> Result<Vec<Stored>, BusError> {
        self.now().read(thread, from, floor).await
    }
    async fn last(&self, subject: &Subject) -> Result<Option<Stored>, BusError> {
        self.now().last(subject).await
    }
    async fn schedule(
        &self,
        thread: &ThreadRef,
        at: Timestamp,
        fence: Fence,
    ) -> Result<(), AppendError> {
        self.now().schedule(thread, at, fence).await
    }
    async fn scheduled(&self, thread: &ThreadRef) -> Result<Option<Timestamp>, BusError> {
        self.now().scheduled(thread).await
    }
    async fn purge(&self, thread: &ThreadRef, up_to: Sequence) -> Result<(), BusError> {
        self.now().purge(thread, up_to).await
    }
    async fn threads(&self, tenant: &TenantId, limit: usize) -> Result<Vec<ThreadRef>, BusError> {
        self.now().threads(tenant, limit).await
    }
    async fn server_time(&self) -> Result<Timestamp, BusError> {
        self.now().server_time().await
    }
}

/// The first records of a journal, as a bus that lost the others has them.
async fn without_tail(bus: &MemoryBus, records: usize) -> BusHandle {
    let copy = MemoryBus::default().handle(&InstanceId::new("copy").unwrap());
    for stored in bus.history(0).iter().take(records) {
        let placed = stored.placed().unwrap();
        let (place, leaf) = (&stored.subject.thread, stored.subject.leaf.clone());
        append(&copy, place, leaf, placed.record, placed.nonce).await;
    }
    copy
}

/// Another bus stores the same record at another time.
fn timeless(told: &[Told]) -> Vec<Told> {
    let mut told = told.to_vec();
    for told in &mut told {
        told.data["at"] = Value::Null;
    }
    told
}

async fn exchangeable() -> (World, watch::Sender<BusHandle>) {
    let bus = MemoryBus::default();
    let (exchange, now) = watch::channel(bus.handle(&InstanceId::new("gateway").unwrap()));
    let world = World::over(bus, Arc::new(Exchangeable { now }), settings()).await;
    (world, exchange)
}

#[tokio::test]
async fn a_reader_hears_of_a_lost_tail_and_of_all_that_is_left() {
    let (world, exchange) = exchangeable().await;
    let thread = over(&world).await;
    let mut events = world.events(&thread).await;
    let all = events.until("run_finished").await;
    // The same sequences again, for other records.
    let copy = without_tail(&world.bus, 2).await;
    let ids = SeededIds::new(77);
    for record in [completed(Sequence(2), "other"), finished(), started(1)] {
        append(&copy, &place(&thread), Leaf::Fact, record, ids.nonce()).await;
    }
    exchange.send_replace(copy);
    let reset = events.next().await.unwrap();
    assert_eq!((reset.event.as_str(), reset.id.as_deref()), ("reset", Some("")));
    let told = events.until("run_finished").await;
    assert_eq!(timeless(&told[..2]), timeless(&all[..2]));
    assert_eq!(told[2].data["text"], "other");
    assert_ne!(told[2].id, all[2].id);
}

#[tokio::test]
async fn a_lost_tail_with_nothing_behind_it_is_noticed_too() {
    let (world, exchange) = exchangeable().await;
    let thread = over(&world).await;
    let mut events = world.events(&thread).await;
    let all = events.until("run_finished").await;
    exchange.send_replace(without_tail(&world.bus, 2).await);
    assert_eq!(events.next().await.unwrap().event, "reset");
    let told = events.until("turn_started").await;
    assert_eq!(timeless(&told), timeless(&all[..2]));
    // Whoever comes back after the loss is told as well.
    let last = all.last().unwrap().id.clone().unwrap();
    let told = world.events_after(&thread, &last).await.until("turn_started").await;
    assert_eq!(names(&told), ["reset", "input", "turn_started"]);
}

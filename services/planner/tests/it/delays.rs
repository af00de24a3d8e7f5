//! What delays a reply is told to readers and never to the model.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use ports::live::Subscription;
use ports::model::{Ear, Model, Reply};
use proto::fact::{Fact, Usage};
use proto::input::InputBody;
use proto::live::LiveWord;
use proto::model::{Finish, ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use proto::notice::{Deadline, Next, Notice};
use proto::record::Record;
use serde_json::Map;
use testkit::model::{ScriptedModel, Step, call, end, text};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::world::{World, message};

/// A model that keeps every request it was asked, as text, and fails first.
#[derive(Clone, Default)]
struct Asked(Arc<Mutex<Vec<String>>>);

impl Asked {
    fn model(&self, first: impl Fn() -> Vec<Step> + Send + Sync + 'static) -> ScriptedModel {
        let asked = self.clone();
        ScriptedModel::new(move |request| {
            let mut asked = asked.0.try_lock().unwrap();
            asked.push(serde_json::to_string(request).unwrap());
            Ok(if asked.len() == 1 { first() } else { vec![text("Done."), end(Finish::Stop)] })
        })
    }
}

fn late(deadline: Deadline, retryable: bool) -> Step {
    Step::Break(ModelError {
        kind: ModelErrorKind::Timeout(deadline),
        retryable,
        retry_after: None,
        status: None,
        message: "the model stopped answering".to_owned(),
        code: None,
    })
}

/// The notices of a run, one line each.
async fn told(mut live: Box<dyn Subscription>) -> Vec<String> {
    let mut lines = Vec::new();
    while let Ok(Some((_, bytes))) = tokio::time::timeout(Duration::from_secs(1), live.next()).await
    {
        match serde_json::from_slice(&bytes).unwrap() {
            LiveWord::Notice(notice) => lines.push(match notice.notice {
                Notice::DeadlinePassed { deadline, next } => format!("{deadline:?} {next:?}"),
                Notice::Waiting { because, .. } | Notice::WithoutMemory { because } => because,
            }),
            LiveWord::Text(_) => {}
        }
    }
    lines
}

async fn play(steps: impl Fn() -> Vec<Step> + Send + Sync + 'static) -> (Vec<String>, Vec<String>) {
    let asked = Asked::default();
    let mut world = World::new(asked.model(steps)).await;
    let live = world.listen().await;
    let metrics = world.planner("planner-a", 1);
    world.worker("look");
    world.message("1", "look").await;
    world.until_finished().await;
    let counted = metrics.registry().gather();
    assert!(counted.iter().any(|one| one.name() == "systole_planner_model_deadlines_total"));
    (told(live).await, asked.0.lock().await.clone())
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_stops_is_asked_for_again_and_only_readers_know() {
    let (told, asked) = play(|| vec![text("I was "), late(Deadline::Idle, true)]).await;
    assert_eq!(told[0], format!("{:?} {:?}", Deadline::Idle, Next::AskedAgain));
    assert!(told[1].contains("again in 0.6 s, because the model stopped"), "{told:?}");
    // It waits no more.
    assert_eq!(told[2..], [""]);
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0], asked[1], "the second request is the first");
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_stops_behind_a_call_is_sealed_and_only_readers_know() {
    let (told, asked) =
        play(|| vec![call(0, "look", Map::new()), late(Deadline::Idle, true)]).await;
    assert_eq!(told, [format!("{:?} {:?}", Deadline::Idle, Next::TurnSealed)]);
    assert!(!asked[1].contains("stopped answering"), "{}", asked[1]);
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_takes_too_long_ends_the_run_and_says_so() {
    let (told, _) = play(|| vec![Step::Wait(Duration::from_mins(6)), text("late")]).await;
    assert_eq!(told, [format!("{:?} {:?}", Deadline::Total, Next::RunEnds)]);
}

/// Says that it asks the second model.
struct Second(ScriptedModel);

#[async_trait]
impl Model for Second {
    async fn ask(&self, request: &ModelRequest, ear: &dyn Ear) -> Result<Reply, ModelError> {
        let reply = self.0.ask(request, ear).await;
        ear.asks("second");
        reply
    }
}

#[tokio::test(start_paused = true)]
async fn a_reply_costs_what_the_model_costs_that_gave_it() {
    let scripted = ScriptedModel::new(|_| Ok(vec![text("Done."), end(Finish::Stop)]));
    let mut world = World::new(Second(scripted)).await;
    world.planner("planner-a", 1);
    world.message("1", "hello").await;
    let is_end = |record: &Record| matches!(record, Record::Fact(Fact::TurnCompleted(_)));
    let Record::Fact(Fact::TurnCompleted(turn)) = world.until("the reply", is_end).await else {
        panic!("no reply")
    };
    let Usage { prompt_tokens, micro_usd, .. } = turn.usage;
    assert_eq!(micro_usd, Some(prompt_tokens), "a thousand billionths a token");
}

/// A reply that never ends and notes when it is dropped.
struct Endless(tokio::sync::watch::Sender<Option<Instant>>);

struct Dropped(tokio::sync::watch::Sender<Option<Instant>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.send_replace(Some(Instant::now()));
    }
}

#[async_trait]
impl Model for Endless {
    async fn ask(&self, request: &ModelRequest, _: &dyn Ear) -> Result<Reply, ModelError> {
        if request.transcript.entries().len() > 1 {
            let events = [text("Understood."), end(Finish::Stop)].map(|step| match step {
                Step::Event(event) => Ok(event),
                Step::Wait(_) | Step::Break(_) => unreachable!("two events"),
            });
            return Ok(futures_util::stream::iter(events).boxed());
        }
        let held = Dropped(self.0.clone());
        let words = futures_util::stream::unfold(held, |held| async move {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Some((Ok(ModelEvent::Text { delta: "word ".to_owned() }), held))
        });
        Ok(words.boxed())
    }
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_closes_the_stream_at_once_and_the_thread_goes_on() {
    let (note, dropped) = tokio::sync::watch::channel(None);
    let mut world = World::new(Endless(note)).await;
    world.planner("planner-a", 1);
    world.message("1", "go").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let stopped = Instant::now();
    world.say("2", InputBody::Interrupt(message("the other thing"))).await;
    let finished = world.until_finished().await;
    let closed = dropped.borrow().unwrap().duration_since(stopped);
    assert!(closed < Duration::from_millis(200), "{closed:?}");
    assert!(stopped.elapsed() < Duration::from_secs(1), "{:?}", stopped.elapsed());
    assert_eq!(finished.answer, "Understood.");
    let is_seal = |record: &Record| matches!(record, Record::Fact(Fact::TurnSealed(_)));
    let Record::Fact(Fact::TurnSealed(sealed)) = world.until("the seal", is_seal).await else {
        panic!("no seal")
    };
    assert!(sealed.text.starts_with("word word"), "{sealed:?}");
}

#[tokio::test(start_paused = true)]
async fn the_first_word_goes_at_once_and_then_a_piece_waits_twenty_milliseconds_for_more() {
    let words = || {
        let beat = || Step::Wait(Duration::from_millis(5));
        let words = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|word| [text(word), beat()]);
        [words.concat(), vec![end(Finish::Stop)]].concat()
    };
    let mut world = World::new(ScriptedModel::new(move |_| Ok(words()))).await;
    let mut live = world.listen().await;
    world.planner("planner-a", 1);
    world.message("1", "hello").await;
    let mut pieces = Vec::new();
    let wait = Duration::from_secs(1);
    while let Ok(Some((_, bytes))) = tokio::time::timeout(wait, live.next()).await {
        if let LiveWord::Text(piece) = serde_json::from_slice(&bytes).unwrap() {
            pieces.push((piece.offset, piece.delta));
        }
    }
    let pieces: Vec<(u64, &str)> = pieces.iter().map(|(at, words)| (*at, words.as_str())).collect();
    assert_eq!(pieces, [(0, "a"), (1, "bcdef"), (6, "gh")]);
}

//! What is told while a request is made: why it waits, which deadline ran out, who is asked.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt as _;
use model_openai::EndpointState;
use ports::admission::{Admission, NotAdmitted, Permit, Went, Wish};
use ports::model::{Deaf, Ear, Model as _};
use proto::model::ModelRequest;
use proto::notice::{Deadline, Next, Notice};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::client::{GOOD, busy, endpoint, model, request};
use crate::server::{Server, Then, status, stream};

struct Wide(UnboundedSender<String>);

impl Ear for Wide {
    fn notice(&self, notice: Notice) {
        let words = match notice {
            Notice::DeadlinePassed { deadline, next } => format!("late {deadline:?} {next:?}"),
            Notice::Waiting { because, at_most_ms } => format!("wait {at_most_ms:?} {because}"),
            Notice::WithoutMemory { because } => because,
        };
        drop(self.0.send(words));
    }

    fn asks(&self, model: &str) {
        drop(self.0.send(format!("asks {model}")));
    }
}

fn ear() -> (Wide, UnboundedReceiver<String>) {
    let (sender, receiver) = unbounded_channel();
    (Wide(sender), receiver)
}

fn told(mut receiver: UnboundedReceiver<String>) -> Vec<String> {
    std::iter::from_fn(|| receiver.try_recv().ok()).collect()
}

#[tokio::test]
async fn a_wait_that_a_provider_asks_for_is_kept_in_seconds_and_as_a_date_and_told() {
    // The date is told by the server's own clock, which is a second ahead of nobody.
    let date =
        "date: Thu, 01 Jan 2026 00:00:00 GMT\r\nretry-after: Thu, 01 Jan 2026 00:00:01 GMT\r\n";
    for header in ["retry-after: 1\r\n", date] {
        let limit = status("429 Too Many", header, r#"{"error":{"message":"slow down"}}"#);
        let mut server =
            Server::start(vec![(limit, Then::Close), (stream(GOOD), Then::Close)]).await;
        let (ear, words) = ear();
        let began = tokio::time::Instant::now();
        let reply = model(vec![endpoint(&server)]).ask(&request(), &ear).await.unwrap();
        drop(reply.collect::<Vec<_>>().await);
        assert!(began.elapsed() >= Duration::from_secs(1), "{header}");
        assert_eq!(server.requests(), 2);
        let expected = "wait Some(1000) asking the model again in 1.0 s (2 of 3), because the \
                        endpoint answered 429 Too Many Requests: slow down";
        assert_eq!(told(words), ["asks m", expected, "wait None "], "{header}");
    }
}

#[tokio::test]
async fn a_first_token_that_does_not_come_is_told_and_the_next_endpoint_is_asked() {
    let silent = Server::start(vec![(stream(": working\n\n"), Then::Hold)]).await;
    let good = Server::start(vec![(stream(GOOD), Then::Close)]).await;
    let mut first = endpoint(&silent);
    first.deadlines.first_token = Duration::from_millis(30);
    let (ear, words) = ear();
    let request = ModelRequest { fallbacks: vec!["other".to_owned()], ..request() };
    let models = vec![first, endpoint(&good)];
    drop(model(models).ask(&request, &ear).await.unwrap().collect::<Vec<_>>().await);
    let late = format!("late {:?} {:?}", Deadline::FirstToken, Next::AskedElsewhere);
    assert_eq!(told(words), ["asks m", &late, "asks m"]);
}

#[tokio::test]
async fn whoever_watches_endpoints_hears_that_one_rests_and_works_again() {
    let mut answers = vec![busy().remove(0); 5];
    answers.push((stream(GOOD), Then::Close));
    let server = Server::start(answers).await;
    let mut only = endpoint(&server);
    only.patience.attempts = 1;
    only.patience.longest_wait = Duration::from_secs(20);
    let (note, mut states) = unbounded_channel();
    let model = model(vec![only]).watched(move |_, state| note.send(state).unwrap());
    for _ in 0..5 {
        assert!(model.ask(&request(), &Deaf).await.is_err());
    }
    drop(model.ask(&request(), &Deaf).await.unwrap());
    let heard: Vec<_> = std::iter::from_fn(|| states.try_recv().ok()).collect();
    assert_eq!(heard, [EndpointState::Works, EndpointState::Rests, EndpointState::Works]);
}

/// Gives every place, and tells how each request went.
struct Counting(UnboundedSender<String>);

#[derive(Debug)]
struct Place(UnboundedSender<String>, Went);

#[async_trait]
impl Admission for Counting {
    async fn admit(&self, wish: &Wish, _: &dyn Ear) -> Result<Box<dyn Permit>, NotAdmitted> {
        self.0.send(format!("{} for {:?}", wish.model, wish.tenant)).unwrap();
        Ok(Box::new(Place(self.0.clone(), Went::Dropped)))
    }
}

impl Permit for Place {
    fn went(&mut self, went: Went) {
        self.1 = went;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.send(format!("{:?}", self.1)).unwrap();
    }
}

#[tokio::test]
async fn every_request_has_a_place_and_says_how_it_went() {
    let limit = status("429 Too Many", "retry-after: 0\r\n", "");
    let counted = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}],\
                   \"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
    let answers = vec![(limit, Then::Close), (stream(counted), Then::Close)];
    let server = Server::start(answers).await;
    let (said, heard) = unbounded_channel();
    let model = model(vec![endpoint(&server)]).admitted_by(Arc::new(Counting(said)));
    drop(model.ask(&request(), &Deaf).await.unwrap().collect::<Vec<_>>().await);
    drop(model.ask(&request(), &Deaf).await.unwrap());
    drop(model);
    assert_eq!(
        told(heard),
        [
            "m for None",
            "Throttled(Some(0ns))",
            "m for None",
            "Answered(Some(9))",
            "m for None",
            "Dropped"
        ]
    );
}

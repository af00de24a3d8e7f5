//! The client over real sockets.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use model_openai::{Endpoint, OpenAiModel};
use ports::clock::{Clock, Ids};
use ports::model::{Deaf, Model as _, Reply};
use proto::agent::Protocol;
use proto::ids::{Nonce, ThreadId, ToolCallId};
use proto::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use proto::notice::Deadline;
use proto::time::Timestamp;
use proto::transcript::{Entry, Transcript};

use crate::reader::shown;
use crate::server::{Seen, Server, Then, status, stream};

struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
}

impl Ids for Fixed {
    fn nonce(&self) -> Nonce {
        panic!("the client makes no records")
    }
    fn tool_call_id(&self) -> ToolCallId {
        panic!("the client names no calls")
    }
    fn thread_id(&self, _: Timestamp) -> ThreadId {
        panic!("the client opens no threads")
    }
    fn jitter(&self, _: Duration) -> Duration {
        Duration::ZERO
    }
}

pub(crate) fn endpoint(server: &Server) -> Endpoint {
    let mut endpoint = Endpoint::new(server.base_url(), "the-key");
    endpoint.patience.backoff = Duration::from_millis(1);
    endpoint.deadlines.grace = Duration::from_millis(20);
    endpoint
}

pub(crate) fn model(endpoints: Vec<Endpoint>) -> OpenAiModel {
    // Only the first test of the process installs it.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    OpenAiModel::new(endpoints, Arc::new(Fixed), Arc::new(Fixed)).unwrap()
}

pub(crate) fn request() -> ModelRequest {
    ModelRequest {
        agent: "tester".parse().unwrap(),
        model: "m".to_owned(),
        protocol: Protocol::Native,
        head: Vec::new(),
        transcript: Transcript::new(vec![Entry::User { text: "Go.".to_owned() }]).unwrap(),
        tail: Vec::new(),
        tools: Vec::new(),
        temperature: None,
        fallbacks: Vec::new(),
        max_completion_tokens: None,
        profile: None,
        tenant: None,
        likely_tokens: 0,
        estimate: proto::model::Estimate::default(),
        failed_rounds: 0,
    }
}

async fn ask(endpoints: Vec<Endpoint>) -> Result<String, ModelError> {
    let reply: Reply = model(endpoints).ask(&request(), &Deaf).await?;
    Ok(shown(reply.collect().await))
}

pub(crate) const GOOD: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi.\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const SAID: &str = "text Hi.\nend Some(Stop)\n";

#[tokio::test]
async fn a_reply_comes_through_and_the_request_went_where_it_should() {
    let mut server = Server::start(vec![(stream(GOOD), Then::Close)]).await;
    assert_eq!(ask(vec![endpoint(&server)]).await.unwrap(), SAID);
    let Seen::Request(request) = server.next().await else { panic!("no request") };
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: Bearer the-key"), "{head}");
    let expected = r#"{"messages":[{"content":"Go.","role":"user"}],"model":"m","stream":true,"stream_options":{"include_usage":true}}"#;
    assert_eq!(body, expected);
}

#[tokio::test]
async fn the_end_mark_ends_the_reply_although_the_socket_stays_open() {
    let mut server = Server::start(vec![(stream(GOOD), Then::Hold)]).await;
    assert_eq!(ask(vec![endpoint(&server)]).await.unwrap(), SAID);
    server.next().await;
    assert_eq!(server.next().await, Seen::Closed);
}

#[tokio::test]
async fn a_finish_reason_and_a_short_grace_replace_the_end_mark() {
    let open = GOOD.split("data: [DONE]").next().unwrap();
    let server = Server::start(vec![(stream(open), Then::Hold)]).await;
    assert_eq!(ask(vec![endpoint(&server)]).await.unwrap(), SAID);
}

#[tokio::test]
async fn dropping_a_reply_closes_its_connection() {
    let open = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n";
    let mut server = Server::start(vec![(stream(open), Then::Hold)]).await;
    let mut reply = model(vec![endpoint(&server)]).ask(&request(), &Deaf).await.unwrap();
    assert_eq!(shown(vec![reply.next().await.unwrap()]), "text Hi\n");
    server.next().await;
    drop(reply);
    assert_eq!(server.next().await, Seen::Closed);
}

#[tokio::test]
async fn silence_ends_a_reply_however_often_a_comment_breaks_it() {
    let open = "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n: still here\n\n";
    let server = Server::start(vec![(stream(open), Then::Hold)]).await;
    let mut endpoint = endpoint(&server);
    endpoint.deadlines.idle = Duration::from_millis(50);
    let expected = "text Hi\nTimeout(Idle) retryable=true: the model stopped answering\n";
    assert_eq!(ask(vec![endpoint]).await.unwrap(), expected);
}

#[tokio::test]
async fn a_first_token_that_does_not_come_is_an_error_of_its_own() {
    let server = Server::start(vec![(stream(": working\n\n"), Then::Hold)]).await;
    let mut endpoint = endpoint(&server);
    endpoint.deadlines.first_token = Duration::from_millis(50);
    let error = ask(vec![endpoint]).await.unwrap_err();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (
            ModelErrorKind::Timeout(Deadline::FirstToken),
            "the model did not begin to answer in time"
        )
    );
}

#[tokio::test]
async fn a_busy_endpoint_is_asked_again_and_a_wrong_request_is_not() {
    let busy = status("503 Busy", "", "<html>busy</html>");
    let mut server = Server::start(vec![(busy, Then::Close), (stream(GOOD), Then::Close)]).await;
    assert_eq!(ask(vec![endpoint(&server)]).await.unwrap(), SAID);
    assert_eq!(server.requests(), 2);

    let wrong = status("400 Bad Request", "", r#"{"message":"no such model"}"#);
    let mut server = Server::start(vec![(wrong, Then::Close)]).await;
    let error = ask(vec![endpoint(&server)]).await.unwrap_err();
    assert_eq!(
        (error.kind, error.retryable, error.status, error.message.as_str()),
        (
            ModelErrorKind::HttpError,
            false,
            Some(400),
            "the endpoint answered 400 Bad Request: no such model"
        )
    );
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn a_key_that_a_provider_sends_back_is_not_told() {
    let body = r#"{"error":{"message":"wrong key: the-key","code":401}}"#;
    let refused = status("401 Unauthorized", "", body);
    let in_band = stream(
        "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\ndata: {\"error\":{\"message\":\"wrong key: the-key\",\"code\":401}}\n\n",
    );
    for answer in [refused, in_band] {
        let server = Server::start(vec![(answer, Then::Close)]).await;
        let told = match ask(vec![endpoint(&server)]).await {
            Err(error) => error.message,
            Ok(said) => said,
        };
        assert!(told.contains("wrong key: [redacted key]"), "{told}");
    }
}

#[tokio::test]
async fn a_wait_that_is_too_long_is_told_and_not_waited_for() {
    let limit = status(
        "429 Too Many",
        "retry-after: 86400\r\n",
        r#"{"error":{"message":"later","code":429}}"#,
    );
    let mut server = Server::start(vec![(limit, Then::Close)]).await;
    let error = ask(vec![endpoint(&server)]).await.unwrap_err();
    assert_eq!((error.retryable, error.retry_after), (true, Some(Duration::from_hours(24))));
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn a_body_that_is_cut_before_its_first_event_is_asked_for_again() {
    let cut = stream("data: {\"choi");
    let server = Server::start(vec![(cut, Then::Close), (stream(GOOD), Then::Close)]).await;
    assert_eq!(ask(vec![endpoint(&server)]).await.unwrap(), SAID);
}

#[tokio::test]
async fn a_body_that_is_cut_after_an_event_is_never_replayed() {
    let cut = stream("data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n");
    let mut server = Server::start(vec![(cut, Then::Close)]).await;
    let expected = "text Hi\nTruncated retryable=true: the body ended without a finish reason or an end mark\n";
    assert_eq!(ask(vec![endpoint(&server)]).await.unwrap(), expected);
    assert_eq!(server.requests(), 1);
}

#[tokio::test]
async fn the_next_endpoint_answers_when_the_first_does_not() {
    let mut gone = Endpoint::new("http://127.0.0.1:9/v1", "");
    gone.patience.attempts = 1;
    let server = Server::start(vec![(stream(GOOD), Then::Close)]).await;
    assert_eq!(ask(vec![gone, endpoint(&server)]).await.unwrap(), SAID);
}

#[tokio::test]
async fn nobody_there_is_a_network_error() {
    let mut gone = Endpoint::new("http://127.0.0.1:9/v1", "");
    gone.patience.attempts = 1;
    let error = ask(vec![gone]).await.unwrap_err();
    assert_eq!((error.kind, error.retryable), (ModelErrorKind::Network, true));
}

pub(crate) fn busy() -> Vec<(String, Then)> {
    vec![(status("503 Busy", "", "busy"), Then::Close)]
}

#[tokio::test]
async fn an_endpoint_that_keeps_failing_rests_and_the_next_is_asked_at_once() {
    let mut ill = Server::start(busy()).await;
    let good = Server::start(vec![(stream(GOOD), Then::Close)]).await;
    let mut first = endpoint(&ill);
    first.patience.attempts = 1;
    let model = model(vec![first, endpoint(&good)]);
    for _ in 0..8 {
        let reply = model.ask(&request(), &Deaf).await.unwrap();
        assert_eq!(shown(reply.collect().await), SAID);
    }
    assert_eq!(ill.requests(), 5);
}

#[tokio::test]
async fn whoever_asks_the_only_endpoint_while_it_rests_is_told_how_long() {
    let mut ill = Server::start(busy()).await;
    let mut only = endpoint(&ill);
    only.patience.attempts = 1;
    only.patience.longest_wait = Duration::from_secs(1);
    let model = model(vec![only]);
    let mut last = None;
    for _ in 0..6 {
        last = model.ask(&request(), &Deaf).await.err();
    }
    let error = last.unwrap();
    assert!(error.message.contains("kept failing"), "{error}");
    assert!(error.retryable && error.retry_after > Some(Duration::from_secs(1)), "{error:?}");
    assert_eq!(ill.requests(), 5);
}

#[tokio::test]
async fn the_next_model_is_asked_for_when_the_one_before_fails() {
    let none = status("404 Not Found", "", r#"{"error":{"message":"no such model"}}"#);
    let answers =
        vec![(none.clone(), Then::Close), (none, Then::Close), (stream(GOOD), Then::Close)];
    let mut server = Server::start(answers).await;
    let fallbacks = vec!["second".to_owned(), "third".to_owned(), "fourth".to_owned()];
    let request = ModelRequest { fallbacks, ..request() };
    let reply = model(vec![endpoint(&server)]).ask(&request, &Deaf).await.unwrap();
    let signals: Vec<_> = reply.collect().await;
    let Some(Ok(ModelEvent::End(end))) = signals.last() else { panic!("no end: {signals:?}") };
    assert_eq!(end.model.as_deref(), Some("third"));
    for name in ["m", "second", "third"] {
        let Seen::Request(request) = server.next().await else { panic!("no request") };
        assert!(request.contains(&format!(r#""model":"{name}""#)), "{request}");
    }
    assert_eq!(server.requests(), 0);
}

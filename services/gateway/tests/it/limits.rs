//! Everything has a bound, and an end.

use std::sync::Arc;
use std::time::Duration;

use gateway::Settings;
use proto::ids::InstanceId;
use serde_json::json;
use testkit::memory::MemoryBus;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::client::{Events, PATIENCE, ask};
use crate::world::{World, settings};

#[tokio::test]
async fn a_body_that_is_too_large_is_refused() {
    let world = World::with(Settings { max_body: 1000, ..settings() }).await;
    let large = json!({ "agent": "helper", "input": { "text": "x".repeat(2000) } });
    let refused = world.post("/v1/threads", &large).await;
    assert_eq!(refused.refusal(), (413, "message_too_large"));
    let text = format!(
        "POST /v1/threads HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\
         content-type: application/json\r\n\r\n7d0\r\n{}\r\n",
        "x".repeat(2000)
    );
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    assert_eq!(world.count("input"), 0);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_not_waited_for() {
    let patience = Duration::from_millis(200);
    let world = World::with(Settings { patience, ..settings() }).await;
    let mut stream = TcpStream::connect(world.address).await.unwrap();
    let head = "POST /v1/threads HTTP/1.1\r\nhost: localhost\r\n\
                content-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 408");
}

#[tokio::test]
async fn readers_beyond_the_bound_are_sent_away_until_one_leaves() {
    let world = World::with(Settings { max_readers: 2, ..settings() }).await;
    let thread = world.begin("hello").await;
    let one = world.events(&thread).await;
    let _other = world.events(&thread).await;
    assert_eq!(Events::open(world.address, &thread, &[]).await.err(), Some(503));
    drop(one);
    let again = async {
        while Events::open(world.address, &thread, &[]).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, again).await.unwrap();
}

#[tokio::test]
async fn a_bus_that_is_away_is_an_error_in_time() {
    let patience = Duration::from_secs(2);
    let bus = MemoryBus::default();
    let me = InstanceId::new("gateway").unwrap();
    let journal = Arc::new(bus.handle(&me));
    let world = World::over(bus.clone(), journal, Settings { patience, ..settings() }).await;
    let thread = world.begin("hello").await;
    bus.cut_off(&me, Duration::from_hours(1));
    let refused = world.get(&format!("/v1/threads/{thread}")).await;
    assert_eq!(refused.refusal(), (503, "store_unavailable"));
    assert_eq!(refused.header("retry-after"), Some("1"));
    let said = json!({ "text": "and?" });
    let refused = world.post(&format!("/v1/threads/{thread}/inputs"), &said).await;
    assert_eq!(refused.refusal(), (503, "store_unavailable"));
    assert_eq!(world.get("/livez").await.status, 200);
}

#[tokio::test]
async fn operators_are_told_whether_it_is_ready_and_what_it_did() {
    let world = World::new().await;
    assert_eq!(world.get("/readyz").await.status, 503);
    world.health.started();
    assert_eq!(world.get("/readyz").await.status, 200);
    let thread = world.begin("hello").await;
    let _events = world.events(&thread).await;
    world.get("/v1/threads/nonsense").await;
    let told = world.get("/metrics").await.body.as_str().unwrap().to_owned();
    for line in [
        "systole_gateway_inputs_total{input=\"message\"} 1",
        "systole_gateway_readers 1",
        "systole_gateway_requests_total{status=\"201\"} 1",
        "systole_gateway_requests_total{status=\"400\"} 1",
        "systole_gateway_request_seconds_count 2",
    ] {
        assert!(told.lines().any(|told| told == line), "{line} in {told}");
    }
}

#[tokio::test]
async fn a_gateway_that_stops_tells_its_readers_to_come_back() {
    let mut world = World::new().await;
    let thread = world.begin("hello").await;
    let mut events = world.events(&thread).await;
    events.until("input").await;
    let address = world.address;
    assert!(world.stop().await, "it ends without being dropped");
    assert_eq!(events.next().await, None);
    let last = events.asides.last().unwrap();
    assert!(
        last.starts_with(": the gateway is being stopped") && last.contains("retry: "),
        "{last}"
    );
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_quiet_stream_shows_that_it_lives() {
    let keep_alive = Duration::from_millis(50);
    let world = World::with(Settings { keep_alive, ..settings() }).await;
    let thread = world.begin("hello").await;
    let mut events = world.events(&thread).await;
    events.until("input").await;
    tokio::time::sleep(4 * keep_alive).await;
    let body = json!({ "text": "and?" });
    ask(world.address, &format!("POST /v1/threads/{thread}/inputs"), &[], Some(&body)).await;
    events.until("input").await;
    assert!(events.asides.iter().any(|aside| aside.contains("still here")), "{:?}", events.asides);
}

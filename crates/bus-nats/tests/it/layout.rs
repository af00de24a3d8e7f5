//! What exists on the server for us, and messages that do not belong there.

use std::time::Duration;

use bus_nats::inspect::inspect;
use bus_nats::{NatsBus, Settings};
use bytes::Bytes;
use ports::artifacts::Artifacts;
use ports::journal::{Append, Fence, Journal};
use ports::queues::{Queue, Queues};
use proto::ids::{Nonce, Partition, TenantId, ThreadId, ThreadRef, ToolName};
use proto::subject::{Leaf, Subject};
use testkit::servers::require_server;

use crate::server::{Server, program};

fn place() -> ThreadRef {
    let tenant = TenantId::new("acme").unwrap();
    ThreadRef { partition: Partition(0), tenant, thread: ThreadId::from_parts(1, 1) }
}

fn queues() -> [Queue; 3] {
    let part = Partition(0);
    [Queue::Inbox(part), Queue::Progress(part), Queue::Tool(part, ToolName::new("look").unwrap())]
}

async fn ack_waits(settings: Settings) -> Vec<(String, Duration)> {
    let queues = inspect(settings).await.unwrap().queues;
    let mut found: Vec<_> = queues.into_iter().map(|queue| (queue.name, queue.ack_wait)).collect();
    found.sort();
    found
}

#[tokio::test]
async fn a_consumer_that_exists_takes_over_a_changed_ack_wait() {
    let Some(program) = require_server("nats-server", program()) else { return };
    let server = Server::start(&program).await;
    let with =
        |seconds: u64| Settings { ack_wait: Duration::from_secs(seconds), ..server.settings() };
    for seconds in [1, 3, 2] {
        let bus = NatsBus::connect(with(seconds)).await.unwrap();
        for queue in queues() {
            assert_eq!(bus.pull(&queue, 1, Duration::ZERO).await.unwrap(), []);
        }
        let wait = Duration::from_secs(seconds);
        let expected = ["planner_in", "planner_progress", "tool_look"];
        let expected = expected.map(|name| (name.to_owned(), wait)).to_vec();
        assert_eq!(ack_waits(server.settings()).await, expected);
    }
}

#[tokio::test]
async fn a_message_of_no_thread_is_set_aside_and_stops_nobody() {
    let Some(program) = require_server("nats-server", program()) else { return };
    let server = Server::start(&program).await;
    let bus = server.bus().await;
    let queue = Queue::Inbox(Partition(0));
    server.publish("sy.0.acme.nobody.in", "who am I").await;
    let nonce = Nonce::new("0123456789abcdef").unwrap();
    let append = Append {
        subject: Subject::new(place(), Leaf::In),
        payload: Bytes::from_static(b"{}"),
        nonce,
        fence: Fence::None,
        dedup: None,
    };
    bus.append(append).await.unwrap();
    let pulled = bus.pull(&queue, 2, Duration::from_millis(500)).await.unwrap();
    assert_eq!(pulled.len(), 1, "the other one comes along with it");
    bus.ack(&pulled[0].token).await.unwrap();
    // Its consumer's patience passes, and it does not come again.
    let again = bus.pull(&queue, 2, server.settings().ack_wait * 2).await.unwrap();
    assert_eq!(again, []);
    assert_eq!(server.unacknowledged("planner_in").await, 0);
}

#[tokio::test]
async fn a_large_payload_is_kept_where_messages_must_be_small() {
    let Some(program) = require_server("nats-server", program()) else { return };
    let server = Server::start_with(&program, "max_payload: 32768").await;
    let bus = server.bus().await;
    let payload = Bytes::from(vec![b'x'; 300_000]);
    let kept = bus.put(&place(), payload.clone()).await.unwrap();
    assert_eq!(bus.get(&place(), &kept.id).await, Ok(Some(payload)));
}

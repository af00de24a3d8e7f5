//! The server or the way to it goes, and comes back.

use std::time::Duration;

use bytes::Bytes;
use ports::BusError;
use ports::working_memory::{Claim, Sample, Snapshot, TurnText, WorkingMemory};
use proto::ids::ToolName;
use proto::ids::{InstanceId, Partition, Sequence, TenantId, ThreadId, ThreadRef, ToolCallId};
use proto::time::Timestamp;
use testkit::servers::require_server;
use tokio::time::{Instant, timeout};
use working_redis::RedisMemory;

use crate::proxy::{Proxy, Way};
use crate::server::{PATIENCE, Server, redis, settings};

pub(crate) const LONG: Duration = Duration::from_hours(1);

pub(crate) fn thread() -> ThreadRef {
    ThreadRef {
        partition: Partition(0),
        tenant: TenantId::new("acme").unwrap(),
        thread: ThreadId::from_parts(1, 1),
    }
}

pub(crate) fn call() -> ToolCallId {
    ToolCallId::new("call00001").unwrap()
}

fn worker() -> InstanceId {
    InstanceId::new("w1").unwrap()
}

fn snapshot(sequence: u64) -> Snapshot {
    Snapshot { sequence: Sequence(sequence), payload: Bytes::from_static(b"state") }
}

/// Asks until the server answers again.
async fn until_it_answers(memory: &RedisMemory) {
    let answers = async {
        while memory.ping().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, answers).await.unwrap();
}

#[tokio::test]
async fn a_connection_that_was_cut_is_made_again_within_the_request() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let server = Server::start(&program).await;
    let proxy = Proxy::to(server.port()).await;
    let memory = RedisMemory::connect(settings(proxy.port)).await.unwrap();
    for sequence in 1..=20 {
        memory.keep_snapshot(&thread(), snapshot(sequence)).await.unwrap();
        proxy.cut();
        assert_eq!(memory.snapshot(&thread()).await, Ok(Some(snapshot(sequence))));
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_off_repeats_what_may_be_repeated_and_nothing_else() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let server = Server::start(&program).await;
    let (memory, proxy) = (server.memory().await, Proxy::to(server.port()).await);
    let behind = RedisMemory::connect(settings(proxy.port)).await.unwrap();
    let tool = ToolName::new("probe").unwrap();
    let sample = Sample { at: Timestamp(1), ok: false };
    proxy.set(Way::CutsOneAnswer);
    let counted = behind.add_samples(&tool, &[sample], LONG).await.unwrap_err();
    assert!(counted.is_transient(), "{counted}");
    assert_eq!(memory.samples(&tool).await, Ok(vec![sample]));
    until_it_answers(&behind).await;
    proxy.set(Way::CutsOneAnswer);
    assert_eq!(behind.claim(&thread(), &call(), &worker(), LONG).await, Ok(Claim::Won));
}

#[tokio::test]
async fn a_way_that_leads_nowhere_costs_one_deadline_and_is_left() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let server = Server::start(&program).await;
    let proxy = Proxy::to(server.port()).await;
    let patient = settings(proxy.port);
    let (request, memory) = (patient.request, RedisMemory::connect(patient).await.unwrap());
    proxy.set(Way::Nowhere);
    let before = Instant::now();
    let late = memory.snapshot(&thread()).await.unwrap_err();
    assert!(late.is_transient() && late.to_string().contains("in time"), "{late}");
    assert!(before.elapsed() < request + Duration::from_secs(2), "{:?}", before.elapsed());
    // Between two attempts nobody waits.
    let before = Instant::now();
    for _ in 0..1000 {
        assert!(memory.snapshot(&thread()).await.is_err());
    }
    assert!(before.elapsed() < 100 * request, "{:?}", before.elapsed());
    proxy.set(Way::Open);
    until_it_answers(&memory).await;
}

#[tokio::test]
async fn a_killed_server_is_an_error_at_once_and_a_new_one_is_found() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let mut server = Server::start(&program).await;
    let memory = server.memory().await;
    memory.keep_snapshot(&thread(), snapshot(1)).await.unwrap();
    server.kill();
    let before = Instant::now();
    for _ in 0..1000 {
        let gone = memory.snapshot(&thread()).await.unwrap_err();
        assert!(matches!(gone, BusError::Unavailable(_)), "{gone}");
    }
    // A thousand deadlines would be minutes.
    assert!(before.elapsed() < Duration::from_secs(20), "{:?}", before.elapsed());
    server.launch_again();
    until_it_answers(&memory).await;
    assert_eq!(memory.snapshot(&thread()).await, Ok(None));
    memory.keep_snapshot(&thread(), snapshot(2)).await.unwrap();
    assert_eq!(memory.snapshot(&thread()).await, Ok(Some(snapshot(2))));
}

#[tokio::test]
async fn many_who_ask_while_it_is_gone_all_hear_so_within_their_deadline() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let mut server = Server::start(&program).await;
    let memory = server.memory().await;
    server.kill();
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..200 {
        let memory = memory.clone();
        asking.spawn(async move {
            let text = TurnText { started: Sequence(1), ..TurnText::default() };
            timeout(PATIENCE, memory.keep_turn_text(&thread(), text)).await
        });
    }
    while let Some(answer) = asking.join_next().await {
        assert!(matches!(answer.unwrap(), Ok(Err(BusError::Unavailable(_)))));
    }
}

//! What is kept goes, by order or because memory is short.

use bytes::Bytes;
use ports::BusError;
use ports::working_memory::{Claim, Sample, Snapshot, TurnText, WorkingMemory};
use proto::ids::{InstanceId, Sequence, ToolName};
use proto::time::Timestamp;
use testkit::servers::require_server;
use working_redis::{RedisMemory, Settings, VALUE_LIMIT};

use crate::outages::{LONG, call, thread};
use crate::server::{Server, oldest_redis, redis, settings};

fn worker(name: &str) -> InstanceId {
    InstanceId::new(name).unwrap()
}

fn text(started: u64) -> TurnText {
    TurnText { started: Sequence(started), text: "so far".to_owned(), reasoning: String::new() }
}

#[tokio::test]
async fn after_everything_was_forgotten_all_goes_on() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let server = Server::start(&program).await;
    let (memory, tool) = (server.memory().await, ToolName::new("probe").unwrap());
    let sample = Sample { at: Timestamp(1), ok: true };
    let state = Snapshot { sequence: Sequence(9), payload: Bytes::from_static(b"state") };
    for _ in 0..2 {
        let claim = memory.claim(&thread(), &call(), &worker("w1"), LONG).await;
        assert_eq!(claim, Ok(Claim::Won));
        memory.keep_snapshot(&thread(), state.clone()).await.unwrap();
        memory.keep_turn_text(&thread(), text(3)).await.unwrap();
        memory.add_samples(&tool, &[sample], LONG).await.unwrap();
        memory.set_active(&thread(), Some(Timestamp(1))).await.unwrap();
        assert_eq!(memory.take_probe(&tool, &worker("w1"), LONG).await, Ok(true));
        assert_eq!(server.command(&["FLUSHALL"]).await, "+OK");
        memory.release(&thread(), &call(), &worker("w1")).await.unwrap();
        assert_eq!(memory.snapshot(&thread()).await, Ok(None));
        assert_eq!(memory.turn_text(&thread()).await, Ok(None));
        assert_eq!(memory.samples(&tool).await, Ok(vec![]));
        assert_eq!(memory.active(Timestamp(9), 9).await, Ok(vec![]));
        assert_eq!(memory.take_probe(&tool, &worker("w2"), LONG).await, Ok(true));
        assert_eq!(server.command(&["FLUSHALL"]).await, "+OK");
    }
}

#[tokio::test]
async fn nothing_stays_for_ever() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let server = Server::start(&program).await;
    let (memory, tool) = (server.memory().await, ToolName::new("probe").unwrap());
    memory.keep_turn_text(&thread(), text(3)).await.unwrap();
    memory.add_samples(&tool, &[Sample { at: Timestamp(1), ok: true }], LONG).await.unwrap();
    let state = Snapshot { sequence: Sequence(9), payload: Bytes::new() };
    memory.keep_snapshot(&thread(), state).await.unwrap();
    memory.keep_done(&thread(), &call(), Bytes::new(), LONG).await.unwrap();
    memory.mark_cancelled(&thread(), &call(), LONG).await.unwrap();
    memory.claim(&thread(), &call(), &worker("w1"), LONG).await.unwrap();
    memory.take_probe(&tool, &worker("w1"), LONG).await.unwrap();
    let fading = "local fading = 0 for _, key in ipairs(redis.call('KEYS', '*')) do \
                  if redis.call('PTTL', key) > 0 then fading = fading + 1 end end return fading";
    assert_eq!(server.command(&["EVAL", fading, "0"]).await, ":8");
    assert_eq!(server.command(&["DBSIZE"]).await, ":8");
}

async fn fill(memory: &RedisMemory, count: u64) -> Result<(), BusError> {
    let payload = Bytes::from(vec![b'x'; 100_000]);
    for number in 0..count {
        let place = proto::ids::ThreadRef {
            thread: proto::ids::ThreadId::from_parts(number, 7),
            ..thread()
        };
        let state = Snapshot { sequence: Sequence(number), payload: payload.clone() };
        memory.keep_snapshot(&place, state.clone()).await?;
        assert_eq!(memory.snapshot(&place).await?, Some(state));
    }
    Ok(())
}

const SMALL: [&str; 3] = ["--maxmemory", "8mb", "--maxmemory-policy"];

#[tokio::test]
async fn a_server_that_evicts_takes_ever_new_threads() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let arguments = [SMALL.as_slice(), &["allkeys-lru"]].concat();
    let server = Server::start_with(&program, &arguments).await;
    let memory = server.memory().await;
    fill(&memory, 300).await.unwrap();
    let facts = memory.facts().await.unwrap();
    assert_eq!(facts.eviction_policy.as_deref(), Some("allkeys-lru"));
    assert_eq!(facts.memory_limit, Some(8 * 1024 * 1024));
}

#[tokio::test]
async fn a_server_that_is_full_says_so_and_what_to_do() {
    for program in [redis(), oldest_redis()] {
        let Some(program) = require_server("redis-server", program) else { return };
        let arguments = [SMALL.as_slice(), &["noeviction"]].concat();
        let server = Server::start_with(&program, &arguments).await;
        let memory = server.memory().await;
        let full = fill(&memory, 300).await.unwrap_err();
        assert!(matches!(&full, BusError::Full(why) if why.contains("maxmemory")), "{full}");
        // What is there can still be read.
        assert_eq!(memory.turn_text(&thread()).await, Ok(None));
    }
}

#[tokio::test]
async fn a_value_that_is_too_large_is_refused_before_it_is_sent() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let server = Server::start(&program).await;
    let memory = server.memory().await;
    let limit = VALUE_LIMIT;
    let payload = Bytes::from(vec![b'x'; limit + 1]);
    let state = Snapshot { sequence: Sequence(1), payload: payload.clone() };
    let refused = Err(BusError::TooLarge { bytes: limit + 1, limit });
    assert_eq!(memory.keep_snapshot(&thread(), state).await, refused);
    let kept = memory.keep_done(&thread(), &call(), payload.slice(..limit), LONG).await;
    assert_eq!(kept.map(|bytes| bytes.len()), Ok(limit));
}

#[tokio::test]
async fn what_another_program_wrote_is_an_error_and_no_panic() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let server = Server::start(&program).await;
    let memory = server.memory().await;
    let key = format!("sy:{{{}}}:snapshot", thread());
    server.command(&["SET", &key, "text"]).await;
    let strange = memory.snapshot(&thread()).await.unwrap_err();
    assert!(matches!(&strange, BusError::Corrupt(_)), "{strange}");
    server.command(&["DEL", &key]).await;
    server.command(&["HSET", &key, "sequence", "x", "payload", "y"]).await;
    let strange = memory.snapshot(&thread()).await.unwrap_err();
    assert!(matches!(&strange, BusError::Corrupt(why) if why.contains(&key)), "{strange}");
    server.command(&["ZADD", "sy:active", "1", "nonsense"]).await;
    let strange = memory.active(Timestamp(9), 9).await.unwrap_err();
    assert!(matches!(&strange, BusError::Corrupt(_)), "{strange}");
}

#[tokio::test]
async fn two_prefixes_see_nothing_of_one_another() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let server = Server::start(&program).await;
    let one = server.memory().await;
    let prefix = "other".to_owned();
    let other = RedisMemory::connect(Settings { prefix, ..settings(server.port()) }).await.unwrap();
    one.keep_turn_text(&thread(), text(3)).await.unwrap();
    assert_eq!(other.turn_text(&thread()).await, Ok(None));
}

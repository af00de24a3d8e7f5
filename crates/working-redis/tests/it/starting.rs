//! The first connection.

use std::time::Duration;

use ports::BusError;
use testkit::servers::require_server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use working_redis::{RedisMemory, Settings};

use crate::server::{Server, free_port, redis, settings};

#[tokio::test]
async fn a_server_that_is_not_there_is_given_up_with_its_address() {
    let port = free_port();
    let hasty = Settings { connect: Duration::from_millis(300), ..settings(port) };
    let gone = RedisMemory::connect(hasty).await.unwrap_err();
    let address = format!("redis://127.0.0.1:{port}");
    assert!(gone.is_transient() && gone.to_string().contains(&address), "{gone}");
}

#[tokio::test]
async fn a_server_that_comes_late_is_waited_for() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let mut server = Server::start(&program).await;
    server.kill();
    let connecting = RedisMemory::connect(server.settings());
    let (memory, ()) = tokio::join!(connecting, async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.launch_again();
    });
    memory.unwrap().ping().await.unwrap();
}

/// Answers every request with the same bytes.
async fn parrot(answer: &'static str) -> (u16, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut answering = JoinSet::new();
    answering.spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 4096];
            while matches!(stream.read(&mut asked).await, Ok(1..)) {
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        }
    });
    (port, answering)
}

async fn refusal(answer: &'static str) -> BusError {
    let (port, _answering) = parrot(answer).await;
    RedisMemory::connect(settings(port)).await.unwrap_err()
}

#[tokio::test]
async fn a_server_that_is_too_old_is_refused_with_what_is_needed() {
    let refused = refusal("$22\r\nredis_version:6.0.16\r\n\r\n").await;
    let wanted = "redis 6.0.16 is too old: Redis 6.2 or newer, or Valkey, is needed";
    assert_eq!(refused, BusError::Refused(wanted.to_owned()));
}

#[tokio::test]
async fn something_else_than_redis_is_refused_and_no_hang() {
    let refused = refusal("HTTP/1.1 400 Bad Request\r\n\r\n").await;
    assert!(matches!(&refused, BusError::Refused(why) if why.contains("is it Redis")), "{refused}");
}

//! Every delivery is handed out a second time, to whoever pulls next, while the first is being worked
//! on: somebody else on the bus hands it back.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use service_runtime::tasks::TaskSet;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::cells::Role;
use super::servers::Programs;
use super::stage::{Found, Stage};
use super::world::Wanted;
use crate::failure::Failure;

/// Runs orders on two planners and two workers, between which every delivery is handed out twice.
pub(crate) async fn twice(
    programs: &Programs,
    threads: usize,
    folder: PathBuf,
) -> Result<(Stage, Found), Failure> {
    let stage = Stage::open(programs, folder).await?;
    let Stage { world, client, .. } = &stage;
    let intruder = Intruder::start(world.bus_server()?.port).await?;
    let mut nodes = Vec::new();
    for role in [Role::Planner, Role::Planner, Role::Worker, Role::Worker] {
        nodes.push(world.node(Wanted::of(role)).await?);
    }
    let since = Instant::now();
    let places = client.send("order r0", threads).await?;
    client.until_rest(&places).await;
    let recovered = since.elapsed();
    // An input, two calls, two results of each thread.
    let least = u64::try_from(threads.saturating_mul(3)).unwrap_or(u64::MAX);
    let reached = intruder.again.load(Ordering::Relaxed) >= least;
    drop((nodes, intruder));
    Ok((stage, Found { reached, places, recovered, ..Found::default() }))
}

/// Hears every delivery and hands back each that was delivered once.
struct Intruder {
    /// Deliveries that came a second time.
    again: Arc<AtomicU64>,
    _tasks: TaskSet,
}

impl Intruder {
    async fn start(port: u16) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::other("a client of the drill", error);
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.map_err(failed)?;
        let hello = b"CONNECT {\"verbose\":false,\"headers\":true}\r\nSUB _INBOX.> 1\r\n";
        stream.write_all(hello).await.map_err(failed)?;
        let again = Arc::new(AtomicU64::new(0));
        let mut tasks = TaskSet::new();
        let counted = Arc::clone(&again);
        tasks.start("intruder", async move {
            if let Err(error) = intrude(stream, &counted).await {
                tracing::warn!(%error, "deliveries are not handed out twice any more");
            }
        });
        Ok(Self { again, _tasks: tasks })
    }
}

async fn intrude(mut stream: TcpStream, again: &AtomicU64) -> io::Result<()> {
    let (reading, mut writing) = stream.split();
    let mut reading = BufReader::new(reading);
    let mut line = String::new();
    loop {
        line.clear();
        if reading.read_line(&mut line).await? == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
        }
        if line.starts_with("PING") {
            writing.write_all(b"PONG\r\n").await?;
        }
        let Some(message) = Message::read(&line) else { continue };
        let mut body = vec![0; message.bytes.saturating_add(2)];
        reading.read_exact(&mut body).await?;
        let Some(delivery) = message.delivery else { continue };
        match delivery_count(&delivery) {
            Some(1) => {
                let back = format!("PUB {delivery} 4\r\n-NAK\r\n");
                writing.write_all(back.as_bytes()).await?;
            }
            Some(_) => {
                again.fetch_add(1, Ordering::Relaxed);
            }
            None => {}
        }
    }
}

/// `MSG subject sid [reply] bytes`, or `HMSG subject sid [reply] header-bytes bytes`.
#[derive(Debug, PartialEq, Eq)]
struct Message {
    delivery: Option<String>,
    bytes: usize,
}

impl Message {
    fn read(line: &str) -> Option<Self> {
        let words: Vec<&str> = line.split_whitespace().collect();
        if !["MSG", "HMSG"].contains(words.first()?) {
            return None;
        }
        let bytes = words.last()?.parse().ok()?;
        let delivery = words.iter().find(|word| word.starts_with("$JS.ACK.SY_"));
        Some(Self { delivery: delivery.map(|word| (*word).to_owned()), bytes })
    }
}

/// `$JS.ACK.<stream>.<consumer>.<count>. …`.
fn delivery_count(reply: &str) -> Option<u64> {
    reply.split('.').nth(4)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_is_told_from_an_answer() {
        let reply = "$JS.ACK.SY_0.planner_in.1.7.3.1700000000000000000.0";
        let delivery = Message { delivery: Some(reply.to_owned()), bytes: 42 };
        let line = format!("HMSG sy.0.a.b.in 1 {reply} 12 42\r\n");
        assert_eq!(Message::read(&line), Some(delivery));
        assert_eq!(delivery_count(reply), Some(1));
        let answer = Message { delivery: None, bytes: 5 };
        assert_eq!(Message::read("MSG _INBOX.x 1 5\r\n"), Some(answer));
        assert_eq!(Message::read("+OK\r\n"), None);
    }
}

//! A server that controls every byte: it answers each request with the next of its scripts.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::task::JoinSet;

/// What happens after the bytes of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The connection is closed.
    Close,
    /// Nothing, until the client closes.
    Hold,
}

/// What the server saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A request, head and body.
    Request(String),
    /// The client closed while it was held.
    Closed,
}

/// A running server; ends when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    seen: UnboundedReceiver<Seen>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Answers requests in order with raw HTTP; the last answer is given again.
    pub(crate) async fn start(answers: Vec<(String, Then)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (note, seen) = unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            for nth in 0.. {
                let (mut socket, _) = listener.accept().await.unwrap();
                let request = read_request(&mut socket).await;
                drop(note.send(Seen::Request(request)));
                let (bytes, then) = answers.get(nth).or_else(|| answers.last()).unwrap();
                socket.write_all(bytes.as_bytes()).await.unwrap();
                if *then == Then::Hold {
                    let mut byte = [0];
                    // Both an end and a reset mean that the client has gone.
                    drop(socket.read(&mut byte).await);
                    drop(note.send(Seen::Closed));
                }
            }
        });
        Self { address, seen, _tasks: tasks }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The next thing it sees.
    pub(crate) async fn next(&mut self) -> Seen {
        self.seen.recv().await.unwrap()
    }

    /// Requests so far that nobody has taken.
    pub(crate) fn requests(&mut self) -> usize {
        std::iter::from_fn(|| self.seen.try_recv().ok())
            .filter(|seen| matches!(seen, Seen::Request(_)))
            .count()
    }
}

async fn read_request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length = length
                .lines()
                .find_map(|line| line.strip_prefix("content-length: ").map(str::to_owned));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return text;
            }
        }
        assert_ne!(
            socket.read_buf(&mut bytes).await.unwrap(),
            0,
            "the client closed inside its request"
        );
    }
}

/// A good answer whose body ends with the connection.
pub(crate) fn stream(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}")
}

/// An answer of any status.
pub(crate) fn status(line: &str, headers: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {line}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

//! Between a worker and NATS: what the server answers to a first start record is dropped on its way
//! back. The record has landed, and the worker cannot know.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Answers that are dropped in all.
const DROPS: usize = 1;

/// Takes connections for as long as it is polled.
pub(crate) struct Proxy {
    listener: TcpListener,
    pub(crate) port: u16,
    server: u16,
    /// Reply subjects of start records whose answer does not get through.
    lost: watch::Sender<BTreeSet<String>>,
    dropped: AtomicUsize,
}

impl Proxy {
    /// Listens on a free port.
    pub(crate) async fn open(server: u16) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let (lost, dropped) = (watch::Sender::default(), AtomicUsize::new(0));
        Ok(Self { listener, port, server, lost, dropped })
    }

    /// How many answers were dropped.
    pub(crate) fn dropped(&self) -> usize {
        self.dropped.load(Ordering::Relaxed)
    }

    /// Passes on what comes, connection by connection.
    pub(crate) async fn run(&self) {
        let mut open = FuturesUnordered::new();
        loop {
            tokio::select! {
                taken = self.listener.accept() => match taken {
                    Ok((client, _)) => open.push(self.pass(client)),
                    Err(_) => return,
                },
                // A connection that ended is the client's to make again.
                Some(_ended) = open.next(), if !open.is_empty() => {}
            }
        }
    }

    async fn pass(&self, client: TcpStream) -> Result<()> {
        let server = TcpStream::connect(("127.0.0.1", self.server)).await?;
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = server.into_split();
        tokio::select! {
            done = self.requests(from_client, to_server) => done,
            done = self.answers(from_server, to_client) => done,
        }
    }

    /// From the worker: notes where the answer to a start record is to go.
    async fn requests(&self, from: OwnedReadHalf, mut to: OwnedWriteHalf) -> Result<()> {
        let mut from = BufReader::new(from);
        while let Some((line, payload)) = frame(&mut from).await? {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            if let [verb, subject, reply, ..] = words.as_slice()
                && verb.eq_ignore_ascii_case("HPUB")
                && subject.starts_with("sy.")
                && subject.contains(".start.")
                && self.lost.borrow().len() < DROPS
            {
                self.lost.send_modify(|lost| {
                    lost.insert((*reply).to_owned());
                });
            }
            to.write_all(line.as_bytes()).await?;
            to.write_all(&payload).await?;
        }
        Ok(())
    }

    /// From the server: everything but those answers.
    async fn answers(&self, from: OwnedReadHalf, mut to: OwnedWriteHalf) -> Result<()> {
        let mut from = BufReader::new(from);
        while let Some((line, payload)) = frame(&mut from).await? {
            let subject = line.split_ascii_whitespace().nth(1).unwrap_or_default();
            if line.starts_with("MSG") && self.lost.borrow().contains(subject) {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            to.write_all(line.as_bytes()).await?;
            to.write_all(&payload).await?;
        }
        Ok(())
    }
}

/// A line of the protocol with the payload that belongs to it; nothing at the end.
async fn frame(from: &mut BufReader<impl AsyncRead + Unpin>) -> Result<Option<(String, Vec<u8>)>> {
    let mut line = String::new();
    if from.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let verb = line.split_ascii_whitespace().next().unwrap_or_default().to_ascii_uppercase();
    let mut payload = Vec::new();
    if ["PUB", "HPUB", "MSG", "HMSG"].contains(&verb.as_str()) {
        let size = line.split_ascii_whitespace().last().and_then(|size| size.parse().ok());
        let size: usize = size.unwrap_or(0);
        payload.resize(size.saturating_add(2), 0);
        from.read_exact(&mut payload).await?;
    }
    Ok(Some((line, payload)))
}

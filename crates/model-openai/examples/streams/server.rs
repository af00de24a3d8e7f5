//! A small HTTP server with full control over bytes: where segments end, how a body ends, what is
//! held back.

use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// One response.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    /// Its status.
    pub(crate) status: u16,
    /// Its headers.
    pub(crate) headers: Vec<(String, String)>,
    /// Its body.
    pub(crate) body: Vec<u8>,
    /// Where segments of the body end.
    pub(crate) splits: Vec<usize>,
    /// How the body ends.
    pub(crate) end: End,
}

/// How a body ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Properly.
    Complete,
    /// The connection is closed inside the body.
    Abort,
    /// The connection is reset.
    Reset,
    /// Nothing more comes, except this, again and again.
    Hold(Option<String>),
}

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Its body.
    pub(crate) body: Value,
    /// When it came.
    pub(crate) at: Instant,
}

/// A running server; it ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Server {
    /// Its address.
    pub(crate) base_url: String,
    requests: UnboundedReceiver<Request>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Serves the responses in order, and the last one ever after.
    pub(crate) async fn start(script: Vec<Response>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base_url = format!("http://{}/v1", listener.local_addr()?);
        let (seen, requests) = unbounded_channel();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::new(script), seen));
        Ok(Self { base_url, requests, _tasks: tasks })
    }

    /// The requests so far.
    pub(crate) fn requests(&mut self) -> Vec<Request> {
        std::iter::from_fn(|| self.requests.try_recv().ok()).collect()
    }
}

async fn accept(listener: TcpListener, script: Arc<Vec<Response>>, seen: UnboundedSender<Request>) {
    let mut tasks = JoinSet::new();
    let served = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    while let Ok((socket, _)) = listener.accept().await {
        let (script, seen, served) = (Arc::clone(&script), seen.clone(), Arc::clone(&served));
        tasks.spawn(async move {
            // A client that goes away ends its connection; nobody else minds.
            drop(serve(socket, &script, &seen, &served).await);
        });
    }
}

async fn serve(
    mut socket: TcpStream,
    script: &[Response],
    seen: &UnboundedSender<Request>,
    served: &std::sync::atomic::AtomicUsize,
) -> io::Result<()> {
    socket.set_nodelay(true)?;
    while let Some(body) = read_request(&mut socket).await? {
        let body = serde_json::from_slice(&body).unwrap_or_default();
        seen.send(Request { body, at: Instant::now() }).map_err(io::Error::other)?;
        let nth = served.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let Some(response) = script.get(nth).or_else(|| script.last()) else { return Ok(()) };
        send(&mut socket, response).await?;
        if response.end != End::Complete {
            return Ok(());
        }
    }
    Ok(())
}

async fn read_request(socket: &mut TcpStream) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        if socket.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let rest = bytes.split_off(end);
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
    let mut body = rest;
    while body.len() < length {
        if socket.read_buf(&mut body).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(body))
}

async fn send(socket: &mut TcpStream, response: &Response) -> io::Result<()> {
    let mut head = format!("HTTP/1.1 {} Status\r\ntransfer-encoding: chunked\r\n", response.status);
    for (name, value) in &response.headers {
        head = format!("{head}{name}: {}\r\n", fill(value));
    }
    head.push_str("\r\n");
    socket.write_all(head.as_bytes()).await?;
    let mut from = 0;
    for to in response.splits.iter().copied().chain([response.body.len()]) {
        let to = to.min(response.body.len());
        let segment = response.body.get(from..to).unwrap_or_default();
        if !segment.is_empty() {
            write_segment(socket, segment).await?;
        }
        from = to.max(from);
    }
    end(socket, &response.end).await
}

async fn write_segment(socket: &mut TcpStream, segment: &[u8]) -> io::Result<()> {
    let mut chunk = format!("{:x}\r\n", segment.len()).into_bytes();
    chunk.extend_from_slice(segment);
    chunk.extend_from_slice(b"\r\n");
    socket.write_all(&chunk).await?;
    socket.flush().await?;
    tokio::task::yield_now().await;
    Ok(())
}

async fn end(socket: &mut TcpStream, end: &End) -> io::Result<()> {
    match end {
        End::Complete => socket.write_all(b"0\r\n\r\n").await,
        End::Abort => socket.shutdown().await,
        End::Reset => {
            // A reset may overtake what was sent before it.
            tokio::time::sleep(Duration::from_millis(50)).await;
            socket.set_zero_linger()
        }
        End::Hold(None) => {
            // Until the client goes away.
            let mut byte = [0];
            socket.read(&mut byte).await.map(|_| ())
        }
        End::Hold(Some(keepalive)) => loop {
            tokio::time::sleep(Duration::from_millis(50)).await;
            write_segment(socket, keepalive.as_bytes()).await?;
        },
    }
}

/// Fills in dates that are computed when the response is sent.
#[expect(clippy::disallowed_methods, reason = "the date is for a client with a real clock")]
fn fill(value: &str) -> String {
    let Some((before, rest)) = value.split_once("{{http_date:+") else { return value.to_owned() };
    let Some((seconds, after)) = rest.split_once("s}}") else { return value.to_owned() };
    let ahead = Duration::from_secs(seconds.parse().unwrap_or(0));
    format!("{before}{}{after}", httpdate::fmt_http_date(SystemTime::now() + ahead))
}

//! A server that answers with whatever bytes a test wants.

use std::future::Future;
use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A server on a free port, gone when it is dropped.
pub(crate) struct Server {
    pub(crate) port: u16,
    seen: watch::Receiver<Vec<String>>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// Answers each request with these bytes and closes the connection.
    pub(crate) async fn answering(bytes: impl AsRef<[u8]>) -> Self {
        let bytes = Arc::new(bytes.as_ref().to_vec());
        Self::with(move |mut stream, _| {
            let bytes = Arc::clone(&bytes);
            async move {
                stream.write_all(&bytes).await.ok();
            }
        })
        .await
    }

    /// Hands each request to `answer`, with the connection it came by.
    pub(crate) async fn with<F>(
        answer: impl Fn(TcpStream, String) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (log, seen) = watch::channel(Vec::new());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            let log = Arc::new(log);
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let (answer, log) = (answer.clone(), Arc::clone(&log));
                connections.spawn(async move {
                    let request = request(&mut stream).await;
                    log.send_modify(|seen| seen.push(request.clone()));
                    answer(stream, request).await;
                });
            }
        });
        Self { port, seen, _tasks: tasks }
    }

    /// What was asked so far.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.borrow().clone()
    }

    /// The only request, once it is there.
    pub(crate) async fn asked(&mut self) -> String {
        self.seen.wait_for(|seen| !seen.is_empty()).await.unwrap().first().unwrap().clone()
    }
}

/// One request: its head, and as much body as it announces.
async fn request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length").then(|| value.parse().unwrap())
            });
            if body.len() >= length.unwrap_or(0) {
                return text.into_owned();
            }
        }
        match stream.read(&mut buffer).await.unwrap_or(0) {
            0 => return String::from_utf8_lossy(&bytes).into_owned(),
            read => bytes.extend(buffer.iter().take(read)),
        }
    }
}

/// An answer with its length.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{headers}\r\n{body}")
}

/// An answer of JSON.
pub(crate) fn json(body: &str) -> String {
    answer("200 OK", "Content-Type: application/json\r\n", body)
}

//! A client that sends exactly what a test says, over TCP.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::contract::hold;

/// How long a test waits for what should come at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The code of a refusal, which has to say what to do and where to read on.
    pub(crate) fn refusal(&self) -> (u16, &str) {
        let error = &self.body["error"];
        for field in ["message", "fix", "docs"] {
            assert!(error[field].as_str().is_some_and(|text| !text.is_empty()), "{self:?}");
        }
        let code = error["code"].as_str().unwrap();
        assert_eq!(error["docs"], format!("docs/errors/{code}.md"));
        (self.status, code)
    }
}

/// Sends one request and reads its answer.
pub(crate) async fn ask(
    address: SocketAddr,
    line: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
) -> Answer {
    let text = body.map(Value::to_string).unwrap_or_default();
    let stream = send(address, line, headers, body.map(|_| text.as_str())).await;
    let read = async {
        let (status, headers, mut stream) = head(stream).await;
        let mut body = Vec::new();
        stream.read_to_end(&mut body).await.unwrap();
        let body = serde_json::from_slice(&body)
            .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&body).into_owned()));
        Answer { status, headers, body }
    };
    let answer = timeout(PATIENCE, read).await.unwrap();
    hold(line, &answer);
    answer
}

async fn send(
    address: SocketAddr,
    line: &str,
    headers: &[(&str, &str)],
    body: Option<&str>,
) -> TcpStream {
    let is_given = |name: &str| headers.iter().any(|(given, _)| *given == name);
    let here = address.to_string();
    let length = body.map(str::len).unwrap_or_default().to_string();
    let usual = [
        ("host", Some(here.as_str())),
        ("content-type", body.map(|_| "application/json")),
        ("content-length", body.map(|_| length.as_str())),
        ("connection", Some("close")),
    ];
    let usual = usual.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let usual = usual.filter(|(name, _)| !is_given(name));
    let lines = headers.iter().copied().chain(usual);
    let lines: Vec<_> = lines.map(|(name, value)| format!("{name}: {value}")).collect();
    let (lines, body) = (lines.join("\r\n"), body.unwrap_or_default());
    let text = format!("{line} HTTP/1.1\r\n{lines}\r\n\r\n{body}");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

async fn head(stream: TcpStream) -> (u16, Vec<(String, String)>, BufReader<TcpStream>) {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line).await.unwrap();
    let status = line.split(' ').nth(1).unwrap().parse().unwrap();
    let mut headers = Vec::new();
    loop {
        line.clear();
        stream.read_line(&mut line).await.unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_owned(), value.to_owned()));
    }
    (status, headers, stream)
}

/// One event as it came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    pub(crate) id: Option<String>,
    pub(crate) event: String,
    pub(crate) data: Value,
}

/// A reader of events.
pub(crate) struct Events {
    stream: BufReader<TcpStream>,
    text: String,
    /// Everything that was no event.
    pub(crate) asides: Vec<String>,
}

impl Events {
    pub(crate) async fn open(
        address: SocketAddr,
        thread: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, u16> {
        let line = format!("GET /v1/threads/{thread}/events");
        let stream = send(address, &line, headers, None).await;
        let (status, headers, stream) = timeout(PATIENCE, head(stream)).await.unwrap();
        if status != 200 {
            return Err(status);
        }
        let kind = headers.iter().find(|(name, _)| name == "content-type").unwrap();
        assert_eq!(kind.1, "text/event-stream");
        Ok(Self { stream, text: String::new(), asides: Vec::new() })
    }

    /// The next event that is no phase; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Told> {
        loop {
            let told = self.next_of_all().await?;
            if told.event != "phase" {
                return Some(told);
            }
        }
    }

    /// The next event.
    pub(crate) async fn next_of_all(&mut self) -> Option<Told> {
        loop {
            if let Some(block) = self.block() {
                match parse(&block) {
                    Some(told) => return Some(told),
                    None => self.asides.push(block),
                }
                continue;
            }
            if !timeout(PATIENCE, self.chunk()).await.expect("an event comes") {
                return None;
            }
        }
    }

    fn block(&mut self) -> Option<String> {
        let end = self.text.find("\n\n")?;
        let rest = self.text.split_off(end + 2);
        Some(std::mem::replace(&mut self.text, rest))
    }

    /// Reads one chunk of the body; answers whether there was one.
    async fn chunk(&mut self) -> bool {
        let mut line = String::new();
        if self.stream.read_line(&mut line).await.unwrap_or_default() == 0 {
            return false;
        }
        let length = usize::from_str_radix(line.trim(), 16).unwrap();
        let mut chunk = vec![0; length + 2];
        if length == 0 || self.stream.read_exact(&mut chunk).await.is_err() {
            return false;
        }
        self.text.push_str(std::str::from_utf8(&chunk[..length]).unwrap());
        true
    }

    /// Reads up to the last event of this run, phases too.
    pub(crate) async fn all(&mut self) -> Vec<Told> {
        let mut all = Vec::new();
        while let Some(told) = self.next_of_all().await {
            let is_last = told.event == "run_finished";
            all.push(told);
            if is_last {
                return all;
            }
        }
        panic!("no end: {all:?}");
    }

    /// Reads up to the first event of this name, without phases.
    pub(crate) async fn until(&mut self, name: &str) -> Vec<Told> {
        let mut all = Vec::new();
        while let Some(told) = self.next().await {
            let found = told.event == name;
            all.push(told);
            if found {
                return all;
            }
        }
        panic!("no {name}: {all:?}");
    }
}

fn parse(block: &str) -> Option<Told> {
    let field =
        |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let id = block.lines().find_map(|line| line.strip_prefix("id:")).map(|id| id.trim().to_owned());
    let data = serde_json::from_str(field("data")?).unwrap();
    Some(Told { id, event: field("event")?.to_owned(), data })
}

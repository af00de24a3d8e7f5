//! The gateway as a process of its own over a real NATS server.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::deployment::{Deployment, Node, nats_program, redis_program};

/// Something that serves HTTP.
pub(crate) trait Serving {
    fn address(&self) -> &str;
}

impl Serving for Node {
    fn address(&self) -> &str {
        Self::address(self)
    }
}

impl Serving for String {
    fn address(&self) -> &str {
        self.strip_prefix("http://").unwrap_or(self)
    }
}

pub(crate) fn send(node: &impl Serving, line: &str, headers: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(node.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
    let request = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

pub(crate) fn post(node: &impl Serving, path: &str, headers: &str, body: &Value) -> (u16, Value) {
    let mut answer = String::new();
    let line = format!("POST {path}");
    send(node, &line, headers, &body.to_string()).read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    (status, serde_json::from_str(body).unwrap())
}

/// Lines of an event stream.
pub(crate) struct Events {
    lines: BufReader<TcpStream>,
    /// The last id that was told.
    pub(crate) id: String,
}

impl Events {
    pub(crate) fn open(node: &impl Serving, thread: &str, last: Option<&str>) -> Self {
        let headers = last.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
        let line = format!("GET /v1/threads/{thread}/events");
        let lines = BufReader::new(send(node, &line, &headers, ""));
        Self { lines, id: last.unwrap_or_default().to_owned() }
    }

    /// The next line that is an event's data, or a comment; `None` at the end.
    fn next(&mut self) -> Option<Value> {
        loop {
            let mut line = String::new();
            if self.lines.read_line(&mut line).ok()? == 0 {
                return None;
            }
            if let Some(id) = line.strip_prefix("id: ") {
                id.trim().clone_into(&mut self.id);
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
            if line.starts_with(": the gateway is being stopped") {
                return Some(json!({ "type": "stopped" }));
            }
        }
    }

    pub(crate) fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut all = Vec::new();
        while let Some(event) = self.next() {
            let found = event["type"] == kind;
            all.push(event);
            if found {
                return all;
            }
        }
        panic!("no {kind}: {all:#?}");
    }
}

#[test]
fn a_thread_is_told_on_though_its_gateway_is_killed() {
    let (Some(program), Some(redis)) = (nats_program(), redis_program()) else { return };
    let world = Deployment::with_redis(program, &redis);
    let (planner, worker) = (world.planner("planner"), world.worker("worker"));
    let (first, second) = (world.gateway("gateway-a"), world.gateway("gateway-b"));
    for node in [&planner, &worker, &first, &second] {
        node.until_ready();
    }
    let order = json!({ "agent": "clerk", "input": { "text": "order one" } });
    let key = "idempotency-key: order-1\r\n";
    let begun = post(&first, "/v1/threads", key, &order);
    assert_eq!(begun.0, 201, "{begun:?}");
    assert_eq!(post(&second, "/v1/threads", key, &order), begun, "one key is one input");
    let thread = begun.1["thread"].as_str().unwrap();
    let mut events = Events::open(&first, thread, None);
    let before = events.until("tool_call");
    first.kill();
    let mut events = Events::open(&second, thread, Some(&events.id));
    let after = events.until("run_finished");
    let last = |told: &[Value]| told.last().unwrap()["sequence"].as_u64().unwrap();
    let known = last(&before);
    let fresh = after.iter().filter(|told| told["at"].is_number());
    for told in fresh {
        assert!(told["sequence"].as_u64().unwrap() > known, "told before: {told}");
    }
    assert_eq!(after.last().unwrap()["outcome"], "answered");
    assert_eq!(world.booked(), ["one"]);
    assert_eq!(second.metric("systole_gateway_readers", &[]), Some(1.0));
    assert_eq!(second.stop(), Some(0));
    assert_eq!(events.until("stopped").len(), 1);
    assert_eq!(events.next(), None);
}

#[test]
fn a_cancel_over_http_answers_with_receipts() {
    let Some(program) = nats_program() else { return };
    let world = Deployment::start(program);
    // The worker registers its tools and is gone: calls wait for it.
    let (planner, worker) = (world.planner("planner"), world.worker("worker"));
    let gateway = world.gateway("gateway");
    for node in [&planner, &worker, &gateway] {
        node.until_ready();
    }
    worker.kill();
    let order = json!({ "agent": "clerk", "input": { "text": "order one" } });
    let (_, begun) = post(&gateway, "/v1/threads", "", &order);
    let thread = begun["thread"].as_str().unwrap();
    Events::open(&gateway, thread, None).until("tool_call");
    let path = format!("/v1/threads/{thread}");
    let now = json!({ "text": "order two", "mode": "reject" });
    let (status, refused) = post(&gateway, &format!("{path}/inputs"), "", &now);
    assert_eq!((status, &refused["error"]["code"]), (409, &json!("run_active")));
    let wish = json!({ "reason": "enough", "wait_ms": 30_000 });
    let (status, receipt) = post(&gateway, &format!("{path}/cancel"), "", &wish);
    assert_eq!((status, &receipt["state"]), (200, &json!("ended")), "{receipt}");
    assert_eq!(receipt["calls"][0]["tool"], "look");
    assert!(receipt["calls"][0]["receipt"].is_string(), "{receipt}");
    let (status, _) = post(&gateway, &format!("{path}/inputs"), "", &now);
    assert_eq!(status, 202, "a thread at rest takes it");
}

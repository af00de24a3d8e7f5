//! People before gateways: each says what they have to say, with one key, until a gateway has answered.

use std::time::Duration;

use futures_util::future::try_join_all;
use proto::fact::ApprovalAsked;
use proto::ids::{ThreadId, ThreadRef};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::client::{Client, LOOK, REST};
use super::world::Node;
use crate::failure::Failure;
use crate::follow::fold;
use crate::inputs;

/// How long one gateway may take to answer.
const ANSWER: Duration = Duration::from_secs(10);

/// Some people, and the gateways that they know.
pub(crate) struct People {
    http: reqwest::Client,
    doors: watch::Sender<Vec<String>>,
}

impl People {
    pub(crate) fn new<'n>(gateways: impl Iterator<Item = &'n Node>) -> Result<Self, Failure> {
        let http = reqwest::Client::builder().timeout(ANSWER).no_proxy().build();
        let http = http.map_err(|error| Failure::other("an HTTP client", error))?;
        let doors = gateways.map(|node| node.address().to_owned()).collect();
        Ok(Self { http, doors: watch::Sender::new(doors) })
    }

    /// Lets them know one more gateway.
    pub(crate) fn turn_to(&self, gateway: &Node) {
        self.doors.send_modify(|doors| doors.push(gateway.address().to_owned()));
    }

    /// Begins threads, all at once.
    pub(crate) async fn order(
        &self,
        words: &str,
        threads: usize,
    ) -> Result<Vec<ThreadRef>, Failure> {
        let orders = (0..threads).map(|number| async move {
            let text = format!("{words}n{number}");
            let body = json!({ "agent": "clerk", "input": { "text": text } });
            let begun = self.say(number, "/v1/threads", &text, &body).await?;
            let id = begun.get("thread").and_then(Value::as_str).unwrap_or_default();
            let id: ThreadId = id.parse().map_err(|error| Failure::other("a thread", error))?;
            Ok::<ThreadRef, Failure>(inputs::place(id))
        });
        try_join_all(orders).await
    }

    /// Waits until each thread asks, and agrees.
    pub(crate) async fn agree(&self, client: &Client, places: &[ThreadRef]) -> Result<(), Failure> {
        let words = places.iter().enumerate().map(|(number, place)| async move {
            let asked = asked(client, place).await?;
            let call = &asked.tool_call_id;
            let path = format!("/v1/threads/{}/approvals/{call}", place.thread);
            let body = json!({ "approve": true, "arguments_hash": asked.arguments_hash });
            self.say(number, &path, call.as_str(), &body).await
        });
        try_join_all(words).await.map(drop)
    }

    /// Agrees once more to what was decided: with another key, which changes nothing.
    pub(crate) async fn agree_again(
        &self,
        client: &Client,
        places: &[ThreadRef],
    ) -> Result<(), Failure> {
        let words = places.iter().enumerate().map(|(number, place)| async move {
            let thread = fold(client.journal(), place).await?;
            let asked = thread.calls.values().find_map(|call| call.asked.clone());
            let Some(asked) = asked else { return Ok(Value::Null) };
            let call = &asked.tool_call_id;
            let path = format!("/v1/threads/{}/approvals/{call}", place.thread);
            let body = json!({ "approve": true, "arguments_hash": asked.arguments_hash });
            self.say(number, &path, &format!("{call}-again"), &body).await
        });
        try_join_all(words).await.map(drop)
    }

    /// Says something with one key until a gateway has taken it.
    async fn say(
        &self,
        number: usize,
        path: &str,
        key: &str,
        body: &Value,
    ) -> Result<Value, Failure> {
        let latest = Instant::now() + REST;
        while Instant::now() < latest {
            let doors = self.doors.borrow().clone();
            let first = number.checked_rem(doors.len()).unwrap_or(0);
            for door in doors.iter().skip(first).chain(doors.iter().take(first)) {
                if let Some(answer) = self.say_at(door, path, key, body).await? {
                    return Ok(answer);
                }
            }
            sleep(LOOK).await;
        }
        Err(Failure::other(path, "no gateway answered"))
    }

    /// Nothing when this gateway is gone or cannot answer at the moment.
    async fn say_at(
        &self,
        door: &str,
        path: &str,
        key: &str,
        body: &Value,
    ) -> Result<Option<Value>, Failure> {
        let key = key.replace(' ', "-");
        let asking = self.http.post(format!("http://{door}{path}"));
        let asking = asking.header("idempotency-key", key).json(body);
        let Ok(answer) = asking.send().await else { return Ok(None) };
        let status = answer.status();
        let Ok(said) = answer.json::<Value>().await else { return Ok(None) };
        if status.is_success() {
            return Ok(Some(said));
        }
        if status.is_server_error() || status.as_u16() == 429 {
            return Ok(None);
        }
        Err(Failure::other(path, format!("the gateway refused it: {status} {said}")))
    }
}

/// What a thread asks a person for.
async fn asked(client: &Client, place: &ThreadRef) -> Result<ApprovalAsked, Failure> {
    let latest = Instant::now() + REST;
    while Instant::now() < latest {
        let thread = fold(client.journal(), place).await?;
        if let Some(asked) = thread.open_calls().find_map(|call| call.asked.clone()) {
            return Ok(asked);
        }
        sleep(LOOK).await;
    }
    Err(Failure::other(&place.thread.to_string(), "nobody was asked to agree"))
}

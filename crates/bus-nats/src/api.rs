//! Requests and answers of the JetStream API, as far as they are used.

use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::{Client, HeaderMap, Message, Request};
use bytes::Bytes;
use ports::BusError;
use proto::ids::Sequence;
use serde::Deserialize;
use serde_json::Value;

use crate::connect::NatsBus;

/// The fence did not hold; the text ends with the sequence that stands there.
pub(crate) const WRONG_LAST_SEQUENCE: u64 = 10071;
/// The fence did not hold; no sequence is named.
pub(crate) const WRONG_LAST_SEQUENCE_UNNAMED: u64 = 10164;
/// No such message.
pub(crate) const NO_MESSAGE: u64 = 10037;
/// No such stream.
pub(crate) const NO_STREAM: u64 = 10059;
/// The server's storage is spent.
pub(crate) const NO_RESOURCES: u64 = 10023;

/// An error in an answer.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct ApiError {
    #[serde(default)]
    pub(crate) code: u64,
    #[serde(default)]
    pub(crate) err_code: u64,
    #[serde(default)]
    pub(crate) description: String,
}

impl ApiError {
    /// The sequence at the end of `wrong last sequence: 12`.
    pub(crate) fn sequence(&self) -> Option<Sequence> {
        let (_, number) = self.description.rsplit_once(' ')?;
        number.parse().ok().map(Sequence)
    }

    /// Whether the server has no room.
    pub(crate) fn is_full(&self) -> bool {
        [NO_RESOURCES, 10047, 10077].contains(&self.err_code)
    }

    pub(crate) fn into_bus(self) -> BusError {
        let text = format!("{} ({})", self.description, self.err_code);
        match self.err_code {
            _ if self.is_full() => BusError::Full(text),
            10054 => BusError::TooLarge { bytes: 0, limit: 0 },
            _ if self.code >= 500 => BusError::Unavailable(text),
            _ => BusError::Refused(text),
        }
    }
}

/// What can become of a request.
#[derive(Debug)]
pub(crate) enum NoReply {
    /// Nothing came in time; the request may have been carried out.
    Unanswered(String),
    /// It was not sent, or nobody took it.
    Failed(BusError),
}

impl From<NoReply> for BusError {
    fn from(error: NoReply) -> Self {
        match error {
            NoReply::Unanswered(why) => Self::Unavailable(why),
            NoReply::Failed(error) => error,
        }
    }
}

/// Sends a request and waits for its one answer, no longer than its connection lives: an answer to
/// what was sent on a lost one does not come.
pub(crate) async fn request(
    bus: &NatsBus,
    subject: String,
    headers: Option<HeaderMap>,
    payload: Bytes,
) -> Result<Message, NoReply> {
    let mut lost = bus.lost.clone();
    lost.mark_unchanged();
    tokio::select! {
        biased;
        answered = answered(&bus.client, subject, headers, payload, bus.settings.request) => answered,
        _ = lost.changed() => Err(NoReply::Unanswered("the connection was lost".to_owned())),
    }
}

async fn answered(
    client: &Client,
    subject: String,
    headers: Option<HeaderMap>,
    payload: Bytes,
    timeout: Duration,
) -> Result<Message, NoReply> {
    let limit = client.max_payload();
    let bytes = payload.len();
    if limit > 0 && bytes > limit {
        return Err(NoReply::Failed(BusError::TooLarge { bytes, limit }));
    }
    let mut request = Request::new().payload(payload).timeout(Some(timeout));
    if let Some(headers) = headers {
        request = request.headers(headers);
    }
    client.send_request(subject, request).await.map_err(|error| match error.kind() {
        RequestErrorKind::NoResponders => {
            NoReply::Failed(BusError::Unavailable("JetStream does not answer".to_owned()))
        }
        RequestErrorKind::MaxPayloadExceeded => {
            NoReply::Failed(BusError::TooLarge { bytes, limit })
        }
        RequestErrorKind::InvalidSubject => {
            NoReply::Failed(BusError::Refused(format!("invalid subject: {error}")))
        }
        RequestErrorKind::TimedOut | RequestErrorKind::Other => {
            NoReply::Unanswered(error.to_string())
        }
    })
}

/// Asks the API for JSON. An error inside the answer comes as the inner `Err`.
pub(crate) async fn ask(
    bus: &NatsBus,
    subject: String,
    body: &Value,
) -> Result<Result<Value, ApiError>, NoReply> {
    let payload = Bytes::from(body.to_string());
    let message = request(bus, subject, None, payload).await?;
    let answer: Value = serde_json::from_slice(&message.payload)
        .map_err(|error| NoReply::Failed(BusError::Refused(format!("not an answer: {error}"))))?;
    match answer.get("error") {
        Some(error) => Ok(Err(api_error(error))),
        None => Ok(Ok(answer)),
    }
}

/// Reads the error of an answer.
pub(crate) fn api_error(error: &Value) -> ApiError {
    serde_json::from_value(error.clone()).unwrap_or_else(|_| ApiError {
        code: 500,
        err_code: 0,
        description: error.to_string(),
    })
}

/// A header's text.
pub(crate) fn header<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
    message.headers.as_ref()?.get(name).map(async_nats::HeaderValue::as_str)
}

//! One request and the response to it.
//!
//! `async-openai` builds the request and calls the service below it. The service sends it, judges
//! status and headers, and hands the response to us instead of to the crate's decoder, which gets an
//! empty stream: that decoder tells neither a clean end from a cut nor an odd piece from a lost one.

use std::time::Duration;

use async_openai::Client;
use async_openai::config::OpenAIConfig;
use async_openai::error::OpenAIError;
use async_openai::middleware::HttpRequestFactory;
use proto::model::{ModelError, ModelErrorKind};
use proto::notice::Deadline;
use proto::time::Timestamp;
use reqwest::Response;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::mpsc;

use crate::endpoint::Endpoint;
use crate::reader::provider_error;
use crate::retry;

/// Bytes of an error body that are read, and how long that may take.
const ERROR_BODY: usize = 64 * 1024;
const ERROR_TIME: Duration = Duration::from_secs(5);

/// Sends requests to one endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Exchange {
    http: reqwest::Client,
    config: OpenAIConfig,
    first_byte: Duration,
}

impl Exchange {
    pub(crate) fn new(http: reqwest::Client, endpoint: &Endpoint) -> Self {
        // Every field that the crate would fill from the environment is set here.
        let config = OpenAIConfig::new()
            .with_api_base(endpoint.base_url.clone())
            .with_api_key(endpoint.api_key.clone())
            .with_org_id("")
            .with_project_id("");
        Self { http, config, first_byte: endpoint.deadlines.first_token }
    }

    /// Sends a body; answers the response once its status is known to be good.
    pub(crate) async fn open(
        &self,
        body: &RawValue,
        now: Timestamp,
    ) -> Result<Response, ModelError> {
        let (hand_over, mut taken) = mpsc::channel(1);
        let (http, first_byte) = (self.http.clone(), self.first_byte);
        let service = tower::service_fn(move |factory: HttpRequestFactory| {
            let (http, hand_over) = (http.clone(), hand_over.clone());
            async move {
                let request = factory.build().await?;
                let response = send(&http, request, first_byte, now).await.map_err(boxed)?;
                drop(hand_over.send(response).await);
                Ok::<Response, OpenAIError>(http::Response::new(Vec::new()).into())
            }
        });
        let client =
            Client::build(self.http.clone(), self.config.clone()).with_http_service(service);
        let stub = client.chat().create_stream_byot::<&RawValue, Value>(body).await;
        match (stub, taken.try_recv()) {
            (Ok(_), Ok(response)) => Ok(response),
            (Err(error), _) => Err(unboxed(error)),
            (Ok(_), Err(_)) => Err(network("the request was not sent".to_owned(), true)),
        }
    }
}

fn boxed(error: ModelError) -> OpenAIError {
    OpenAIError::Boxed(Box::new(error))
}

#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the crate's other errors all mean that no request was made"
)]
fn unboxed(error: OpenAIError) -> ModelError {
    match error {
        OpenAIError::Boxed(inner) => match inner.downcast::<ModelError>() {
            Ok(error) => *error,
            Err(other) => network(other.to_string(), true),
        },
        OpenAIError::Reqwest(error) => of_transport(error),
        other => network(other.to_string(), false),
    }
}

async fn send(
    http: &reqwest::Client,
    request: reqwest::Request,
    first_byte: Duration,
    now: Timestamp,
) -> Result<Response, ModelError> {
    let Ok(sent) = tokio::time::timeout(first_byte, http.execute(request)).await else {
        let words = "the endpoint did not begin to answer in time";
        return Err(provider_error::in_words(
            ModelErrorKind::Timeout(Deadline::FirstToken),
            true,
            words,
        ));
    };
    let mut response = sent.map_err(of_transport)?;
    if !response.status().is_success() {
        return Err(refused(response, now).await);
    }
    // Nobody reads the headers of a good reply, and they hold the whole buffer they came in for as
    // long as the reply takes.
    drop(std::mem::take(response.headers_mut()));
    Ok(response)
}

fn network(message: String, retryable: bool) -> ModelError {
    let kind = ModelErrorKind::Network;
    ModelError { kind, retryable, retry_after: None, status: None, message, code: None }
}

/// A failure of the transport, in words with its causes.
pub(crate) fn of_transport(error: reqwest::Error) -> ModelError {
    let is_ours = error.is_builder();
    network(chain(&error.without_url()), !is_ours)
}

/// An error and its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

/// What a status that is not success means.
async fn refused(response: Response, now: Timestamp) -> ModelError {
    let status = response.status();
    let asked = asked_to_wait(response.headers(), now);
    let body = error_body(response).await;
    let json = serde_json::from_str::<Value>(&body).ok();
    let is_out = json.as_ref().is_some_and(provider_error::is_out_of_quota);
    let may_pass = matches!(status.as_u16(), 408 | 409 | 425 | 429) || status.is_server_error();
    let said = json.as_ref().and_then(provider_error::message).or_else(|| plain(&body));
    let words = said.map(|said| format!(": {said}")).unwrap_or_default();
    ModelError {
        kind: ModelErrorKind::HttpError,
        retryable: may_pass && !is_out,
        retry_after: asked,
        status: Some(status.as_u16()),
        message: format!("the endpoint answered {status}{words}"),
        code: json.as_ref().and_then(provider_error::own_code),
    }
}

fn asked_to_wait(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    retry::retry_after(text(RETRY_AFTER)?, text(DATE), now)
}

async fn error_body(mut response: Response) -> String {
    let mut body = Vec::new();
    let read = async {
        while let Ok(Some(bytes)) = response.chunk().await {
            body.extend_from_slice(&bytes);
            if body.len() > ERROR_BODY {
                break;
            }
        }
    };
    // What came in time is shown.
    tokio::time::timeout(ERROR_TIME, read).await.unwrap_or_default();
    String::from_utf8_lossy(&body).into_owned()
}

/// A body that is no JSON: a page says nothing that its status does not say.
fn plain(body: &str) -> Option<String> {
    let body = body.trim();
    let is_shown = !body.is_empty() && !body.starts_with('<');
    is_shown.then(|| body.chars().take(300).collect())
}

//! The model port over one or several endpoints.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use ports::clock::{Clock, Ids};
use ports::model::{Model, Reply as ReplyStream};
use proto::model::{ModelError, ModelRequest};
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::{Instant, sleep};

use crate::endpoint::Endpoint;
use crate::exchange::{Exchange, chain};
use crate::reader::{Reader, ReaderConfig, Tools};
use crate::reply::Reply;
use crate::{retry, wire};

/// Endpoints in the order in which they are tried.
pub struct OpenAiModel {
    targets: Vec<Target>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    tell: Option<Tell>,
}

/// Takes words for whoever watches.
type Tell = Box<dyn Fn(&str) + Send + Sync>;

struct Target {
    endpoint: Endpoint,
    exchange: Exchange,
}

impl fmt::Debug for OpenAiModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let endpoints = self.targets.iter().map(|target| &target.endpoint);
        f.debug_list().entries(endpoints).finish()
    }
}

/// The HTTP client could not be built.
#[derive(Debug, thiserror::Error)]
#[error("no HTTP client: {0}")]
pub struct NoClient(String);

/// A client with the usual patience for connections.
fn http(
    with: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> Result<reqwest::Client, NoClient> {
    let builder = reqwest::Client::builder().connect_timeout(std::time::Duration::from_secs(10));
    with(builder).build().map_err(|error| NoClient(chain(&error)))
}

impl OpenAiModel {
    /// A model behind `endpoints`: the first, and the others when it fails before its first event.
    /// The ring provider of rustls has to be installed.
    pub fn new(
        endpoints: Vec<Endpoint>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
    ) -> Result<Self, NoClient> {
        let proxied = http(|builder| builder)?;
        let direct = http(reqwest::ClientBuilder::no_proxy)?;
        let target = |endpoint: Endpoint| {
            let http = if endpoint.is_local() { &direct } else { &proxied };
            let exchange = Exchange::new(http.clone(), &endpoint);
            Target { endpoint, exchange }
        };
        Ok(Self { targets: endpoints.into_iter().map(target).collect(), clock, ids, tell: None })
    }

    /// The same; what people should know while it asks goes to `tell`, not into the log.
    #[must_use]
    pub fn telling(self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { tell: Some(Box::new(tell)), ..self }
    }

    fn tell(&self, words: &str) {
        if let Some(tell) = &self.tell {
            tell(words);
        } else {
            tracing::warn!("{words}");
        }
    }

    /// Asks one endpoint until a first event is there, or it is of no use.
    async fn ask_one(&self, target: &Target, request: &ModelRequest) -> Result<Reply, ModelError> {
        let endpoint = &target.endpoint;
        // Held as text while the model thinks: a tree of values takes ten times the room.
        let body = wire::render(request, endpoint.model.as_deref(), &endpoint.profile.rules());
        let body = to_raw_value(&body).map_err(|error| unwritable(&error))?;
        let began = Instant::now();
        let mut attempt = 1;
        loop {
            let error = match self.attempt(target, request, &body).await {
                Ok(reply) => return Ok(reply),
                Err(error) => endpoint.without_key(error),
            };
            let jitter = |most| self.ids.jitter(most);
            let pause = retry::pause(&error, attempt, &endpoint.patience, &jitter);
            let left = endpoint.deadlines.total.saturating_sub(began.elapsed());
            let Some(pause) = pause.filter(|pause| *pause < left) else { return Err(error) };
            // For whoever waits at the terminal: one line a try.
            let (seconds, most) = (pause.as_secs_f64(), endpoint.patience.attempts);
            let next = attempt + 1;
            self.tell(&format!(
                "asking the model again in {seconds:.1} s ({next} of {most}), because {error}"
            ));
            sleep(pause).await;
            attempt += 1;
        }
    }

    async fn attempt(
        &self,
        target: &Target,
        request: &ModelRequest,
        body: &RawValue,
    ) -> Result<Reply, ModelError> {
        let started = Instant::now();
        let response = target.exchange.open(body, self.clock.now()).await?;
        let tools = request.tools.iter();
        let config = ReaderConfig {
            protocol: request.protocol,
            tools: Tools::new(tools.map(|tool| (tool.name.to_string(), tool.parameters.clone()))),
            think: target.endpoint.think,
        };
        let deadlines = target.endpoint.deadlines;
        let mut reply = Reply::new(response, Reader::new(config), deadlines, started);
        match reply.next().await {
            Some(Err(error)) => Err(error),
            Some(signal) => {
                reply.put_back(signal);
                Ok(reply)
            }
            None => Ok(reply),
        }
    }
}

#[async_trait]
impl Model for OpenAiModel {
    async fn ask(&self, request: &ModelRequest) -> Result<ReplyStream, ModelError> {
        let mut last = nowhere();
        for target in &self.targets {
            match self.ask_one(target, request).await {
                Ok(reply) => return Ok(into_stream(reply, target.endpoint.clone())),
                Err(error) => {
                    tracing::info!(endpoint = %target.endpoint.base_url, %error, "the model failed");
                    last = error;
                }
            }
        }
        Err(last)
    }
}

fn into_stream(reply: Reply, endpoint: Endpoint) -> ReplyStream {
    let next = |(mut reply, endpoint): (Reply, Endpoint)| async move {
        let signal = reply.next().await?.map_err(|error| endpoint.without_key(error));
        Some((signal, (reply, endpoint)))
    };
    stream::unfold((reply, endpoint), next).boxed()
}

fn unwritable(error: &serde_json::Error) -> ModelError {
    ModelError { message: format!("the request is no JSON: {error}"), ..nowhere() }
}

fn nowhere() -> ModelError {
    ModelError {
        kind: proto::model::ModelErrorKind::Network,
        retryable: false,
        retry_after: None,
        status: None,
        message: "no endpoint is configured".to_owned(),
        code: None,
    }
}

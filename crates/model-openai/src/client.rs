//! The model port over one or several endpoints.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::{StreamExt as _, stream};
use ports::admission::{Admission, NotAdmitted, Permit, Went, Wish};
use ports::clock::{Clock, Ids};
use ports::model::{Ear, Model, Reply as ReplyStream};
use proto::model::{ModelError, ModelErrorKind, ModelEvent, ModelRequest};
use proto::notice::{Next, Notice};
use reqwest::Response;
use serde_json::value::{RawValue, to_raw_value};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use crate::breaker::{Breaker, Change, is_trouble};
use crate::endpoint::Endpoint;
use crate::exchange::{Exchange, chain};
use crate::reader::{Reader, ReaderConfig, Tools};
use crate::reply::{Arrived, Reply};
use crate::{retry, wire};

/// Endpoints in the order in which they are tried.
pub struct OpenAiModel {
    targets: Vec<Target>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn Ids>,
    tell: Option<Tell>,
    watch: Option<Watch>,
    admission: Option<Arc<dyn Admission>>,
}

/// Tokens of a reply whose length nobody has limited.
const LIKELY_REPLY: u64 = 300;

/// Takes words for whoever watches.
type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// Takes what is known of an endpoint.
type Watch = Box<dyn Fn(&str, EndpointState) + Send + Sync>;

/// Whether an endpoint is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndpointState {
    /// It is.
    Works,
    /// It kept failing and is left alone.
    Rests,
}

struct Target {
    endpoint: Endpoint,
    exchange: Exchange,
    breaker: Mutex<Breaker>,
}

/// Why an endpoint gave no reply.
enum NoReply {
    Failed(ModelError),
    /// It rests, and nothing was asked.
    Rests(Duration),
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
pub(crate) fn http(
    with: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> Result<reqwest::Client, NoClient> {
    let builder = reqwest::Client::builder().connect_timeout(Duration::from_secs(10));
    with(builder).build().map_err(|error| NoClient(chain(&error)))
}

/// Whoever counts along should not be told the same tries twice.
fn round(failed: u32) -> String {
    if failed == 0 { String::new() } else { format!(", round {}", failed.saturating_add(1)) }
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
            Target { endpoint, exchange, breaker: Mutex::default() }
        };
        Ok(Self {
            targets: endpoints.into_iter().map(target).collect(),
            clock,
            ids,
            tell: None,
            watch: None,
            admission: None,
        })
    }

    /// The same; what people should know while it asks goes to `tell`, not into the log.
    #[must_use]
    pub fn telling(self, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { tell: Some(Box::new(tell)), ..self }
    }

    /// The same; each request waits until it is let through.
    #[must_use]
    pub fn admitted_by(self, admission: Arc<dyn Admission>) -> Self {
        Self { admission: Some(admission), ..self }
    }

    /// The same; `watch` is told which endpoints are asked, first of all of them.
    #[must_use]
    pub fn watched(self, watch: impl Fn(&str, EndpointState) + Send + Sync + 'static) -> Self {
        for target in &self.targets {
            watch(&target.endpoint.base_url, EndpointState::Works);
        }
        Self { watch: Some(Box::new(watch)), ..self }
    }

    fn tell(&self, words: &str) {
        if let Some(tell) = &self.tell {
            tell(words);
        } else {
            tracing::warn!("{words}");
        }
    }

    /// Asks one endpoint for one model until a first event is there, or it is of no use.
    async fn ask_one(
        &self,
        target: &Target,
        (request, model): (&ModelRequest, &str),
        ear: &dyn Ear,
    ) -> Result<Box<Reply>, NoReply> {
        target.admit().await.map_err(NoReply::Rests)?;
        let endpoint = &target.endpoint;
        let began = Instant::now();
        let mut attempt = 1;
        loop {
            let mut place = self.place(target, (request, model), ear).await?;
            let error = match self.attempt(target, request, model).await {
                Ok(reply) => {
                    self.note(target, None).await;
                    return Ok(reply.holding(place));
                }
                Err(error) => endpoint.without_key(error),
            };
            if let (Some(place), Some(429)) = (&mut place, error.status) {
                place.went(Went::Throttled(error.retry_after));
            }
            drop(place);
            self.note(target, Some(&error)).await;
            let jitter = |most| self.ids.jitter(most);
            let pause = retry::pause(&error, attempt, &endpoint.patience, &jitter);
            let left = endpoint.deadlines.total.saturating_sub(began.elapsed());
            let Some(pause) = pause.filter(|pause| *pause < left) else {
                return Err(NoReply::Failed(error));
            };
            // For whoever waits at the terminal: one line a try.
            let (seconds, most) = (pause.as_secs_f64(), endpoint.patience.attempts);
            let (next, round) = (attempt + 1, round(request.failed_rounds));
            let words = format!(
                "asking the model again in {seconds:.1} s ({next} of {most}{round}), because {error}"
            );
            self.tell(&words);
            ear.notice(waiting(words, pause));
            sleep(pause).await;
            ear.notice(Notice::waits_no_more());
            if target.admit().await.is_err() {
                return Err(NoReply::Failed(error));
            }
            attempt += 1;
        }
    }

    /// Waits for a place, where places are given.
    async fn place(
        &self,
        target: &Target,
        (request, model): (&ModelRequest, &str),
        ear: &dyn Ear,
    ) -> Result<Option<Box<dyn Permit>>, NoReply> {
        let Some(admission) = &self.admission else { return Ok(None) };
        let wish = Wish {
            endpoint: target.endpoint.base_url.clone(),
            model: model.to_owned(),
            tenant: request.tenant.clone(),
            tokens: likely_tokens(request),
        };
        let place = admission.admit(&wish, ear).await;
        place.map(Some).map_err(|not| NoReply::Failed(not_admitted(&not)))
    }

    /// Every model at every endpoint, in order, until one has a first event.
    async fn ask_each(
        &self,
        request: &ModelRequest,
        ear: &dyn Ear,
    ) -> Result<ReplyStream, NoReply> {
        let (mut failed, mut rest) = (None, None);
        let mut candidates = self.candidates(request).peekable();
        while let Some((model, target)) = candidates.next() {
            ear.asks(model);
            match self.ask_one(target, (request, model), ear).await {
                Ok(reply) => {
                    return Ok(into_stream(reply, target.endpoint.clone(), model.to_owned()));
                }
                Err(NoReply::Rests(left)) => {
                    rest = Some(rest.map_or(left, |rest: Duration| rest.min(left)));
                }
                Err(NoReply::Failed(error)) => {
                    tracing::info!(endpoint = %target.endpoint.base_url, model, %error, "no reply");
                    if let (ModelErrorKind::Timeout(deadline), Some(_)) =
                        (error.kind, candidates.peek())
                    {
                        ear.notice(Notice::DeadlinePassed { deadline, next: Next::AskedElsewhere });
                    }
                    failed = Some(error);
                }
            }
        }
        Err(match (failed, rest) {
            (None, Some(rest)) => NoReply::Rests(rest),
            (failed, _) => NoReply::Failed(failed.unwrap_or_else(nowhere)),
        })
    }

    /// A model is asked for everywhere before the next one is. An endpoint with a model of its own
    /// has no other.
    fn candidates<'a>(
        &'a self,
        request: &'a ModelRequest,
    ) -> impl Iterator<Item = (&'a str, &'a Target)> {
        let first = self.targets.iter().map(|target| {
            let model = target.endpoint.model.as_ref().unwrap_or(&request.model);
            (model.as_str(), target)
        });
        let more = request.fallbacks.iter().flat_map(|model| {
            let free = self.targets.iter().filter(|target| target.endpoint.model.is_none());
            free.map(|target| (model.as_str(), target))
        });
        first.chain(more)
    }

    /// Remembers how an endpoint did, and says so when that changes anything.
    async fn note(&self, target: &Target, error: Option<&ModelError>) {
        let endpoint = &target.endpoint.base_url;
        match target.heard(error).await {
            Change::None => {}
            Change::Opened(rest) => {
                let seconds = rest.as_secs_f64();
                self.tell(&format!(
                    "{endpoint} keeps failing and is left alone for {seconds:.0} s"
                ));
                self.watch(endpoint, EndpointState::Rests);
            }
            Change::Closed => {
                self.watch(endpoint, EndpointState::Works);
                tracing::info!(%endpoint, "the model's endpoint works again");
            }
        }
    }

    fn watch(&self, endpoint: &str, state: EndpointState) {
        if let Some(watch) = &self.watch {
            watch(endpoint, state);
        }
    }

    fn longest_wait(&self) -> Duration {
        let waits = self.targets.iter().map(|target| target.endpoint.patience.longest_wait);
        waits.max().unwrap_or_default()
    }

    async fn attempt(
        &self,
        target: &Target,
        request: &ModelRequest,
        model: &str,
    ) -> Result<Box<Reply>, ModelError> {
        let started = Instant::now();
        let deadlines = target.endpoint.deadlines;
        let mut response = self.open(target, request, model).await?;
        // Many threads wait here: what reads the reply is made once there is something to read.
        let first = Arrived::first(&mut response, &deadlines, started).await;
        let tools = request.tools.iter();
        let config = ReaderConfig {
            protocol: request.protocol,
            tools: Tools::new(
                tools.map(|tool| (tool.name.to_string(), Arc::clone(&tool.parameters))),
            ),
            think: target.endpoint.think,
        };
        let reply = Reply::new(response, Reader::new(config), deadlines, started);
        let mut reply = Box::new(reply);
        reply.take(first);
        match reply.next().await {
            Some(Err(error)) => Err(error),
            Some(signal) => {
                reply.put_back(signal);
                Ok(reply)
            }
            None => Ok(reply),
        }
    }

    /// Sends the request; answers the response to it.
    ///
    /// Many threads wait for a reply at once, so what only sending needs is let go here: the body's
    /// text, which another try writes anew, and the state of sending, in a box of its own.
    async fn open(
        &self,
        target: &Target,
        request: &ModelRequest,
        model: &str,
    ) -> Result<Response, ModelError> {
        let body = text_of(request, model, &target.endpoint)?;
        Box::pin(target.exchange.open(&body, self.clock.now())).await
    }
}

impl Target {
    async fn admit(&self) -> Result<(), Duration> {
        self.breaker.lock().await.admit(Instant::now())
    }

    /// What a request showed about the endpoint.
    async fn heard(&self, error: Option<&ModelError>) -> Change {
        let mut breaker = self.breaker.lock().await;
        match error {
            Some(error) if is_trouble(error) => breaker.failed(Instant::now()),
            Some(_) | None => breaker.answered(),
        }
    }
}

#[async_trait]
impl Model for OpenAiModel {
    /// Endpoints that rest are passed over; when all do, the first to wake is waited for.
    async fn ask(&self, request: &ModelRequest, ear: &dyn Ear) -> Result<ReplyStream, ModelError> {
        let began = Instant::now();
        loop {
            let rest = match self.ask_each(request, ear).await {
                Ok(reply) => return Ok(reply),
                Err(NoReply::Failed(error)) => return Err(error),
                Err(NoReply::Rests(rest)) => rest,
            };
            if began.elapsed().saturating_add(rest) > self.longest_wait() {
                return Err(resting(rest));
            }
            let rest = rest.saturating_add(self.ids.jitter(rest / 4));
            ear.notice(waiting(resting(rest).message, rest));
            sleep(rest).await;
            ear.notice(Notice::waits_no_more());
        }
    }
}

/// The events of a reply. A provider that does not name its model answered with the one asked for.
fn into_stream(reply: Box<Reply>, endpoint: Endpoint, model: String) -> ReplyStream {
    let next = |(mut reply, endpoint, model): (Box<Reply>, Endpoint, String)| async move {
        let mut signal = reply.next().await?.map_err(|error| endpoint.without_key(error));
        if let Ok(ModelEvent::End(end)) = &mut signal {
            reply.answered(end.usage.map(|usage| usage.tokens()));
            end.model.get_or_insert_with(|| model.clone());
        }
        Some((signal, (reply, endpoint, model)))
    };
    stream::unfold((reply, endpoint, model), next).boxed()
}

fn text_of(
    request: &ModelRequest,
    model: &str,
    endpoint: &Endpoint,
) -> Result<Box<RawValue>, ModelError> {
    let rules = endpoint.rules_for(request.profile);
    let body = wire::render(request, Some(model), &rules);
    to_raw_value(&body).map_err(|error| unwritable(&error))
}

/// A guess at what a request takes with its reply, for whoever shares out tokens.
fn likely_tokens(request: &ModelRequest) -> u64 {
    let reply = request.max_completion_tokens.map_or(LIKELY_REPLY, u64::from);
    request.likely_tokens.saturating_add(reply)
}

/// The endpoint did nothing wrong, and was not asked.
fn not_admitted(not: &NotAdmitted) -> ModelError {
    ModelError {
        kind: ModelErrorKind::HttpError,
        retryable: true,
        message: not.to_string(),
        ..nowhere()
    }
}

fn waiting(because: String, at_most: Duration) -> Notice {
    let at_most_ms = Some(u64::try_from(at_most.as_millis()).unwrap_or(u64::MAX));
    Notice::Waiting { because, at_most_ms }
}

fn unwritable(error: &serde_json::Error) -> ModelError {
    ModelError { message: format!("the request is no JSON: {error}"), ..nowhere() }
}

fn resting(rest: Duration) -> ModelError {
    let seconds = rest.as_secs_f64();
    ModelError {
        retryable: true,
        retry_after: Some(rest),
        message: format!("the endpoint kept failing and is left alone for {seconds:.0} s"),
        ..nowhere()
    }
}

fn nowhere() -> ModelError {
    ModelError {
        kind: ModelErrorKind::Network,
        retryable: false,
        retry_after: None,
        status: None,
        message: "no endpoint is configured".to_owned(),
        code: None,
    }
}

//! One connection to a server, with its process when it was started here.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use definitions::http::Header;
use definitions::mcp::{LiveTool, McpHttp, McpPlace, McpProcess, McpServer};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::ServiceExt as _;
use rmcp::model::Tool;
use rmcp::service::{Peer, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::FixedInterval;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::super::NotStarted;
use super::super::http::{Places, Targets, Tls, secret};
use super::super::secrets::Secrets;
use super::super::settings::ExecutorSettings;
use super::client::Client;
use super::process::{Process, Surroundings};

/// Longest message of a server; a longer one is dropped, and its call is never answered.
const LONGEST_MESSAGE: usize = 96 * 1024 * 1024;
/// The most tools of one server.
const MOST_TOOLS: usize = 2000;
/// A session elsewhere that was not used for so long is asked whether it still stands.
const STALE: Duration = Duration::from_secs(5);
/// How long it may take to answer that.
const PING: Duration = Duration::from_secs(2);
/// How often, and how soon, an answer that broke off is resumed.
const RESUMES: usize = 3;
const RESUME: Duration = Duration::from_millis(300);
/// How long a connection may take to be closed.
const CLOSING: Duration = Duration::from_secs(1);

/// A connection that is ready for calls.
pub(super) struct Instance {
    service: RunningService<RoleClient, Client>,
    process: Option<Process>,
    pub(super) secrets: Secrets,
    used: Instant,
}

impl Instance {
    /// Starts the server, or connects to it, and agrees on a version.
    pub(super) async fn start(
        server: &McpServer,
        settings: &ExecutorSettings,
        tls: &Tls,
        changes: Arc<watch::Sender<u64>>,
    ) -> Result<Self, NotStarted> {
        let client = Client { changes, progress: Arc::default() };
        let limit = Duration::from_millis(server.start_timeout_ms);
        match &server.place {
            McpPlace::Process(process) => Self::of_process(process, settings, client, limit).await,
            McpPlace::Http(http) => Self::of_http(http, settings, tls, client, limit).await,
        }
    }

    async fn of_process(
        process: &McpProcess,
        settings: &ExecutorSettings,
        client: Client,
        limit: Duration,
    ) -> Result<Self, NotStarted> {
        let around = Surroundings::of(process, settings)
            .map_err(|why| NotStarted { why, retryable: false })?;
        let (process, talk) = Process::start(process, &around, settings).await?;
        let secrets = Secrets::new(around.secrets);
        let (read, write) = talk.into_split();
        let transport =
            AsyncRwTransport::new_client(read, write).with_max_line_length(LONGEST_MESSAGE);
        let served = timeout(limit, client.serve(transport)).await;
        let why = match served {
            Ok(Ok(service)) => {
                return Ok(Self { service, process: Some(process), secrets, used: Instant::now() });
            }
            Ok(Err(error)) => format!("the MCP server did not begin: {error}"),
            Err(_) => format!("the MCP server did not begin within {} ms", limit.as_millis()),
        };
        let errors = process.errors();
        process.end().await;
        let said = if errors.is_empty() { String::new() } else { format!("; it said: {errors}") };
        Err(NotStarted { why: secrets.hide(&format!("{why}{said}")), retryable: true })
    }

    async fn of_http(
        http: &McpHttp,
        settings: &ExecutorSettings,
        tls: &Tls,
        client: Client,
        limit: Duration,
    ) -> Result<Self, NotStarted> {
        let refused = |why| NotStarted { why, retryable: false };
        let (headers, secrets) = headers(http, settings).map_err(refused)?;
        let targets = Targets::of_file(&http.url, http.private);
        let url = reqwest::Url::parse(&http.url).map_err(|error| refused(error.to_string()))?;
        targets.check(&url).map_err(refused)?;
        let web = web(tls, targets).map_err(|error| refused(error.to_string()))?;
        // A request that may have arrived is sent again by nobody but the rules for attempts.
        let mut config = StreamableHttpClientTransportConfig::with_uri(http.url.as_str())
            .custom_headers(headers)
            .max_sse_event_size(LONGEST_MESSAGE)
            .max_json_response_size(LONGEST_MESSAGE)
            .reinit_on_expired_session(false);
        // An answer that broke off is asked for again a few times; then it is lost.
        let mut resumes = FixedInterval::default();
        (resumes.max_times, resumes.duration) = (Some(RESUMES), RESUME);
        config.retry_config = Arc::new(resumes);
        let transport = StreamableHttpClientTransport::with_client(web, config);
        let secrets = Secrets::new(secrets);
        match timeout(limit, client.serve(transport)).await {
            Ok(Ok(service)) => Ok(Self { service, process: None, secrets, used: Instant::now() }),
            Ok(Err(error)) => {
                let why = format!("no session with the MCP server at {}: {error}", http.url);
                Err(NotStarted { why: secrets.hide(&why), retryable: true })
            }
            Err(_) => {
                let why = format!(
                    "the MCP server at {} did not answer within {} ms",
                    http.url,
                    limit.as_millis()
                );
                Err(NotStarted { why, retryable: true })
            }
        }
    }

    /// Whether its connection is over.
    pub(super) fn is_dead(&self) -> bool {
        self.service.is_closed() || self.service.is_transport_closed()
    }

    /// Whether it can take a call.
    pub(super) async fn is_fit(&self) -> bool {
        if self.is_dead() {
            return false;
        }
        if self.process.is_some() || self.used.elapsed() < STALE {
            return true;
        }
        let ping = rmcp::model::ClientRequest::PingRequest(rmcp::model::PingRequest::default());
        matches!(timeout(PING, self.service.send_request(ping)).await, Ok(Ok(_)))
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// The progress of the call in work.
    pub(super) fn progress(&self) -> watch::Receiver<Option<String>> {
        self.service.service().progress.send_replace(None);
        self.service.service().progress.subscribe()
    }

    /// It did what it was asked.
    pub(super) fn was_used(&mut self) {
        self.used = Instant::now();
    }

    /// The end of what its process wrote to standard error.
    pub(super) fn errors(&self) -> String {
        let said = self.process.as_ref().map(Process::errors).unwrap_or_default();
        self.secrets.hide(&said)
    }

    /// What the server says of its tools.
    pub(super) async fn tools(&self, limit: Duration) -> Result<Vec<LiveTool>, String> {
        match timeout(limit, self.service.list_all_tools()).await {
            Ok(Ok(tools)) => Ok(tools.into_iter().take(MOST_TOOLS).map(live).collect()),
            Ok(Err(error)) => {
                Err(self.secrets.hide(&format!("it does not list its tools: {error}")))
            }
            Err(_) => Err(format!("it did not list its tools within {} ms", limit.as_millis())),
        }
    }

    /// Ends it; when this returns, nothing of its process is left.
    pub(super) async fn end(self) {
        let Self { mut service, process, .. } = self;
        if let Some(process) = process {
            process.end().await;
        }
        drop(timeout(CLOSING, service.close()).await);
    }
}

/// No redirect is followed, so that no other host sees what this one is trusted with.
fn web(tls: &Tls, targets: Targets) -> Result<reqwest::Client, reqwest::Error> {
    reqwest::Client::builder()
        .tls_backend_preconfigured(tls.config())
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .dns_resolver(targets)
        .build()
}

fn live(tool: Tool) -> LiveTool {
    let hints = tool.annotations.unwrap_or_default();
    LiveTool {
        name: tool.name.into_owned(),
        description: tool.description.map(std::borrow::Cow::into_owned),
        parameters: Value::Object((*tool.input_schema).clone()),
        result_schema: tool.output_schema.map(|schema| Value::Object((*schema).clone())),
        read_only: hints.read_only_hint == Some(true),
        idempotent: hints.idempotent_hint == Some(true),
    }
}

type Headers = (HashMap<HeaderName, HeaderValue>, Vec<String>);

fn headers(http: &McpHttp, settings: &ExecutorSettings) -> Result<Headers, String> {
    let places = Places {
        folder: settings.manifest_folder.clone(),
        environment: settings.environment.clone(),
    };
    let (mut headers, mut secrets) = (HashMap::new(), Vec::new());
    for (name, header) in &http.headers {
        let text = match header {
            Header::Template(text) => text.clone(),
            Header::Secret { from, prefix } => {
                let secret = secret(from, &places)?;
                secrets.push(secret.clone());
                format!("{prefix}{secret}")
            }
        };
        let bad = || format!("the header `{name}` cannot be sent");
        let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_bad| bad())?;
        let mut value = HeaderValue::from_str(&text).map_err(|_bad| bad())?;
        value.set_sensitive(true);
        headers.insert(key, value);
    }
    Ok((headers, secrets))
}

//! The routes, and serving them until the end.

use std::io;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use ports::BusError;
use ports::clock::{Clock, Ids};
use ports::journal::Journal;
use ports::live::Live;
use ports::recall::Recall;
use ports::working_memory::WorkingMemory;
use prometheus::Registry;
use proto::error_code::ErrorCode;
use proto::ids::{Partition, TenantId, ThreadId, ThreadRef};
use service_runtime::health::Health;
use service_runtime::probes;
use service_runtime::shutdown::Shutdown;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::openapi;
use crate::problem::Problem;
use crate::settings::Settings;
use crate::{approvals, cancel, events, inputs, memory, threads};

/// What a gateway needs of the world.
#[derive(Clone)]
pub struct GatewayPorts {
    /// Records.
    pub journal: Arc<dyn Journal>,
    /// Live text.
    pub live: Arc<dyn Live>,
    /// The text of turns in progress, for readers that come late.
    pub working: Arc<dyn WorkingMemory>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Names.
    pub ids: Arc<dyn Ids>,
}

/// What every handler sees.
#[derive(Clone)]
pub(crate) struct App {
    pub(crate) ports: GatewayPorts,
    pub(crate) settings: Arc<Settings>,
    pub(crate) shutdown: Shutdown,
    pub(crate) metrics: Metrics,
    /// Of what else is in this process.
    others: Vec<Registry>,
    health: Health,
    /// Long-term memory, where there is one.
    pub(crate) memory: Option<Arc<dyn Recall>>,
    pub(crate) readers: Arc<Semaphore>,
    requests: Arc<Semaphore>,
}

impl App {
    /// Where a tenant's thread lives.
    pub(crate) fn place(&self, tenant: &TenantId, thread: ThreadId) -> ThreadRef {
        let partition = Partition::of(thread, self.settings.partitions);
        ThreadRef { partition, tenant: tenant.clone(), thread }
    }

    /// What comes of a request to the bus within the patience of a client.
    pub(crate) async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, Problem>>,
    ) -> Result<T, Problem> {
        let answered = tokio::time::timeout(self.settings.patience, work).await;
        answered.unwrap_or_else(|_elapsed| Err(Problem::late()))
    }
}

/// A gateway that can be served.
#[derive(Clone)]
pub struct Gateway {
    app: App,
}

impl Gateway {
    /// Over these ports, until `shutdown`. Whoever wires it says what `health` needs and when it
    /// has started.
    pub fn new(
        ports: GatewayPorts,
        settings: Settings,
        metrics: Metrics,
        health: Health,
        shutdown: Shutdown,
    ) -> Self {
        let readers = Arc::new(Semaphore::new(settings.max_readers));
        let requests = Arc::new(Semaphore::new(settings.max_requests));
        let settings = Arc::new(settings);
        let others = Vec::new();
        let memory = None;
        Self {
            app: App {
                ports,
                settings,
                shutdown,
                metrics,
                others,
                health,
                memory,
                readers,
                requests,
            },
        }
    }

    /// Answers also what is remembered.
    #[must_use]
    pub fn remembering(mut self, memory: Option<Arc<dyn Recall>>) -> Self {
        self.app.memory = memory;
        self
    }

    /// Shows also what others count that are in the same process.
    #[must_use]
    pub fn showing(mut self, others: Vec<Registry>) -> Self {
        self.app.others = others;
        self
    }

    /// Everything it answers, for servers that have other routes too.
    pub fn router(&self) -> Router {
        let asked = Router::new()
            .route("/v1/threads", post(threads::create))
            .route("/v1/threads/{thread}", get(threads::show))
            .route("/v1/threads/{thread}/inputs", post(inputs::post))
            .route("/v1/threads/{thread}/cancel", post(cancel::post))
            .route("/v1/threads/{thread}/approvals/{call}", post(approvals::post))
            .route("/v1/memory", get(memory::list))
            .route("/v1/memory/{thread}/{place}", get(memory::show).delete(memory::forget))
            .layer(middleware::from_fn_with_state(self.app.clone(), bounded));
        let app = &self.app;
        let shown = [vec![app.metrics.registry().clone()], app.others.clone()].concat();
        let probes = probes::routes(app.health.clone(), shown);
        asked
            .route("/v1/threads/{thread}/events", get(events::get))
            .route(openapi::PATH, get(openapi::get))
            .fallback(unknown)
            .method_not_allowed_fallback(wrong_method)
            .with_state(self.app.clone())
            .merge(probes)
    }

    /// Serves until the shutdown: then no connection is taken, requests are finished, readers of
    /// events are told to come back, and after the grace the rest is dropped.
    pub async fn serve(self, listener: TcpListener) -> Result<(), BusError> {
        let (shutdown, grace) = (self.app.shutdown.clone(), self.app.settings.grace);
        let listener = listener.tap_io(|stream| {
            // Small events would wait for one another.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "a connection keeps its delay");
            }
        });
        let draining = shutdown.clone();
        let serving = axum::serve(listener, self.router())
            .with_graceful_shutdown(async move { draining.draining().await });
        let too_long = async {
            shutdown.draining().await;
            tokio::select! {
                () = tokio::time::sleep(grace) => {}
                () = shutdown.abandoned() => {}
            }
        };
        tokio::select! {
            served = async { serving.await } => served.map_err(|error| stopped(&error)),
            () = too_long => Ok(()),
        }
    }
}

fn stopped(error: &io::Error) -> BusError {
    BusError::Unavailable(format!("the gateway cannot serve: {error}"))
}

/// No more requests at once than the gateway can answer in time.
async fn bounded(State(app): State<App>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let response = match app.requests.try_acquire() {
        Ok(_permit) => next.run(request).await,
        Err(_) => Problem::overloaded("too many requests at once").into_response(),
    };
    app.metrics.answered(response.status(), began.elapsed());
    response
}

async fn unknown(uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    Problem::not_found(format!("there is nothing at {path}"), "See docs/http.md for what there is.")
}

async fn wrong_method(method: Method, uri: Uri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::InvalidInput,
        format!("{method} is not answered at {path}"),
        "See docs/http.md for what is.",
    )
}

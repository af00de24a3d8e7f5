//! Tools that are requests to HTTP servers, and the builtin that fetches a page.
//!
//! An attempt has a connection of its own and sends its request once: nothing below sends it again.
//! Until a connection stands, nothing began, and that is the only proof there is. What ends badly
//! later leaves an effect open that may not be repeated: see [`verdict`].
//!
//! Reading order: [`address`] and [`plan`] make the request · [`targets`] says whom it may go to · [`exchange`] sends it and reads the
//! answer · [`kept`] bounds it · [`verdict`] and [`pick`] judge it · [`fetch`] and [`html`] are the
//! builtin.

mod address;
mod exchange;
mod fetch;
mod headers;
mod html;
mod kept;
mod pick;
mod plan;
mod retry_after;
mod targets;
mod tls;
mod verdict;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use definitions::http::HttpRun;
use proto::observation::Receipt;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use super::settings::ExecutorSettings;
use super::{Ended, Executor, Job, NotStarted, Prepared};
use exchange::{Request, Wire};
use kept::Kept;
use retry_after::Wait;
use verdict::Judge;

pub(super) use fetch::FetchTool;
pub(super) use headers::secret;
pub(super) use plan::words;
pub(super) use targets::Targets;
pub(super) use tls::Tls;

/// One HTTP tool.
pub(super) struct HttpTool {
    run: HttpRun,
    places: Places,
    tls: Tls,
    wait: Arc<Wait>,
}

/// Where secrets are looked up.
pub(super) struct Places {
    pub(super) folder: PathBuf,
    pub(super) environment: std::collections::BTreeMap<std::ffi::OsString, std::ffi::OsString>,
}

impl HttpTool {
    pub(super) fn new(run: &HttpRun, settings: &ExecutorSettings) -> Self {
        let folder = settings.manifest_folder.clone();
        let places = Places { folder, environment: settings.environment.clone() };
        Self { run: run.clone(), places, tls: Tls::default(), wait: Arc::default() }
    }
}

#[async_trait]
impl Executor for HttpTool {
    async fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>, NotStarted> {
        let plan = plan::plan(&self.run, &self.places, job).map_err(refused)?;
        self.wait.over().await;
        Ok(Box::new(Ready {
            request: plan.request,
            most: self.run.max_output_bytes,
            tls: self.tls.config(),
            targets: Targets::of_file(&self.run.origin, self.run.private),
            judge: Judge::of_tool(&self.run, plan.secrets, job, Arc::clone(&self.wait)),
            is_page: false,
        }))
    }
}

fn refused(why: String) -> NotStarted {
    NotStarted { why, retryable: false }
}

/// A request that is ready to be sent.
struct Ready {
    request: Request,
    most: u64,
    tls: rustls::ClientConfig,
    targets: Targets,
    judge: Judge,
    /// Whether the answer is for reading, so that markup is in the way.
    is_page: bool,
}

/// Who ended an exchange that did not end by itself.
enum Stop {
    Cancelled,
    Late,
}

#[async_trait]
impl Prepared for Ready {
    fn process_group(&self) -> Option<i32> {
        None
    }

    async fn run(self: Box<Self>, deadline: Instant, cancel: CancellationToken) -> Ended {
        let Self { request, most, tls, targets, judge, is_page } = *self;
        let wire = Wire::default();
        let mut kept = Kept::new(most);
        let answer = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(Stop::Cancelled),
            () = sleep_until(deadline) => Err(Stop::Late),
            answer = exchange::exchange(request, (tls, targets), &wire, &mut kept) => Ok(answer),
        };
        match answer {
            Ok(answer) if is_page => fetch::page(&judge, answer, kept),
            Ok(answer) => judge.ended(answer, kept),
            Err(stop) => stopped(&stop, &wire, kept, &judge),
        }
    }
}

/// Closing a connection does not stop what the server does.
fn stopped(stop: &Stop, wire: &Wire, kept: Kept, judge: &Judge) -> Ended {
    let output = judge.clean(kept.finish());
    match (stop, wire.stands()) {
        (Stop::Cancelled, false) => {
            Ended::Cancelled { output, receipt: Receipt::StoppedBeforeEffect }
        }
        (Stop::Cancelled, true) => Ended::Cancelled { output, receipt: Receipt::Unknown },
        (Stop::Late, false) => {
            let why = "no connection stood within the attempt's time limit".to_owned();
            Ended::NotStarted(NotStarted { why, retryable: true })
        }
        (Stop::Late, true) => Ended::TimedOut { output },
    }
}

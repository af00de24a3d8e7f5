//! One call of a tool.

use std::sync::Arc;
use std::time::Duration;

use ports::artifacts::Artifacts;
use proto::ids::ThreadRef;
use proto::observation::Receipt;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotification, CancelledNotificationParam,
    ClientNotification, ClientRequest, RequestId, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, ServiceError};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::super::{Ended, NotStarted, Output};
use super::content;
use super::instance::Instance;
use super::pool::Lease;

/// How long a server that was told to stop may take to answer after all, or to put things in order,
/// before its process is ended.
const LAST_WORD: Duration = Duration::from_millis(500);
/// How long a cancel may take to be sent.
const SENDING: Duration = Duration::from_millis(500);

/// A call to make.
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
    pub(super) thread: ThreadRef,
    pub(super) artifacts: Option<Arc<dyn Artifacts>>,
}

/// What came of the request.
enum Outcome {
    Answered(Box<Result<ServerResult, ServiceError>>),
    Late,
    Cancelled,
}

/// What becomes of the instance.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Instead {
    Keep,
    End,
    Died,
}

impl Call {
    /// Makes it with the instance of `lease`, and sees to what becomes of that.
    pub(super) async fn make(
        self,
        mut lease: Lease,
        deadline: Instant,
        cancel: CancellationToken,
    ) -> Ended {
        if cancel.is_cancelled() {
            lease.give_back(false).await;
            let receipt = Receipt::StoppedBeforeEffect;
            return Ended::Cancelled { output: Output::default(), receipt };
        }
        if Instant::now() >= deadline {
            lease.give_back(false).await;
            let why = "the attempt's deadline passed before the tool could begin".to_owned();
            return Ended::NotStarted(NotStarted { why, retryable: true });
        }
        lease.begin();
        let Some(instance) = lease.instance() else {
            let why = "the MCP server is gone".to_owned();
            return Ended::NotStarted(NotStarted { why, retryable: true });
        };
        let (ended, instead) = self.with(instance, &lease, deadline, &cancel).await;
        let ended = instance.secrets.ended(ended);
        match instead {
            Instead::Keep => lease.give_back(true).await,
            Instead::End => lease.discard(false).await,
            Instead::Died => lease.discard(true).await,
        }
        ended
    }

    async fn with(
        &self,
        instance: &Instance,
        lease: &Lease,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> (Ended, Instead) {
        let params =
            CallToolRequestParams::new(self.tool.clone()).with_arguments(self.arguments.clone());
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let progress = instance.progress();
        let handle = match instance.peer().send_cancellable_request(request, options).await {
            Ok(handle) => handle,
            // The connection was closed before it took the request.
            Err(error) => {
                let why = format!("the MCP server is gone: {error}");
                return (Ended::NotStarted(NotStarted { why, retryable: true }), Instead::Died);
            }
        };
        let outcome = Self::outcome(handle, instance, deadline, cancel).await;
        let said = progress.borrow().clone();
        match outcome {
            Outcome::Answered(answer) => self.answered(*answer, instance, lease, said).await,
            Outcome::Late => (Ended::TimedOut { output: partial(said) }, Instead::End),
            Outcome::Cancelled => {
                let ended = Ended::Cancelled { output: partial(said), receipt: Receipt::Unknown };
                (ended, Instead::End)
            }
        }
    }

    async fn outcome(
        handle: RequestHandle<RoleClient>,
        instance: &Instance,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Outcome {
        let id = handle.id.clone();
        let answer = handle.await_response();
        tokio::pin!(answer);
        let stop = tokio::select! {
            biased;
            answer = &mut answer => return Outcome::Answered(Box::new(answer)),
            () = cancel.cancelled() => Outcome::Cancelled,
            () = sleep_until(deadline) => Outcome::Late,
        };
        let reason = match stop {
            Outcome::Cancelled => "it is not wanted any more",
            Outcome::Late | Outcome::Answered(_) => "its time is over",
        };
        tell(instance, id, reason).await;
        // Whoever had finished already says so; nobody else has to answer.
        let last = Instant::now() + LAST_WORD;
        match timeout_at(last, answer).await {
            Ok(answer @ Ok(ServerResult::CallToolResult(_))) => Outcome::Answered(Box::new(answer)),
            // The client gives a request up with its cancel; the server has yet to read of it.
            Ok(_) => {
                sleep_until(last).await;
                stop
            }
            Err(_) => stop,
        }
    }

    async fn answered(
        &self,
        answer: Result<ServerResult, ServiceError>,
        instance: &Instance,
        lease: &Lease,
        said: Option<String>,
    ) -> (Ended, Instead) {
        match answer {
            Ok(ServerResult::CallToolResult(result)) => {
                let is_error = result.is_error == Some(true);
                let most = lease.server().max_output_bytes;
                let artifacts = self.artifacts.as_deref();
                let output = content::output(result, artifacts, &self.thread, most).await;
                let ended = if is_error {
                    let why = "the tool says that it failed".to_owned();
                    Ended::Failed { output, why, retryable: false }
                } else {
                    Ended::Done(output)
                };
                (ended, Instead::Keep)
            }
            Ok(_) => {
                let why =
                    "the MCP server did not answer with a result: it asks for more input, or \
                           works on as a task, which is not supported"
                        .to_owned();
                (Ended::Crashed { output: partial(said), why }, Instead::End)
            }
            // The server read the request and says no.
            Err(ServiceError::McpError(error)) => {
                let why = format!("the MCP server answered with an error: {}", error.message);
                (Ended::Failed { output: Output::default(), why, retryable: false }, Instead::Keep)
            }
            Err(error) => {
                let errors = instance.errors();
                let mark = if errors.is_empty() { "" } else { "; it said: " };
                let why =
                    format!("the MCP server ended or broke the connection: {error}{mark}{errors}");
                (Ended::Crashed { output: partial(said), why }, Instead::Died)
            }
        }
    }
}

/// Tells the server that nobody waits any more.
async fn tell(instance: &Instance, id: RequestId, reason: &str) {
    let params = CancelledNotificationParam::new(Some(id), Some(reason.to_owned()));
    let notice = ClientNotification::CancelledNotification(CancelledNotification::new(params));
    let sent = timeout(SENDING, instance.peer().send_notification(notice)).await;
    if !matches!(sent, Ok(Ok(()))) {
        tracing::debug!("an MCP server was not told to stop; its process is ended");
    }
}

/// How far a call had come, in the server's own words.
fn partial(said: Option<String>) -> Output {
    said.map_or_else(Output::default, |said| Output::from(format!("[progress {said}]")))
}

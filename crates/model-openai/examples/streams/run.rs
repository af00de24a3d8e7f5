//! One case: the whole of it, then each call with the rest of the body held back.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use model_openai::{Endpoint, OpenAiModel, Profile};
use ports::clock::{Clock, Ids};
use ports::model::{Deaf, Model as _};
use proto::ids::{Nonce, ThreadId, ToolCallId};
use proto::model::{
    Block, BrokenCall, ModelError, ModelEvent, ModelRequest, ModelTool, ReadyCall, ReplyEnd,
};
use proto::time::Timestamp;
use proto::transcript::{Entry, Transcript};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::case::{Case, Corpus};
use crate::server::{End, Response, Server};
use crate::{check, next_request};

/// How long a call may take that has to be out already.
const HELD: Duration = Duration::from_mins(1);

/// What came of one request.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What was said.
    pub(crate) text: String,
    /// What was thought.
    pub(crate) reasoning: String,
    /// Calls that can run.
    pub(crate) ready: Vec<ReadyCall>,
    /// Calls that cannot.
    pub(crate) broken: Vec<BrokenCall>,
    /// How it ended.
    pub(crate) end: Option<ReplyEnd>,
    /// How it failed.
    pub(crate) error: Option<ModelError>,
}

impl Outcome {
    /// Takes a signal.
    pub(crate) fn take(&mut self, signal: Result<ModelEvent, ModelError>) {
        match signal {
            Ok(ModelEvent::Text { delta }) => self.text.push_str(&delta),
            Ok(ModelEvent::Reasoning { delta }) => self.reasoning.push_str(&delta),
            Ok(ModelEvent::CallStarted { .. }) => {}
            Ok(ModelEvent::CallReady(call)) => self.ready.push(call),
            Ok(ModelEvent::CallBroken(call)) => self.broken.push(call),
            Ok(ModelEvent::End(end)) => self.end = Some(end),
            Err(error) => self.error = Some(error),
        }
        self.ready.sort_by_key(|call| call.position);
        self.broken.sort_by_key(|call| call.position);
    }
}

/// Runs a case; answers what is wrong.
pub(crate) async fn case(corpus: &Corpus, at: usize) -> Vec<String> {
    let Some(case) = corpus.cases.get(at) else { return Vec::new() };
    match whole(corpus, case).await {
        Ok(problems) => problems,
        Err(error) => vec![format!("{error:#}")],
    }
}

async fn whole(corpus: &Corpus, case: &Case) -> anyhow::Result<Vec<String>> {
    let mut server = Server::start(script(corpus, case, None)).await?;
    let model = model(case, &server.base_url)?;
    let mut entries = vec![Entry::User { text: "go".to_owned() }];
    let mut all = Outcome::default();
    let mut began = Vec::new();
    for turn in 0..case.files().len() {
        let request = request(case, entries.clone())?;
        began.push(Instant::now());
        let outcome = ask(&model, &request).await;
        entries.push(next_request::answered(&outcome, turn)?);
        merge(&mut all, outcome);
    }
    let requests = server.requests();
    let spent = began.first().map(Instant::elapsed).unwrap_or_default();
    let mut problems = Vec::new();
    match check::outcome(case, &all, &requests, spent) {
        Ok(matched) => problems.extend(held(corpus, case, &matched).await?),
        Err(wrong) => problems.extend(wrong),
    }
    if let Some(rules) = &case.next_request {
        drop(model.ask(&request(case, entries)?, &Deaf).await);
        let body = server.requests().pop().map(|request| request.body).unwrap_or_default();
        problems.extend(next_request::check(rules, &body));
    }
    Ok(problems)
}

fn merge(all: &mut Outcome, outcome: Outcome) {
    let shift = u32::try_from(all.ready.len() + all.broken.len()).unwrap_or(0);
    let ready =
        outcome.ready.into_iter().map(|call| ReadyCall { position: call.position + shift, ..call });
    let broken = outcome
        .broken
        .into_iter()
        .map(|call| BrokenCall { position: call.position + shift, ..call });
    all.ready.extend(ready);
    all.broken.extend(broken);
    all.text.push_str(&outcome.text);
    all.reasoning.push_str(&outcome.reasoning);
    all.end = outcome.end;
    all.error = outcome.error;
}

/// Asks and reads to the end.
async fn ask(model: &OpenAiModel, request: &ModelRequest) -> Outcome {
    let mut outcome = Outcome::default();
    match model.ask(request, &Deaf).await {
        Ok(mut reply) => {
            while let Some(signal) = reply.next().await {
                outcome.take(signal);
            }
        }
        Err(error) => outcome.error = Some(error),
    }
    outcome
}

/// Each call must be out once its last byte is: the rest of the body is held back.
async fn held(corpus: &Corpus, case: &Case, matched: &Value) -> anyhow::Result<Vec<String>> {
    let calls = matched.as_array().cloned().unwrap_or_default();
    let mut problems = Vec::new();
    for (nth, call) in calls.iter().enumerate() {
        let Some(byte) = call.get("ready_byte").and_then(Value::as_u64) else { continue };
        let byte = usize::try_from(byte)?;
        // With several turns each has its own calls; the corpus gives each turn one.
        let file = if case.turns.is_some() { nth } else { 0 };
        let server = Server::start(script(corpus, case, Some((file, byte)))).await?;
        let model = model(case, &server.base_url)?;
        let request = request(case, vec![Entry::User { text: "go".to_owned() }])?;
        let is_out = timeout(HELD, wait_for(&model, &request, call)).await.unwrap_or(false);
        if !is_out {
            problems.push(format!("call {nth} was not out after {byte} bytes"));
        }
    }
    Ok(problems)
}

async fn wait_for(model: &OpenAiModel, request: &ModelRequest, call: &Value) -> bool {
    let Ok(mut reply) = model.ask(request, &Deaf).await else { return false };
    while let Some(signal) = reply.next().await {
        if let Ok(ModelEvent::CallReady(ready)) = signal
            && check::is_call(&ready, call)
        {
            return true;
        }
    }
    false
}

/// The responses of a case. With `held`, one file is sent up to a byte and then held.
fn script(corpus: &Corpus, case: &Case, held: Option<(usize, usize)>) -> Vec<Response> {
    if let Some((file, byte)) = held {
        let name = case.files().get(file).cloned().unwrap_or_default();
        let mut body = corpus.body(&name);
        body.truncate(byte);
        return vec![Response { body, end: End::Hold(None), ..plain(case) }];
    }
    let mut script: Vec<Response> =
        case.files().iter().map(|file| served(corpus.body(file), case)).collect();
    if let Some(other) = case.then.as_deref().and_then(|id| corpus.by_id(id)) {
        script.push(served(corpus.body(&other.file), other));
    }
    script
}

fn plain(case: &Case) -> Response {
    let mut headers: Vec<(String, String)> =
        case.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    if !case.headers.contains_key("content-type") {
        headers.push(("content-type".to_owned(), "text/event-stream".to_owned()));
    }
    Response {
        status: case.status.unwrap_or(200),
        headers,
        body: Vec::new(),
        splits: case.splits.clone().unwrap_or_default(),
        end: End::Complete,
    }
}

fn served(mut body: Vec<u8>, case: &Case) -> Response {
    let mut end = End::Complete;
    if let Some(after) = case.disconnect_after {
        body.truncate(after);
        end = match case.disconnect.as_deref() {
            Some("abort") => End::Abort,
            Some("reset") => End::Reset,
            Some(_) | None => End::Complete,
        };
    }
    if let Some(after) = case.stall_after {
        body.truncate(after);
        end = End::Hold(case.keepalive.as_ref().map(keepalive));
    }
    Response { body, end, ..plain(case) }
}

/// What is sent again and again: a text, or a text among other fields.
fn keepalive(given: &Value) -> String {
    let inner = || given.as_object()?.values().find_map(Value::as_str);
    given.as_str().or_else(inner).unwrap_or(": keepalive\n\n").to_owned()
}

fn model(case: &Case, base_url: &str) -> anyhow::Result<OpenAiModel> {
    let mut endpoint = Endpoint::new(base_url, "key");
    if let Some(profile) = &case.profile {
        endpoint.profile = Some(profile.parse::<Profile>()?);
    }
    // Where silence is the case it is waited for; elsewhere a busy machine is no silent one.
    let is_silent = case.stall_after.is_some();
    let (first_token, idle) = if is_silent { (10, 2) } else { (60, 60) };
    endpoint.deadlines.first_token = Duration::from_secs(first_token);
    endpoint.deadlines.idle = Duration::from_secs(idle);
    endpoint.deadlines.total = Duration::from_mins(3);
    endpoint.deadlines.grace = Duration::from_millis(150);
    endpoint.patience.backoff = Duration::from_millis(20);
    Ok(OpenAiModel::new(vec![endpoint], Arc::new(Now), Arc::new(Names))?)
}

fn request(case: &Case, entries: Vec<Entry>) -> anyhow::Result<ModelRequest> {
    let tool = |name: &String| {
        let name = name.parse()?;
        Ok(ModelTool {
            name,
            description: String::new(),
            parameters: json!({"type": "object"}).into(),
        })
    };
    Ok(ModelRequest {
        agent: "probe".parse()?,
        model: "probe-1".to_owned(),
        protocol: case.protocol(),
        head: vec![Block { name: "role".to_owned(), text: "You are a probe.".to_owned() }],
        transcript: Transcript::new(entries)?,
        tail: Vec::new(),
        tools: case.tools.iter().map(tool).collect::<anyhow::Result<_>>()?,
        temperature: None,
        fallbacks: Vec::new(),
        max_completion_tokens: None,
        profile: None,
        tenant: None,
        likely_tokens: 0,
        estimate: proto::model::Estimate::default(),
        failed_rounds: 0,
    })
}

struct Now;

impl Clock for Now {
    #[expect(clippy::disallowed_methods, reason = "the server's dates are real")]
    fn now(&self) -> Timestamp {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Timestamp(i64::try_from(since.unwrap_or_default().as_millis()).unwrap_or(0))
    }
}

struct Names;

impl Ids for Names {
    fn nonce(&self) -> Nonce {
        unreachable!("the client makes no records")
    }
    fn tool_call_id(&self) -> ToolCallId {
        unreachable!("the client names no calls")
    }
    fn thread_id(&self, _: Timestamp) -> ThreadId {
        unreachable!("the client opens no threads")
    }
    fn jitter(&self, most: Duration) -> Duration {
        most / 2
    }
}

//! The builtins `remember`, `recall` and `forget`: long-term memory as tools. What is remembered has an
//! id that is made of its call, so a call that runs twice remembers once.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use definitions::run::Builtin;
use memory_core::fragment::{Fragment, Origin};
use memory_core::kind::Kind;
use memory_core::text::tokens;
use ports::BusError;
use ports::clock::Clock;
use ports::embedder::Embedder;
use ports::recall::{
    Access, Kept, LONGEST_TEXT, Query, Recall, Scope, call_id, parse_id, short_id,
};
use proto::observation::Receipt;
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tool_core::redact::Redactor;

use super::{Ended, Executor, Job, NotStarted, Output, Prepared};

/// Memories of one answer.
const FOUND: u64 = 8;
const MOST_FOUND: u64 = 50;

/// Long-term memory, as tools use it.
#[derive(Clone)]
pub struct ToolMemory {
    /// The store.
    pub recall: Arc<dyn Recall>,
    /// What texts mean.
    pub embedder: Arc<dyn Embedder>,
}

impl fmt::Debug for ToolMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolMemory").finish_non_exhaustive()
    }
}

/// One of the three.
pub(super) struct MemoryTool {
    builtin: Builtin,
    memory: Option<ToolMemory>,
    clock: Arc<dyn Clock>,
}

impl MemoryTool {
    pub(super) fn new(builtin: Builtin, memory: Option<ToolMemory>, clock: Arc<dyn Clock>) -> Self {
        Self { builtin, memory, clock }
    }
}

#[async_trait]
impl Executor for MemoryTool {
    async fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>, NotStarted> {
        let Some(memory) = self.memory.clone() else {
            let why = "this worker has no long-term memory".to_owned();
            return Err(NotStarted { why, retryable: false });
        };
        let (builtin, job, clock) = (self.builtin, job.clone(), Arc::clone(&self.clock));
        Ok(Box::new(Ready { memory, builtin, job, clock }))
    }
}

struct Ready {
    memory: ToolMemory,
    builtin: Builtin,
    job: Job,
    clock: Arc<dyn Clock>,
}

#[async_trait]
impl Prepared for Ready {
    fn process_group(&self) -> Option<i32> {
        None
    }

    async fn run(self: Box<Self>, deadline: Instant, cancel: CancellationToken) -> Ended {
        let work = async {
            match self.builtin {
                Builtin::Remember => self.remember().await,
                Builtin::Forget => self.forget().await,
                Builtin::Recall
                | Builtin::ListFiles
                | Builtin::ReadFile
                | Builtin::SearchFiles
                | Builtin::WriteFile
                | Builtin::EditFile
                | Builtin::Clock
                | Builtin::FetchUrl
                | Builtin::Expand => self.find().await,
            }
        };
        tokio::select! {
            biased;
            () = cancel.cancelled() => {
                Ended::Cancelled { output: Output::default(), receipt: Receipt::Unknown }
            }
            done = work => done.unwrap_or_else(|failed| failed),
            () = sleep_until(deadline) => Ended::TimedOut { output: Output::default() },
        }
    }
}

type Done = Result<Ended, Ended>;

fn done(text: String) -> Ended {
    Ended::Done(Output::from(text))
}

fn failed(why: String, retryable: bool) -> Ended {
    Ended::Failed { output: Output::default(), why, retryable }
}

fn of_store(error: &BusError) -> Ended {
    failed(format!("long-term memory: {error}"), error.is_transient())
}

impl Ready {
    fn access(&self) -> Access {
        Access::of_thread(&self.job.thread)
    }

    fn text(&self, name: &str) -> Result<&str, Ended> {
        let text = self.job.call.arguments.get(name).and_then(Value::as_str);
        text.map(str::trim)
            .filter(|text| !text.is_empty())
            .ok_or_else(|| failed(format!("argument `{name}` is empty: say it in words"), false))
    }

    async fn meaning(&self, text: &str) -> Result<Option<Arc<[f32]>>, BusError> {
        let own = self.memory.embedder.space().await?;
        if own.is_none() || own != self.memory.recall.space().await? {
            return Ok(None);
        }
        Ok(self.memory.embedder.embed(&[text.to_owned()]).await?.into_iter().next())
    }

    async fn remember(&self) -> Done {
        let text = Redactor::standard().redact(self.text("text")?);
        if text.len() > LONGEST_TEXT {
            let why = format!("a memory has at most {LONGEST_TEXT} bytes: remember less at once");
            return Err(failed(why, false));
        }
        let is_rule = self.job.call.arguments.get("kind").and_then(Value::as_str) == Some("rule");
        let fragment = Fragment {
            id: call_id(&self.job.thread, &self.job.call.tool_call_id),
            origin: Origin::Remembered,
            kind: if is_rule { Kind::Instruction } else { Kind::Assertion },
            at: self.clock.now(),
            tokens: u32::try_from(tokens(&text)).unwrap_or(u32::MAX),
            entities: Vec::new(),
            // Somebody asked for it.
            importance: 1.0,
            explanation: None,
            facts: Vec::new(),
            text,
        };
        let id = short_id(&fragment.id);
        let vector = self.meaning(&fragment.text).await.map_err(|error| of_store(&error))?;
        let kept = Kept { vector, ..Kept::new(fragment) };
        let put = self.memory.recall.put(&self.access(), vec![kept]).await;
        let put = put.map_err(|error| of_store(&error))?;
        if put.kept == 0 {
            return Err(failed("it was not kept: it has been forgotten since".to_owned(), false));
        }
        Ok(done(format!("remembered as {id}")))
    }

    async fn forget(&self) -> Done {
        let access = self.access();
        let id =
            parse_id(&access, self.text("id")?).map_err(|bad| failed(bad.to_string(), false))?;
        let scope = Scope::Fragment { id: id.clone() };
        let gone = self.memory.recall.forget(&access, &scope, self.clock.now()).await;
        let gone = gone.map_err(|error| of_store(&error))?;
        let id = short_id(&id);
        // A second attempt finds nothing left, and that is what was asked for.
        Ok(done(if gone > 0 { format!("forgotten: {id}") } else { format!("there is no {id}") }))
    }

    async fn find(&self) -> Done {
        let question = Redactor::standard().redact(self.text("question")?);
        let limit = self.job.call.arguments.get("limit").and_then(Value::as_u64).unwrap_or(FOUND);
        let k = usize::try_from(limit.clamp(1, MOST_FOUND)).unwrap_or(1);
        let vector = self.meaning(&question).await.map_err(|error| of_store(&error))?;
        let query = Query { vector, ..Query::words(question, k, self.clock.now()) };
        let hits = self.memory.recall.query(&self.access(), &query).await;
        let hits = hits.map_err(|error| of_store(&error))?;
        if hits.is_empty() {
            return Ok(done("nothing is remembered that fits".to_owned()));
        }
        let lines = hits.iter().map(|hit| {
            let fragment = &hit.kept.fragment;
            format!("[{}] {}", short_id(&fragment.id), fragment.text.replace('\n', "\n  "))
        });
        Ok(done(lines.collect::<Vec<_>>().join("\n")))
    }
}

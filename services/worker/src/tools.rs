//! The tools that a worker serves.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use argument_check::{ArgumentCheck, BadSchema, describe};
use proto::call::ToolCall;
use proto::ids::ToolName;
use proto::tool::ToolContract;
use tokio::time::Instant;

use crate::executor::Executor;

/// One tool: what it promises, and what carries it out.
pub struct Tool {
    /// The promise.
    pub contract: ToolContract,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) probe: Option<Arc<dyn Executor>>,
    check: ArgumentCheck,
    result: Option<ArgumentCheck>,
    pub(crate) closed: SeenClosed,
}

/// How long a breaker that was seen closed is taken to be so. The samples of a busy tool are many,
/// and successes never open it: a failure that happens here ends this at once, one elsewhere is
/// noticed after it.
const FRESH: Duration = Duration::from_millis(250);

/// When the tool's breaker was last seen closed.
#[derive(Debug, Default)]
pub(crate) struct SeenClosed(Mutex<Option<Instant>>);

impl SeenClosed {
    /// Whether it may be taken to be closed.
    pub(crate) fn is_fresh(&self) -> bool {
        self.at().is_some_and(|at| at.elapsed() < FRESH)
    }

    /// Judged closed by samples that were asked for at `asked`.
    pub(crate) fn see(&self, asked: Instant) {
        *self.at() = Some(asked);
    }

    /// The tool failed.
    pub(crate) fn forget(&self) {
        *self.at() = None;
    }

    fn at(&self) -> std::sync::MutexGuard<'_, Option<Instant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("contract", &self.contract).finish_non_exhaustive()
    }
}

impl Tool {
    /// A tool with its executor. A checkable one brings a probe, which runs with the arguments of
    /// the call: it ends well when it finds the effect, and reports a failure when it does not.
    pub fn new(
        contract: ToolContract,
        executor: Arc<dyn Executor>,
        probe: Option<Arc<dyn Executor>>,
    ) -> Result<Self, BadSchema> {
        let check = ArgumentCheck::new(&contract.parameters)?;
        let result = contract.result_schema.as_ref().map(ArgumentCheck::of_any).transpose()?;
        Ok(Self { contract, executor, probe, check, result, closed: SeenClosed::default() })
    }

    /// The check of its results, when it promises a schema for them.
    pub(crate) fn result_check(&self) -> Option<&ArgumentCheck> {
        self.result.as_ref()
    }

    /// What is wrong with a call's arguments.
    pub(crate) fn problems(&self, call: &ToolCall) -> Option<String> {
        self.check.check(&call.arguments).err().map(|problems| describe(&problems))
    }
}

/// All tools of a worker, by name.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    by_name: BTreeMap<ToolName, Arc<Tool>>,
}

impl Tools {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool; one of the same name is replaced.
    pub fn add(&mut self, tool: Tool) {
        self.by_name.insert(tool.contract.name.clone(), Arc::new(tool));
    }

    /// The tools, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Tool>> {
        self.by_name.values()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }
}

//! The tools that a worker serves.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use argument_check::{ArgumentCheck, BadSchema, describe};
use proto::call::ToolCall;
use proto::ids::ToolName;
use proto::tool::ToolContract;

use crate::breaker::BreakerView;
use crate::executor::Executor;

/// One tool: what it promises, and what carries it out.
pub struct Tool {
    /// The promise.
    pub contract: ToolContract,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) probe: Option<Arc<dyn Executor>>,
    check: ArgumentCheck,
    result: Option<ArgumentCheck>,
    pub(crate) breaker: BreakerView,
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
        Ok(Self { contract, executor, probe, check, result, breaker: BreakerView::default() })
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

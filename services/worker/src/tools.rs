//! The tools that a worker serves.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use argument_check::{ArgumentCheck, BadSchema, describe};
use definitions::policy::Policy;
use proto::call::ToolCall;
use proto::ids::ToolName;
use proto::tool::ToolContract;
use tokio::sync::Semaphore;

use crate::breaker::BreakerView;
use crate::executor::Executor;

/// One tool: what it promises, and what carries it out.
pub struct Tool {
    /// The promise.
    pub contract: ToolContract,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) probe: Option<Arc<dyn Executor>>,
    pub(crate) policy: Policy,
    /// Other ways to run it, in the order in which they are tried.
    pub(crate) fallbacks: Vec<Arc<dyn Executor>>,
    check: ArgumentCheck,
    result: Option<ArgumentCheck>,
    pub(crate) breaker: BreakerView,
    /// Calls of it that may run here at once.
    pub(crate) slots: Option<Arc<Semaphore>>,
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
        Ok(Self {
            contract,
            executor,
            probe,
            policy: Policy::default(),
            fallbacks: Vec::new(),
            check,
            result,
            breaker: BreakerView::default(),
            slots: None,
        })
    }

    /// The same with what its manifest says of sharing and waiting, and with other ways to run it.
    #[must_use]
    pub fn with_policy(mut self, policy: Policy, fallbacks: Vec<Arc<dyn Executor>>) -> Self {
        let here = policy.concurrency.per_worker.and_then(|most| usize::try_from(most).ok());
        self.slots = here.map(|most| Arc::new(Semaphore::new(most.max(1))));
        (self.policy, self.fallbacks) = (policy, fallbacks);
        self
    }

    /// Its ways to run, from its own on.
    pub(crate) fn way(&self, number: u32) -> Option<&Arc<dyn Executor>> {
        match number.checked_sub(1) {
            None => Some(&self.executor),
            Some(other) => self.fallbacks.get(usize::try_from(other).ok()?),
        }
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

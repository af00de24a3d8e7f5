//! The tools that a worker serves.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use argument_check::{ArgumentCheck, BadSchema, describe};
use definitions::policy::{self, Policy, Shaping};
use futures_util::future::join_all;
use proto::call::ToolCall;
use proto::ids::ToolName;
use proto::tool::ToolContract;
use tokio::sync::{Semaphore, watch};
use tool_core::shape::{Form, Part};

use crate::breaker::BreakerView;
use crate::executor::{Executor, McpSource};

/// One tool: what it promises, and what carries it out.
pub struct Tool {
    /// The promise.
    pub contract: ToolContract,
    pub(crate) executor: Arc<dyn Executor>,
    pub(crate) probe: Option<Arc<dyn Executor>>,
    pub(crate) policy: Policy,
    /// How its results are shortened.
    pub(crate) form: Form,
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
            form: Form::default(),
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
        self.form = form_of(&policy.shaping);
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

fn form_of(shaping: &Shaping) -> Form {
    let part = match shaping.part {
        policy::Part::Both => Part::Both,
        policy::Part::Head => Part::Head,
        policy::Part::Tail => Part::Tail,
    };
    let rows = shaping.rows.and_then(|rows| usize::try_from(rows).ok());
    Form { keep: shaping.keep.clone(), rows, part }
}

/// All tools of a worker, by name. Copies share them: a source of tools may replace one while the
/// worker runs, and calls that come later find the new one.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    shelf: Arc<watch::Sender<Shelf>>,
    sources: Vec<McpSource>,
}

#[derive(Debug, Default)]
struct Shelf {
    by_name: BTreeMap<ToolName, Arc<Tool>>,
    /// Tools that are known and cannot be offered.
    withdrawn: BTreeSet<ToolName>,
}

impl Tools {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool; one of the same name is replaced. It is on offer.
    pub fn add(&self, tool: Tool) {
        let name = tool.contract.name.clone();
        self.shelf.send_modify(|shelf| {
            shelf.withdrawn.remove(&name);
            shelf.by_name.insert(name, Arc::new(tool));
        });
    }

    /// Takes a tool off the offer; calls of it that are under way go on.
    pub fn withdraw(&self, name: &ToolName) {
        self.shelf.send_if_modified(|shelf| shelf.withdrawn.insert(name.clone()));
    }

    /// The worker keeps the servers of these tools.
    pub fn keep(&mut self, sources: Vec<McpSource>) {
        self.sources = sources;
    }

    /// Asks every server for its tools, which are on offer afterwards. The error says which server does
    /// not answer, or which tool cannot be offered.
    pub async fn ask_servers(&self) -> Result<(), String> {
        let asked = self.sources.iter().map(|source| source.renew(self));
        let wrong: Vec<String> =
            join_all(asked).await.into_iter().filter_map(Result::err).collect();
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    pub(crate) fn sources(&self) -> &[McpSource] {
        &self.sources
    }

    /// The tool of that name as it is now.
    pub fn get(&self, name: &ToolName) -> Option<Arc<Tool>> {
        self.shelf.borrow().by_name.get(name).cloned()
    }

    /// Whether a tool is known and can be offered.
    pub fn is_offered(&self, name: &ToolName) -> bool {
        let now = self.shelf.borrow();
        now.by_name.contains_key(name) && !now.withdrawn.contains(name)
    }

    /// What the tools on offer promise.
    pub fn contracts(&self) -> Vec<ToolContract> {
        let now = self.shelf.borrow();
        let offered = now.by_name.iter().filter(|(name, _)| !now.withdrawn.contains(*name));
        offered.map(|(_, tool)| tool.contract.clone()).collect()
    }

    /// Hears of every change from now on.
    pub(crate) fn changes(&self) -> Changes {
        Changes(self.shelf.subscribe())
    }

    /// The tools, by name.
    pub fn iter(&self) -> impl Iterator<Item = Arc<Tool>> {
        let all: Vec<Arc<Tool>> = self.shelf.borrow().by_name.values().cloned().collect();
        all.into_iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.shelf.borrow().by_name.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Changes of what a worker offers.
pub(crate) struct Changes(watch::Receiver<Shelf>);

impl Changes {
    /// Waits for the next one; for ever when nobody can make one.
    pub(crate) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

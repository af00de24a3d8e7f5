//! The tools on offer, compiled once per contract.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use approval_rule::ApprovalRule;
use argument_check::ArgumentCheck;
use proto::agent::{Agent, Protocol};
use proto::ids::ToolName;
use proto::model::ModelTool;
use proto::tool::{Approval, ToolContract};
use serde_json::Value;

/// The builtin by which a model ends a run in the `native` protocol.
pub const FINISH: &str = "finish";

/// The builtin that pages results which are shown in part.
pub const EXPAND: &str = "expand";

/// A tool with its argument check.
#[derive(Clone, Debug)]
pub struct Tool {
    /// Its contract.
    pub contract: ToolContract,
    /// Its argument check.
    pub check: Arc<ArgumentCheck>,
    /// The condition under which a person is asked, when it can be read.
    pub rule: Option<ApprovalRule>,
    offered: ModelTool,
}

/// Tools by name.
#[derive(Clone, Debug, Default)]
pub struct Toolbox {
    tools: BTreeMap<ToolName, Tool>,
}

impl Toolbox {
    /// Compiles contracts; one whose schema is broken is left out and named.
    pub fn new(contracts: impl IntoIterator<Item = ToolContract>) -> (Self, Vec<ToolName>) {
        let mut tools = BTreeMap::new();
        let mut broken = Vec::new();
        for contract in contracts {
            match ArgumentCheck::new(&contract.parameters) {
                Ok(check) => {
                    let (name, offered) = (contract.name.clone(), model_tool(&contract));
                    let (rule, check) = (rule_of(&contract), Arc::new(check));
                    tools.insert(name, Tool { contract, check, rule, offered });
                }
                Err(_) => broken.push(contract.name),
            }
        }
        (Self { tools }, broken)
    }

    /// The tool of that name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.get(&ToolName::new(name).ok()?)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &ToolName> {
        self.tools.keys()
    }

    /// What the model is offered for an agent: its tools that somebody serves, in the order of its
    /// file, and the builtin that ends a run, whose name in `native` is its own.
    pub fn offered(&self, agent: &Agent) -> Vec<ModelTool> {
        let native = agent.protocol == Protocol::Native;
        let names = agent.tools.iter().filter(|name| !native || name.as_str() != FINISH);
        let served = names.filter_map(|name| self.tools.get(name));
        let mut offered: Vec<ModelTool> = served.map(|tool| tool.offered.clone()).collect();
        if native && !offered.is_empty() {
            offered.extend(finish_tool());
        }
        offered
    }
}

fn rule_of(contract: &ToolContract) -> Option<ApprovalRule> {
    let Approval::When(text) = &contract.approval else { return None };
    let parameters = contract.parameters.get("properties").and_then(Value::as_object);
    let names = parameters.into_iter().flat_map(|all| all.keys().map(String::as_str));
    ApprovalRule::parse(text, names).ok()
}

fn model_tool(contract: &ToolContract) -> ModelTool {
    ModelTool {
        name: contract.name.clone(),
        description: contract.description.clone(),
        parameters: Arc::new(contract.parameters.clone()),
    }
}

fn finish_tool() -> Option<ModelTool> {
    Some(ModelTool {
        name: ToolName::new(FINISH).ok()?,
        description: "End the run with an answer. Use it only when no other call is open and you \
                      are sure; otherwise answer in plain text or keep working."
            .to_owned(),
        parameters: Arc::clone(&FINISH_PARAMETERS),
    })
}

static FINISH_PARAMETERS: LazyLock<Arc<Value>> = LazyLock::new(|| {
    Arc::new(serde_json::json!({
        "type": "object",
        "properties": {
            "answer": {"type": "string", "description": "The final answer for the user."},
            "confidence": {
                "type": "number", "minimum": 0, "maximum": 1,
                "description": "How sure you are that the answer is right and complete."
            }
        },
        "required": ["answer", "confidence"],
        "additionalProperties": false
    }))
});

//! Who works in one process: agents, each with the model that answers for it, and the tools of all.

use std::sync::Arc;

use definitions::manifest::ToolDefinition;
use ports::model::Model;
use proto::hash::fingerprint;
use proto::tool::{Approval, Effect, ToolContract};
use worker::executor::Executor;

use crate::agent_files::{LoadedAgent, LoadedTool};
use crate::engine::Ports;
use crate::failure::Failure;
use crate::settings::Environment;
use crate::stand_ins::StandIns;
use crate::wiring::ChosenModel;

/// An agent and its model.
#[derive(Clone, Copy)]
pub(crate) struct Member<'a> {
    pub(crate) loaded: &'a LoadedAgent,
    pub(crate) model: &'a ChosenModel,
}

/// What happens when a tool is called.
#[derive(Clone, Debug)]
pub(crate) enum Hands {
    /// It runs.
    Real,
    /// One that must not happen twice only says what it would do; the others run.
    Dry,
    /// As when dry; but a tool with stand-ins says what they say, whatever it is.
    Rehearsed(Arc<StandIns>),
}

impl Hands {
    /// As the command line says.
    pub(crate) fn of(dry_run: bool) -> Self {
        if dry_run { Self::Dry } else { Self::Real }
    }

    /// What says something in place of a tool.
    pub(crate) fn stand_in(&self, contract: &ToolContract) -> Option<Arc<dyn Executor>> {
        match self {
            Hands::Real | Hands::Dry => None,
            Hands::Rehearsed(stand_ins) => stand_ins.of(contract.name.as_str()),
        }
    }

    /// The model in a run whose user may speak meanwhile.
    pub(crate) fn steer(&self, model: Arc<dyn Model>, ports: &Ports) -> Arc<dyn Model> {
        match self {
            Hands::Real | Hands::Dry => model,
            Hands::Rehearsed(case) => case.steer(model, ports),
        }
    }

    /// Says what the user of a case says before the first turn.
    pub(crate) async fn speak_first(&self, ports: &Ports) -> Result<(), Failure> {
        match self {
            Hands::Real | Hands::Dry => Ok(()),
            Hands::Rehearsed(case) => case.speak_first(ports).await,
        }
    }

    /// Whether a tool only says what it would do.
    pub(crate) fn is_dry(&self, contract: &ToolContract) -> bool {
        match self {
            Hands::Real => false,
            Hands::Dry => contract.effect.needs_start(),
            Hands::Rehearsed(case) => {
                contract.effect.needs_start() && !case.is_real(contract.name.as_str())
            }
        }
    }

    /// What a tool promises when it only says what it would do. In a dry run nobody has to agree to
    /// that; a rehearsal plays the question too. The fingerprint is another one, so that no call
    /// crosses over between dry and real when a run goes on in the other way.
    pub(crate) fn dry(&self, contract: &ToolContract) -> ToolContract {
        let approval = match self {
            Hands::Dry => Approval::Never,
            Hands::Real | Hands::Rehearsed(_) => contract.approval.clone(),
        };
        ToolContract {
            effect: Effect::ReadOnly,
            approval,
            result_schema: None,
            fingerprint: fingerprint(&format!("{} dry", contract.fingerprint)),
            ..contract.clone()
        }
    }
}

/// Everybody who works in a process.
pub(crate) struct Staff<'a> {
    pub(crate) members: Vec<Member<'a>>,
    pub(crate) environment: &'a Environment,
    pub(crate) hands: Hands,
}

impl<'a> Staff<'a> {
    /// The tools of all agents, each once.
    pub(crate) fn tools(&self) -> Result<Vec<&'a LoadedTool>, Failure> {
        let (tools, clashes) = joined(self.members.iter().map(|member| member.loaded));
        if clashes.is_empty() {
            return Ok(tools);
        }
        let mut failure = Failure::input(String::new());
        failure.lines = clashes;
        Err(failure)
    }
}

/// The tools of all agents, each once, and what to say of those that cannot be in one process.
pub(crate) fn joined<'a>(
    agents: impl IntoIterator<Item = &'a LoadedAgent>,
) -> (Vec<&'a LoadedTool>, Vec<String>) {
    let mut tools: Vec<(&LoadedAgent, &LoadedTool)> = Vec::new();
    let mut clashes = Vec::new();
    for agent in agents {
        for tool in &agent.tools {
            match tools.iter().find(|(_, known)| name(known) == name(tool)) {
                None => tools.push((agent, tool)),
                Some((_, known)) if is_same(known, tool) => {}
                Some(known) => clashes.push(clash(*known, (agent, tool))),
            }
        }
    }
    (tools.into_iter().map(|(_, tool)| tool).collect(), clashes)
}

fn name(tool: &LoadedTool) -> &str {
    tool.definition.contract.name.as_str()
}

/// Where a tool stands in its file makes no difference.
fn is_same(one: &LoadedTool, other: &LoadedTool) -> bool {
    let bare = |tool: &LoadedTool| ToolDefinition {
        stated: one.definition.stated.clone(),
        ..tool.definition.clone()
    };
    one.folder == other.folder && bare(one) == bare(other)
}

fn clash(known: (&LoadedAgent, &LoadedTool), other: (&LoadedAgent, &LoadedTool)) -> String {
    let place = |(agent, tool): (&LoadedAgent, &LoadedTool)| {
        format!("one in {} (of {})", tool.folder.display(), agent.agent.name)
    };
    format!(
        "two agents have different tools of the name {}: {}, {}; calls are queued by the name of \
         their tool, so rename one, let both agents name the same tool file, or run the agents on \
         stores of their own (--store)",
        name(known.1),
        place(known),
        place(other),
    )
}

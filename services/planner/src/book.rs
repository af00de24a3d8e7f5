//! The agents a planner knows.

use std::collections::BTreeMap;

use planner_core::view::Agents;
use proto::agent::Agent;
use proto::ids::AgentName;

/// Agents by name.
#[derive(Clone, Debug, Default)]
pub struct AgentBook {
    agents: BTreeMap<AgentName, Agent>,
}

impl AgentBook {
    /// A book of these agents; of two with one name the later stays.
    pub fn new(agents: impl IntoIterator<Item = Agent>) -> Self {
        Self { agents: agents.into_iter().map(|agent| (agent.name.clone(), agent)).collect() }
    }
}

impl Agents for AgentBook {
    fn agent(&self, name: &AgentName) -> Option<&Agent> {
        self.agents.get(name)
    }
}

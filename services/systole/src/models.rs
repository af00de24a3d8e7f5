//! The model that answers for each agent of a process.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use ports::model::{Ear, Model, Reply};
use proto::ids::AgentName;
use proto::model::{ModelError, ModelErrorKind, ModelRequest};

/// Models by the name of the agent that asks.
pub(crate) struct ModelByAgent(BTreeMap<AgentName, Arc<dyn Model>>);

impl ModelByAgent {
    pub(crate) fn new(models: BTreeMap<AgentName, Arc<dyn Model>>) -> Self {
        Self(models)
    }
}

#[async_trait]
impl Model for ModelByAgent {
    async fn ask(&self, request: &ModelRequest, ear: &dyn Ear) -> Result<Reply, ModelError> {
        match self.0.get(&request.agent) {
            Some(model) => model.ask(request, ear).await,
            None => Err(nobody(&request.agent)),
        }
    }
}

/// No turn of an agent begins that the planner does not know, so this is not seen.
fn nobody(agent: &AgentName) -> ModelError {
    ModelError {
        kind: ModelErrorKind::BadResponse,
        retryable: false,
        retry_after: None,
        status: None,
        message: format!("no model answers for {agent} in this process"),
        code: None,
    }
}

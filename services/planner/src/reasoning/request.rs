//! The request of a turn.

use std::sync::Arc;

use planner_core::Thread;
use planner_core::prompt::{self, PromptError};
use planner_core::toolbox::Toolbox;
use proto::agent::Agent;
use proto::model::ModelRequest;

/// The request of the open turn. One whose text has to be encoded takes a while, so that is done
/// where nobody else waits.
pub(super) async fn of(
    thread: &Arc<Thread>,
    agent: &Agent,
    toolbox: &Arc<Toolbox>,
) -> Result<ModelRequest, PromptError> {
    if !prompt::may_be_large(thread, agent) {
        return prompt::request(thread, agent, toolbox);
    }
    let known = (Arc::clone(thread), agent.clone(), Arc::clone(toolbox));
    let built = tokio::task::spawn_blocking(move || prompt::request(&known.0, &known.1, &known.2));
    match built.await {
        Ok(built) => built,
        // It was cancelled on the way out of the program, or a fault in it will show here again.
        Err(_) => prompt::request(thread, agent, toolbox),
    }
}

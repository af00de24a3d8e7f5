//! The model of a world: a pure policy over the request, and faults on top of it.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ports::model::{Ear, Model, Reply};
use proto::model::{
    BrokenCall, Finish, ModelError, ModelErrorKind, ModelEvent, ModelRequest, ReplyEnd,
};
use proto::transcript::Entry;
use testkit::model::{ScriptedModel, Step, call, end, text};

use crate::fault_kind::FaultKind;
use crate::script::{Ask, Ending, Script, seed_of};
use crate::shared::Shared;

/// The name of the model that has to answer in JSON.
pub const JSON_MODEL: &str = "json";

/// Asks the policy and lets the world's faults at its reply.
pub struct SimModel {
    shared: Arc<Shared>,
    scripted: ScriptedModel,
}

impl SimModel {
    /// The model of a world.
    pub fn new(shared: Arc<Shared>) -> Self {
        let world = Arc::clone(&shared);
        let scripted = ScriptedModel::new(move |request| {
            let steps = policy(request);
            world.spoil(steps)
        });
        Self { shared, scripted }
    }
}

#[async_trait]
impl Model for SimModel {
    async fn ask(&self, request: &ModelRequest, ear: &dyn Ear) -> Result<Reply, ModelError> {
        let found = self.shared.state().judge.asked(request);
        self.shared.violated(found);
        self.scripted.ask(request, ear).await
    }
}

impl Shared {
    /// An error instead of a reply, a reply that breaks, or the reply.
    fn spoil(&self, mut steps: Vec<Step>) -> Result<Vec<Step>, ModelError> {
        let drawn = {
            let mut state = self.state();
            let drawn = if state.chaos { state.random.u32(0..24) } else { u32::MAX };
            let at = state.random.usize(0..=steps.len());
            (drawn, at, state.random.bool())
        };
        match drawn {
            (0, _, retryable) => {
                self.count(FaultKind::ModelFails, format_args!("retryable: {retryable}"));
                Err(error(ModelErrorKind::HttpError, retryable))
            }
            (1 | 2, at, retryable) => {
                self.count(FaultKind::ModelBreaks, format_args!("after {at} steps"));
                steps.truncate(at);
                steps.push(Step::Break(error(ModelErrorKind::Truncated, retryable)));
                Ok(steps)
            }
            _ => Ok(steps),
        }
    }
}

fn error(kind: ModelErrorKind, retryable: bool) -> ModelError {
    ModelError {
        kind,
        retryable,
        retry_after: None,
        status: None,
        message: "a fault".to_owned(),
        code: None,
    }
}

fn wait(ms: u64) -> Step {
    Step::Wait(Duration::from_millis(ms))
}

/// The reply to a request, by nothing but the request: turns since the user's last words with a
/// script tell how far the script has come.
pub fn policy(request: &ModelRequest) -> Vec<Step> {
    let entries = request.transcript.entries();
    let mut turns = 0;
    let mut seed = 0;
    let mut told_off = false;
    for entry in entries {
        match entry {
            Entry::User { text } => {
                if let Some(found) = seed_of(text) {
                    (seed, turns, told_off) = (found, 0, false);
                }
            }
            Entry::Note { text } => told_off |= text.contains("does not fit"),
            Entry::Turn(_) => turns += 1,
        }
    }
    let script = Script::new(seed);
    let mut steps = vec![wait(50 + seed % 400)];
    match script.turns.get(turns) {
        Some(turn) => {
            steps.extend([text(turn.text.clone()), wait(30)]);
            ask_for(&mut steps, &turn.calls);
        }
        None if script.ending == Ending::Loops && turns < script.turns.len() + 8 => {
            steps.push(text("Again."));
            ask_for(&mut steps, &[Ask::looping(seed)]);
        }
        None => answer(&mut steps, request, &script, told_off),
    }
    steps
}

fn ask_for(steps: &mut Vec<Step>, calls: &[Ask]) {
    for (position, ask) in calls.iter().enumerate() {
        let position = u32::try_from(position).expect("few calls");
        steps.push(wait(40));
        steps.push(match ask {
            Ask::Call { tool, arguments } => call(position, tool.clone(), arguments.clone()),
            Ask::Broken => Step::Event(ModelEvent::CallBroken(BrokenCall {
                position,
                name: "probe".to_owned(),
                raw: "{\"n\":".to_owned(),
                problem: "it ends too early".to_owned(),
            })),
        });
    }
    steps.push(wait(60));
    steps.push(end(Finish::ToolCalls));
}

fn answer(steps: &mut Vec<Step>, request: &ModelRequest, script: &Script, told_off: bool) {
    let mark = script.mark;
    if script.ending == Ending::Finish {
        let arguments = serde_json::json!({"answer": format!("Done {mark}."), "confidence": 0.95});
        let serde_json::Value::Object(arguments) = arguments else { unreachable!("an object") };
        steps.extend([call(0, "finish", arguments), end(Finish::ToolCalls)]);
        return;
    }
    let words = match (request.model.as_str(), told_off || mark.is_multiple_of(2)) {
        (JSON_MODEL, true) => format!("{{\"mark\": {mark}}}"),
        (JSON_MODEL, false) => "Not JSON.".to_owned(),
        _ => format!("Done {mark}."),
    };
    let confidence = mark.is_multiple_of(7).then_some(0.95);
    let last = ReplyEnd { finish: Some(Finish::Stop), confidence, ..ReplyEnd::cut() };
    steps.extend([text(words), wait(20), Step::Event(ModelEvent::End(last))]);
}

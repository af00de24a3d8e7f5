//! What becomes of a call the moment its arguments have closed.

use argument_check::describe;
use memory_core::text::head;
use proto::agent::{Agent, Protocol};
use proto::call::{Disposition, RequestedCall};
use proto::error_code::ErrorCode;
use proto::ids::{ToolCallId, ToolName};
use proto::model::{BrokenCall, ReadyCall};
use proto::observation::Observation;
use serde_json::{Map, Value};

use crate::calls::{asks, terms};
use crate::repeats;
use crate::thread::{Call, Thread};
use crate::toolbox::{EXPAND, FINISH, Tool, Toolbox};

/// Bytes of a masked result that are told again at once; `from` asks for what follows.
const MOST_TOLD_AGAIN: usize = 32 * 1024;

/// How sure a model must be for its `finish` to count.
pub const SURE: f64 = 0.9;

/// What a call is judged by.
#[derive(Clone, Copy)]
pub struct Judge<'a> {
    /// The thread with its run.
    pub thread: &'a Thread,
    /// Who asks.
    pub agent: &'a Agent,
    /// What is on offer.
    pub toolbox: &'a Toolbox,
    /// Whether untrusted text has entered the context.
    pub tainted: bool,
}

impl Judge<'_> {
    /// Judges a call whose arguments could be read.
    pub fn ready(&self, id: ToolCallId, earlier_in_reply: u32, call: ReadyCall) -> RequestedCall {
        let (call, corrected) = self.corrected(call);
        let (verdict, asked_because) = self.verdict(&id, earlier_in_reply, &call);
        let terms = match &verdict {
            Disposition::Dispatch | Disposition::AwaitApproval => {
                self.toolbox.get(&call.name).map(|tool| terms(&tool.contract))
            }
            Disposition::Answered(_) => None,
        };
        RequestedCall {
            tool_call_id: id,
            tool: call.name,
            arguments: call.arguments,
            opaque: call.opaque,
            terms,
            disposition: verdict,
            corrected,
            asked_because,
        }
    }

    /// Answers a call that could not be read.
    #[expect(
        clippy::unused_self,
        reason = "a judge judges; callers need not know what it looks at"
    )]
    pub fn broken(&self, id: ToolCallId, call: BrokenCall) -> RequestedCall {
        let text = format!(
            "The call was not made: its arguments are not one complete JSON object ({}). Received: \
             {}. Send the call again with arguments as one JSON object.",
            call.problem,
            crate::summary::cut(&call.raw, 400)
        );
        let observation = Observation::synthesised(id.clone(), ErrorCode::MalformedArguments, text);
        RequestedCall {
            tool_call_id: id,
            tool: call.name,
            arguments: Map::new(),
            opaque: None,
            terms: None,
            disposition: Disposition::Answered(Box::new(observation)),
            corrected: Vec::new(),
            asked_because: None,
        }
    }

    /// The call with its arguments put right where they can mean one thing only: everything later,
    /// such as what a person agrees to, is about those.
    fn corrected(&self, call: ReadyCall) -> (ReadyCall, Vec<String>) {
        let Some(tool) = self.toolbox.get(&call.name) else { return (call, Vec::new()) };
        let (arguments, words) = tool.check.correct(call.arguments);
        (ReadyCall { arguments, ..call }, words)
    }

    /// What becomes of a call, and why a person is asked.
    fn verdict(
        &self,
        id: &ToolCallId,
        earlier: u32,
        call: &ReadyCall,
    ) -> (Disposition, Option<String>) {
        if call.name == FINISH && self.agent.protocol == Protocol::Native {
            return (answered(finish(id, call)), None);
        }
        if let Some(content) = self.told_again(call) {
            return (answered(told(id, content)), None);
        }
        if let Some((code, text)) = self.refusal(earlier, call) {
            return (answered(Observation::synthesised(id.clone(), code, text)), None);
        }
        let tool = self.toolbox.get(&call.name);
        match tool.and_then(|tool| asks(tool, &call.arguments, self.tainted)) {
            Some(because) => {
                (Disposition::AwaitApproval, Some(because).filter(|text| !text.is_empty()))
            }
            None => (Disposition::Dispatch, None),
        }
    }

    /// What a result that was masked said, when a call asks for it by the id of the call that brought
    /// it. The thread has it, redacted as it was when it came; no tool runs again.
    fn told_again(&self, call: &ReadyCall) -> Option<String> {
        let may = self.agent.tools.iter().any(|name| name.as_str() == EXPAND);
        let asked = call.arguments.get("artifact").and_then(Value::as_str);
        let id = asked.filter(|_| may && call.name == EXPAND).and_then(|id| id.parse().ok())?;
        let known: &Call = self.thread.calls.get::<ToolCallId>(&id)?;
        let content = &known.closed.as_ref()?.content;
        let from = call.arguments.get("from").and_then(Value::as_u64).unwrap_or(0);
        let from = content.ceil_char_boundary(usize::try_from(from).unwrap_or(usize::MAX));
        Some(head(content.get(from..).unwrap_or(""), MOST_TOLD_AGAIN).to_owned())
    }

    fn refusal(&self, earlier: u32, call: &ReadyCall) -> Option<(ErrorCode, String)> {
        if !self.agent.tools.iter().any(|name| name.as_str() == call.name) {
            return Some((ErrorCode::UnknownTool, self.unknown(&call.name)));
        }
        let Some(tool) = self.toolbox.get(&call.name) else {
            let text = format!(
                "No worker serves {} at this moment; the call was not made. Go on without it or \
                 try again later.",
                call.name
            );
            return Some((ErrorCode::Unavailable, text));
        };
        self.forbidden(tool)
            .or_else(|| invalid(tool, call))
            .or_else(|| self.spent(earlier))
            .or_else(|| self.repeated(call))
    }

    fn unknown(&self, name: &str) -> String {
        let known: Vec<&str> = self.agent.tools.iter().map(ToolName::as_str).collect();
        format!(
            "There is no tool `{}`; nothing was called. The tools are: {}.",
            crate::summary::cut(name, 80),
            known.join(", ")
        )
    }

    fn forbidden(&self, tool: &Tool) -> Option<(ErrorCode, String)> {
        let needed = &tool.contract.permissions;
        if needed.is_empty() || needed.iter().any(|one| self.agent.permissions.contains(one)) {
            return None;
        }
        let text = format!(
            "The agent may not call {}: it needs one of the permissions {}.",
            tool.contract.name,
            needed.join(", ")
        );
        Some((ErrorCode::NotPermitted, text))
    }

    fn spent(&self, earlier: u32) -> Option<(ErrorCode, String)> {
        let made = self.thread.run.as_ref().map_or(0, |run| run.calls).saturating_add(earlier);
        let most = self.agent.limits.max_tool_calls;
        (made >= most).then(|| {
            let text = format!("The run's {most} tool calls are spent; answer with what is known.");
            (ErrorCode::BudgetSpent, text)
        })
    }

    fn repeated(&self, call: &ReadyCall) -> Option<(ErrorCode, String)> {
        let run = self.thread.run.as_ref()?.number;
        let most = self.agent.limits.max_repeats;
        let text = repeats::refusal(self.thread, run, &call.name, &call.arguments, most)?;
        Some((ErrorCode::RepeatedCall, text))
    }
}

fn answered(observation: Observation) -> Disposition {
    Disposition::Answered(Box::new(observation))
}

fn invalid(tool: &Tool, call: &ReadyCall) -> Option<(ErrorCode, String)> {
    let problems = tool.check.check(&call.arguments).err()?;
    let text = format!("The call was not made: {}", describe(&problems));
    Some((ErrorCode::InvalidArguments, text))
}

/// What the planner knows by itself.
fn told(id: &ToolCallId, content: String) -> Observation {
    Observation {
        tool_call_id: id.clone(),
        attempt: 0,
        code: None,
        content,
        artifact: None,
        receipt: None,
        stamp: None,
    }
}

/// The planner's own word on a `finish`; other calls of the reply may still void it.
fn finish(id: &ToolCallId, call: &ReadyCall) -> Observation {
    let answer = call.arguments.get("answer").is_some_and(|answer| !is_blank(answer));
    let sure = call.arguments.get("confidence").and_then(Value::as_f64);
    match sure {
        Some(sure) if answer && sure > SURE => told(id, "Finished.".to_owned()),
        Some(sure) if answer => refused_finish(
            id,
            &format!(
                "Not finished: a confidence of {sure} is not above {SURE}. Verify what is unsure, or \
                 answer in plain text."
            ),
        ),
        Some(_) | None => {
            refused_finish(id, "Not finished: give `answer` and a `confidence` between 0 and 1.")
        }
    }
}

fn is_blank(answer: &Value) -> bool {
    answer.is_null() || answer.as_str().is_some_and(|text| text.trim().is_empty())
}

fn refused_finish(id: &ToolCallId, text: &str) -> Observation {
    Observation::synthesised(id.clone(), ErrorCode::InvalidArguments, text)
}

/// Voids an accepted `finish` when the reply asked for other things too.
pub fn void_finish_beside_others(calls: &mut [RequestedCall]) {
    let others = calls.iter().any(|call| !matches!(call.disposition, Disposition::Answered(_)));
    if !others {
        return;
    }
    for call in calls.iter_mut().filter(|call| call.tool == FINISH) {
        let text =
            "Not finished: other calls of the same reply are open. Read their results first.";
        call.disposition = answered(refused_finish(&call.tool_call_id, text));
    }
}

/// Whether a call is a `finish` that counts.
pub fn is_accepted_finish(call: &Call) -> bool {
    call.requested.tool == FINISH
        && call.closed.as_ref().is_some_and(Observation::is_ok)
        && matches!(call.requested.disposition, Disposition::Answered(_))
}

//! Nothing is open: end the run, begin its next turn, or begin the next run.

use proto::agent::Agent;
use proto::error_code::ErrorCode;
use proto::fact::{EndReason, Fact, Outcome, RunFinished, TurnStarted, Verification, VerifyStep};
use proto::ids::AgentName;

use crate::blank::is_blank;
use crate::end_intent::is_end_intent;
use crate::ends;
use crate::thread::{Mode, Reply, Run, Thread, Unread};
use crate::verify;
use crate::view::{Branch, Decision, Evaluated, Step, View};

/// Answers that do not fit their schema before one is accepted as it is.
const MAX_REPAIRS: u32 = 1;

/// The step when no turn and no call is open.
pub fn decide(view: &View<'_>) -> Decision {
    if view.thread.run.is_none() && view.thread.unread.is_empty() {
        return Decision::new(Branch::AtRest, Step::Rest);
    }
    let Some(name) = next_agent(view.thread) else { return no_agent(view, "no agent was named") };
    let Some(agent) = view.agents.agent(&name) else { return await_agent(view, &name) };
    match &view.thread.run {
        Some(run) => in_run(view, run, agent),
        None => new_run(view, agent),
    }
}

/// The agent of the next turn: the newest one that an input names which that turn reads, else the
/// thread's.
pub fn next_agent(thread: &Thread) -> Option<AgentName> {
    let reads_all = thread.run.is_none();
    let mut read = thread.unread.iter().rev().filter(|u| reads_all || u.mode != Mode::Enqueue);
    let named = read.find_map(|input| input.message.agent.clone());
    named.or_else(|| thread.agent.clone())
}

fn in_run(view: &View<'_>, run: &Run, agent: &Agent) -> Decision {
    let steer = view.thread.unread.iter().rev().find(|input| input.mode != Mode::Enqueue);
    if agent.end_intent && steer.is_some_and(ends_it) {
        let answer = ends::known_so_far(view.thread, "Ended at the user's word.");
        let ended = finish(view, Branch::UserEnded, EndReason::UserEnded, answer);
        return finished_with(ended, |finished| finished.seen = view.thread.head.sequence);
    }
    let spent = ends::spent(view, run, agent);
    if (steer.is_none() || spent.is_some())
        && let Some(decision) = answer(view, run, agent, spent)
    {
        return decision;
    }
    if steer.is_none() && ends::is_idle(view.thread) {
        return limit(view, Branch::NothingNew, run, agent, EndReason::NothingNew);
    }
    if let Some(reason) = spent {
        return limit(view, Branch::Limit, run, agent, reason);
    }
    let verify = run.verifying.as_ref().map(|verifying| verifying.step);
    let verify = verify.filter(|_| steer.is_none());
    next_turn(view, Branch::NextTurn, run, agent, Ask { note: None, verify })
}

/// A spent budget ends the run with what is known. What the user said meanwhile starts the next.
/// An answer that was being verified is given as it was.
fn limit(view: &View<'_>, branch: Branch, run: &Run, agent: &Agent, reason: EndReason) -> Decision {
    if let Some((draft, verification)) = verify::unfinished(run, reason) {
        let given = finish(view, branch, EndReason::Answer, draft);
        return finished_with(given, |finished| {
            finished.unevaluated = agent.output_schema.is_some();
            finished.verification = Some(verification);
        });
    }
    let answer = ends::known_so_far(view.thread, ends::limit_text(reason));
    finish(view, branch, reason, answer)
}

/// Ends the run when its last reply is an answer that fits.
fn answer(view: &View<'_>, run: &Run, agent: &Agent, spent: Option<EndReason>) -> Option<Decision> {
    let reply = run.reply.as_ref().filter(|reply| !reply.sealed)?;
    let (text, reason) = match finish_call(view.thread, reply) {
        Some(answer) => (answer, EndReason::Confident),
        None if !reply.calls.is_empty() => return None,
        // The step brought nothing: the draft is all there is.
        None if is_blank(&reply.text) && run.verifying.is_some() => {
            return Some(limit(view, Branch::Finish, run, agent, EndReason::NothingNew));
        }
        None => (words(view.thread, reply), answer_reason(reply.confidence)),
    };
    if let Some(decision) = verified(view, run, agent, spent) {
        return Some(decision);
    }
    let verdict = verify::verdict(run, agent, &text, spent);
    Some(given(view, agent, run, (text, reason, verdict)))
}

/// The next step of the answer's verification, if there is one to take.
fn verified(
    view: &View<'_>,
    run: &Run,
    agent: &Agent,
    spent: Option<EndReason>,
) -> Option<Decision> {
    let step = verify::next_step(run, agent)?;
    // Nothing was said that could be verified.
    let draft = answer_text(view.thread).filter(|draft| !is_blank(draft));
    match (spent, &run.verifying) {
        (None, Some(_)) => {}
        (None, None) if draft.is_some() => {}
        (Some(reason), Some(_)) => return Some(limit(view, Branch::Limit, run, agent, reason)),
        (Some(_) | None, None) => return None,
    }
    let ask = Ask { note: Some(verify::note(step).to_owned()), verify: Some(step) };
    Some(next_turn(view, Branch::Verify, run, agent, ask))
}

/// Gives the answer, once it fits the agent's output schema.
fn given(
    view: &View<'_>,
    agent: &Agent,
    run: &Run,
    (text, reason, verdict): (String, EndReason, Option<Verification>),
) -> Decision {
    let finish = |view, branch, reason, text| {
        finished_with(finish(view, branch, reason, text), |finished| {
            finished.verification.clone_from(&verdict);
        })
    };
    if agent.output_schema.is_none() {
        return finish(view, Branch::Finish, reason, text);
    }
    match view.evaluated {
        None => Decision::new(Branch::Evaluate, Step::Evaluate),
        Some(Evaluated::Breaks(why)) if run.repairs < MAX_REPAIRS => repair(view, run, agent, why),
        Some(Evaluated::Fits) => finish(view, Branch::Finish, reason, text),
        Some(Evaluated::Breaks(_) | Evaluated::Overrun) => {
            let accepted = finish(view, Branch::Finish, reason, text);
            finished_with(accepted, |finished| finished.unevaluated = true)
        }
    }
}

/// The answer to check against the output schema, when the last reply is one.
pub fn answer_text(thread: &Thread) -> Option<String> {
    let reply = thread.run.as_ref()?.reply.as_ref().filter(|reply| !reply.sealed)?;
    finish_call(thread, reply).or_else(|| reply.calls.is_empty().then(|| reply.text.clone()))
}

/// An answer is never empty, whatever the model left out.
fn words(thread: &Thread, reply: &Reply) -> String {
    if is_blank(&reply.text) {
        return ends::known_so_far(thread, "The agent ended without a word.");
    }
    reply.text.clone()
}

fn answer_reason(confidence: Option<f64>) -> EndReason {
    if confidence.is_some_and(|sure| sure > crate::accept::SURE) {
        EndReason::Confident
    } else {
        EndReason::Answer
    }
}

/// The answer of an accepted `finish` call, when the reply made one.
fn finish_call(thread: &Thread, reply: &Reply) -> Option<String> {
    let calls = reply.calls.iter().filter_map(|id| thread.calls.get(id));
    let mut finishing = calls.filter(|call| crate::accept::is_accepted_finish(call));
    let answer = finishing.next()?.requested.arguments.get("answer")?;
    Some(answer.as_str().map_or_else(|| answer.to_string(), ToOwned::to_owned))
}

fn repair(view: &View<'_>, run: &Run, agent: &Agent, why: &str) -> Decision {
    let note =
        format!("The answer does not fit the output schema: {why}. Answer again so that it fits.");
    if let Some(reason) = ends::spent(view, run, agent) {
        return limit(view, Branch::Limit, run, agent, reason);
    }
    let verify = run.verifying.as_ref().map(|verifying| verifying.step);
    next_turn(view, Branch::Repair, run, agent, Ask { note: Some(note), verify })
}

fn finished_with(mut decision: Decision, change: impl FnOnce(&mut RunFinished)) -> Decision {
    if let Step::Fact(fact) = &mut decision.step
        && let Fact::RunFinished(finished) = fact.as_mut()
    {
        change(finished);
    }
    decision
}

fn finish(view: &View<'_>, branch: Branch, reason: EndReason, answer: String) -> Decision {
    let outcome = match reason {
        EndReason::Answer | EndReason::Confident | EndReason::UserEnded => Outcome::Answered,
        EndReason::Error => Outcome::Failed,
        EndReason::NothingNew
        | EndReason::MaxTurns
        | EndReason::MaxTokens
        | EndReason::MaxMoney
        | EndReason::MaxWallTime
        | EndReason::MaxToolCalls
        | EndReason::Cancelled => Outcome::Stopped,
    };
    match ends::finished(view, outcome, reason, None, answer) {
        Some(finished) => Decision::fact(branch, Fact::RunFinished(finished)),
        None => Decision::new(Branch::AtRest, Step::Rest),
    }
}

fn new_run(view: &View<'_>, agent: &Agent) -> Decision {
    if agent.end_intent && view.thread.runs > 0 && view.thread.unread.iter().all(ends_it) {
        let answer = "Ended at the user's word.".to_owned();
        let finished = ends::unstarted(view, Outcome::Answered, EndReason::UserEnded, answer);
        return Decision::fact(Branch::UserEnded, Fact::RunFinished(finished));
    }
    let run = view.thread.runs.saturating_add(1);
    start(view, Branch::NewRun, agent, (run, 1), Ask::default())
}

/// What a turn is asked beside what its thread says.
#[derive(Default)]
struct Ask {
    note: Option<String>,
    verify: Option<VerifyStep>,
}

fn next_turn(view: &View<'_>, branch: Branch, run: &Run, agent: &Agent, ask: Ask) -> Decision {
    start(view, branch, agent, (run.number, run.turns.saturating_add(1)), ask)
}

fn ends_it(input: &Unread) -> bool {
    is_end_intent(&input.message.text)
}

fn start(
    view: &View<'_>,
    branch: Branch,
    agent: &Agent,
    (run, turn): (u32, u32),
    ask: Ask,
) -> Decision {
    let started = TurnStarted {
        run,
        turn,
        start: 1,
        seen: view.thread.head.sequence,
        owner: view.me.clone(),
        held_by: view.wake.sequence,
        deadline: view.now.after(view.spans.turn),
        agent: agent.name.clone(),
        agent_fingerprint: agent.fingerprint.clone(),
        note: ask.note,
        verify: ask.verify,
        recalled: Vec::new(),
        draft: verify::is_draft(agent, ask.verify),
    };
    Decision::fact(branch, Fact::TurnStarted(started))
}

/// Another planner may have the agent's file; after a while the run is given up.
pub(crate) fn await_agent(view: &View<'_>, name: &AgentName) -> Decision {
    if view.now.since(view.thread.head.told_at) < view.spans.agent_wait {
        return Decision::new(Branch::AwaitAgent, Step::HandBack(view.spans.hand_back));
    }
    no_agent(view, &format!("no planner knows the agent `{name}`"))
}

fn no_agent(view: &View<'_>, why: &str) -> Decision {
    let answer = format!("The run cannot go on: {why}.");
    let code = Some(ErrorCode::NotFound);
    let finished = ends::finished(view, Outcome::Failed, EndReason::Error, code, answer.clone());
    let finished = finished.unwrap_or_else(|| {
        let mut finished = ends::unstarted(view, Outcome::Failed, EndReason::Error, answer);
        finished.code = code;
        finished
    });
    Decision::fact(Branch::NoAgent, Fact::RunFinished(finished))
}

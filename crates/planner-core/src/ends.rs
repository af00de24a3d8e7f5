//! How runs end, and what they answer when they end early.

use proto::agent::{Agent, turns_for_complexity};
use proto::error_code::ErrorCode;
use proto::fact::{EndReason, Outcome, RunFinished, Usage};
use proto::ids::Sequence;

use crate::repeats;
use crate::summary;
use crate::thread::{Logged, Mode, Run, Thread};
use crate::verify;
use crate::view::View;

/// Turns in a row without a new call that end a run.
const NOTHING_NEW_TURNS: usize = 2;

/// The record that ends the active run. What was meant for the run and no turn has read is left to
/// the next one, so that no accepted input goes unanswered.
pub fn finished(
    view: &View<'_>,
    outcome: Outcome,
    reason: EndReason,
    code: Option<ErrorCode>,
    answer: String,
) -> Option<RunFinished> {
    of_active(view.thread, outcome, reason, code, answer)
}

/// The record that ends the active run because it cannot go on. A draft that was being verified is an
/// answer all the same.
pub fn failed(thread: &Thread, code: ErrorCode, why: &str) -> Option<RunFinished> {
    let draft = thread.run.as_ref().and_then(|run| verify::unfinished(run, EndReason::Error));
    if let Some((draft, verification)) = draft {
        let answered = of_active(thread, Outcome::Answered, EndReason::Answer, None, draft)?;
        return Some(RunFinished { verification: Some(verification), ..answered });
    }
    let answer = known_so_far(thread, why);
    of_active(thread, Outcome::Failed, EndReason::Error, Some(code), answer)
}

fn of_active(
    thread: &Thread,
    outcome: Outcome,
    reason: EndReason,
    code: Option<ErrorCode>,
    answer: String,
) -> Option<RunFinished> {
    let run = thread.run.as_ref()?;
    Some(RunFinished {
        run: run.number,
        seen: before_unread(thread),
        outcome,
        reason,
        code,
        answer,
        turns: run.turns,
        calls: run.calls,
        usage: run.usage,
        unevaluated: false,
        verification: None,
    })
}

/// The last sequence before the first steer or interrupt that no turn has read. Every turn reads
/// those within its `seen`, so this never falls behind it.
fn before_unread(thread: &Thread) -> Sequence {
    let meant = thread.unread.iter().filter(|input| input.mode != Mode::Enqueue);
    let first = meant.map(|input| input.sequence).min();
    first.map_or(thread.head.sequence, |first| Sequence(first.0.saturating_sub(1)))
}

/// The record that ends a run that no turn began.
pub fn unstarted(
    view: &View<'_>,
    outcome: Outcome,
    reason: EndReason,
    answer: String,
) -> RunFinished {
    RunFinished {
        run: view.thread.runs.saturating_add(1),
        seen: view.thread.head.sequence,
        outcome,
        reason,
        code: None,
        answer,
        turns: 0,
        calls: 0,
        usage: Usage::default(),
        unevaluated: false,
        verification: None,
    }
}

/// Which limit the run has reached, if one.
pub fn spent(view: &View<'_>, run: &Run, agent: &Agent) -> Option<EndReason> {
    let limits = &agent.limits;
    let max_turns =
        run.complexity.map_or(limits.max_turns, |c| turns_for_complexity(c.clamp(1, 5)));
    if run.turns.saturating_sub(run.handed_back) >= max_turns {
        return Some(EndReason::MaxTurns);
    }
    if run.usage.tokens() >= limits.max_tokens {
        return Some(EndReason::MaxTokens);
    }
    if run.usage.micro_usd.is_some_and(|spent| spent >= limits.max_micro_usd) {
        return Some(EndReason::MaxMoney);
    }
    // Calls beyond the budget are refused one by one; the run ends when the model asked for more, so
    // that it may still answer with what the last allowed calls brought.
    if run.calls > limits.max_tool_calls {
        return Some(EndReason::MaxToolCalls);
    }
    (view.thread.taken(view.now) >= limits.max_wall()).then_some(EndReason::MaxWallTime)
}

/// Whether the run goes round in circles: its last turns, since the user's last words, asked only
/// for calls that it had made before and that brought nothing else than before.
pub fn is_idle(thread: &Thread) -> bool {
    let Some(run) = thread.run.as_ref().map(|run| run.number) else { return false };
    let brings_nothing = |logged: &&Logged| match logged {
        Logged::Turn { run: of, calls, .. } => {
            *of == run && !calls.is_empty() && repeats::bring_nothing_new(thread, run, calls)
        }
        Logged::User { .. } | Logged::Note { .. } => false,
    };
    let newest = thread.log.iter().rev().filter(|logged| !matches!(logged, Logged::Note { .. }));
    newest.take_while(brings_nothing).count() >= NOTHING_NEW_TURNS
}

/// The sentence that tells a person which limit was reached.
pub fn limit_text(reason: EndReason) -> &'static str {
    match reason {
        EndReason::MaxTurns => "The run reached its turn limit.",
        EndReason::MaxTokens => "The run used up its tokens.",
        EndReason::MaxMoney => "The run used up its money.",
        EndReason::MaxWallTime => "The run used up its time.",
        EndReason::MaxToolCalls => "The run used up its tool calls.",
        EndReason::NothingNew => "Two turns in a row brought no new call, so the run ended.",
        EndReason::Answer
        | EndReason::Confident
        | EndReason::UserEnded
        | EndReason::Cancelled
        | EndReason::Error => "The run ended.",
    }
}

/// An answer for a run that ends before its own: why, the last words, and what was found.
pub fn known_so_far(thread: &Thread, why: &str) -> String {
    let mut answer = why.to_owned();
    if let Some(words) = last_words(thread) {
        answer.push_str("\n\nLast words of the agent:\n");
        answer.push_str(words);
    }
    let lines = summary::lines_of_run(thread);
    if !lines.is_empty() {
        answer.push_str("\n\nDone so far:\n");
        answer.push_str(&lines.join("\n"));
    }
    answer
}

fn last_words(thread: &Thread) -> Option<&str> {
    let run = thread.run.as_ref()?;
    if let Some(verifying) = &run.verifying {
        return Some(&verifying.draft);
    }
    let run = run.number;
    thread.log.iter().rev().find_map(|logged| match logged {
        Logged::Turn { run: of, text, .. } if *of == run && !text.trim().is_empty() => {
            Some(text.as_str())
        }
        Logged::Turn { .. } | Logged::User { .. } | Logged::Note { .. } => None,
    })
}

//! A fold as it is kept outside the journal, and back. What comes back equals what was kept, so that
//! a fold may go on from it as if it had been made from the first record.
//!
//! Each conversion takes the whole apart: a new field of the fold does not compile until it is kept.

use std::time::Duration;

use proto::grounds::Grounds;
use proto::saved::{
    SavedCall, SavedCheckpoint, SavedHead, SavedLogged, SavedMode, SavedOpenTurn, SavedRatio,
    SavedReply, SavedRun, SavedStart, SavedThread, SavedUnread, SavedVerifying,
};

use crate::ratios::{Ratio, Ratios};
use crate::thread::{
    Call, CheckpointMark, Head, Logged, Mode, OpenTurn, Reply, Run, StartState, Thread, Unread,
    Verifying,
};

impl From<&Thread> for SavedThread {
    fn from(thread: &Thread) -> Self {
        let Thread {
            place,
            head,
            plan_last,
            trail,
            grounds,
            agent,
            keys,
            unread,
            cancel_unstarted,
            run,
            runs,
            log,
            calls,
            poison,
            notes,
            late,
            finished,
            checkpoint,
            ratios,
        } = thread;
        Self {
            place: place.clone(),
            head: head.into(),
            plan_last: *plan_last,
            trail: trail.iter().cloned().collect(),
            agent: agent.clone(),
            keys: keys.iter().cloned().collect(),
            unread: unread.iter().map(Into::into).collect(),
            cancel_unstarted: *cancel_unstarted,
            run: run.as_ref().map(Into::into),
            runs: *runs,
            log: log.iter().map(Into::into).collect(),
            calls: calls.values().map(Into::into).collect(),
            poison: poison.iter().map(|(at, why)| (*at, why.clone())).collect(),
            notes: notes.clone(),
            late: *late,
            finished: finished.clone(),
            checkpoint: checkpoint.map(Into::into),
            ratios: kept_ratios(ratios),
            grounds: Some(grounds.clone()),
        }
    }
}

fn kept_ratios(Ratios(ratios): &Ratios) -> Vec<SavedRatio> {
    let kept = ratios.iter().map(|((model, by), ratio)| {
        let Ratio { estimated, counted } = *ratio;
        SavedRatio { model: model.clone(), by: *by, estimated, counted }
    });
    kept.collect()
}

fn ratios_of(kept: Vec<SavedRatio>) -> Ratios {
    let ratio = |SavedRatio { model, by, estimated, counted }: SavedRatio| {
        ((model, by), Ratio { estimated, counted })
    };
    Ratios(kept.into_iter().map(ratio).collect())
}

impl From<SavedThread> for Thread {
    fn from(saved: SavedThread) -> Self {
        let calls = saved.calls.into_iter().map(Call::from);
        // An older build has not kept what lies up to there.
        let unknown = Grounds::above(saved.head.sequence);
        Self {
            place: saved.place,
            head: saved.head.into(),
            plan_last: saved.plan_last,
            trail: saved.trail.into_iter().collect(),
            agent: saved.agent,
            keys: saved.keys.into_iter().collect(),
            unread: saved.unread.into_iter().map(Into::into).collect(),
            cancel_unstarted: saved.cancel_unstarted,
            run: saved.run.map(Into::into),
            runs: saved.runs,
            log: saved.log.into_iter().map(Into::into).collect(),
            calls: calls.map(|call| (call.id().clone(), call)).collect(),
            poison: saved.poison.into_iter().collect(),
            notes: saved.notes,
            late: saved.late,
            finished: saved.finished,
            checkpoint: saved.checkpoint.map(Into::into),
            ratios: ratios_of(saved.ratios),
            grounds: saved.grounds.unwrap_or(unknown),
        }
    }
}

impl From<&Head> for SavedHead {
    fn from(head: &Head) -> Self {
        let Head { sequence, nonce, at, told_at } = head;
        Self { sequence: *sequence, nonce: nonce.clone(), at: *at, told_at: *told_at }
    }
}

impl From<SavedHead> for Head {
    fn from(saved: SavedHead) -> Self {
        let SavedHead { sequence, nonce, at, told_at } = saved;
        Self { sequence, nonce, at, told_at }
    }
}

impl From<CheckpointMark> for SavedCheckpoint {
    fn from(mark: CheckpointMark) -> Self {
        let CheckpointMark { runs, folded, at } = mark;
        Self { runs, folded, at }
    }
}

impl From<SavedCheckpoint> for CheckpointMark {
    fn from(saved: SavedCheckpoint) -> Self {
        let SavedCheckpoint { runs, folded, at } = saved;
        Self { runs, folded, at }
    }
}

impl From<&Unread> for SavedUnread {
    fn from(unread: &Unread) -> Self {
        let Unread { sequence, at, mode, message } = unread;
        let mode = match mode {
            Mode::Enqueue => SavedMode::Enqueue,
            Mode::Steer => SavedMode::Steer,
            Mode::Interrupt => SavedMode::Interrupt,
        };
        Self { sequence: *sequence, at: *at, mode, message: message.clone() }
    }
}

impl From<SavedUnread> for Unread {
    fn from(saved: SavedUnread) -> Self {
        let SavedUnread { sequence, at, mode, message } = saved;
        let mode = match mode {
            SavedMode::Enqueue => Mode::Enqueue,
            SavedMode::Steer => Mode::Steer,
            SavedMode::Interrupt => Mode::Interrupt,
        };
        Self { sequence, at, mode, message }
    }
}

impl From<&Run> for SavedRun {
    fn from(run: &Run) -> Self {
        let Run {
            number,
            taken,
            turns,
            open,
            reply,
            approved,
            complexity,
            cancel,
            usage,
            calls,
            repairs,
            handed_back,
            verifying,
            recalled,
        } = run;
        Self {
            number: *number,
            taken_ns: u64::try_from(taken.as_nanos()).unwrap_or(u64::MAX),
            turns: *turns,
            open: open.as_ref().map(Into::into),
            reply: reply.as_ref().map(Into::into),
            approved: approved.iter().cloned().collect(),
            complexity: *complexity,
            cancel: *cancel,
            usage: *usage,
            calls: *calls,
            repairs: *repairs,
            handed_back: *handed_back,
            verifying: verifying.as_ref().map(|verifying| SavedVerifying {
                step: verifying.step,
                draft: verifying.draft.clone(),
            }),
            recalled: recalled.clone(),
        }
    }
}

impl From<SavedRun> for Run {
    fn from(saved: SavedRun) -> Self {
        Self {
            number: saved.number,
            taken: Duration::from_nanos(saved.taken_ns),
            turns: saved.turns,
            open: saved.open.map(Into::into),
            reply: saved.reply.map(Into::into),
            approved: saved.approved.into_iter().collect(),
            complexity: saved.complexity,
            cancel: saved.cancel,
            usage: saved.usage,
            calls: saved.calls,
            repairs: saved.repairs,
            handed_back: saved.handed_back,
            verifying: saved
                .verifying
                .map(|SavedVerifying { step, draft }| Verifying { step, draft }),
            recalled: saved.recalled,
        }
    }
}

impl From<&OpenTurn> for SavedOpenTurn {
    fn from(open: &OpenTurn) -> Self {
        let OpenTurn { sequence, started, dispatched } = open;
        Self { sequence: *sequence, started: started.clone(), dispatched: dispatched.clone() }
    }
}

impl From<SavedOpenTurn> for OpenTurn {
    fn from(saved: SavedOpenTurn) -> Self {
        let SavedOpenTurn { sequence, started, dispatched } = saved;
        Self { sequence, started, dispatched }
    }
}

impl From<&Reply> for SavedReply {
    fn from(reply: &Reply) -> Self {
        let Reply { turn, text, calls, sealed, confidence } = reply;
        Self {
            turn: *turn,
            text: text.clone(),
            calls: calls.clone(),
            sealed: *sealed,
            confidence: *confidence,
        }
    }
}

impl From<SavedReply> for Reply {
    fn from(saved: SavedReply) -> Self {
        let SavedReply { turn, text, calls, sealed, confidence } = saved;
        Self { turn, text, calls, sealed, confidence }
    }
}

impl From<&Logged> for SavedLogged {
    fn from(logged: &Logged) -> Self {
        match logged.clone() {
            Logged::User { run, text } => Self::User { run, text },
            Logged::Note { text } => Self::Note { text },
            Logged::Turn { run, turn, text, reasoning, opaque, calls } => {
                Self::Turn { run, turn, text, reasoning, opaque, calls }
            }
        }
    }
}

impl From<SavedLogged> for Logged {
    fn from(saved: SavedLogged) -> Self {
        match saved {
            SavedLogged::User { run, text } => Self::User { run, text },
            SavedLogged::Note { text } => Self::Note { text },
            SavedLogged::Turn { run, turn, text, reasoning, opaque, calls } => {
                Self::Turn { run, turn, text, reasoning, opaque, calls }
            }
        }
    }
}

impl From<&Call> for SavedCall {
    fn from(call: &Call) -> Self {
        let Call {
            requested,
            run,
            turn,
            position,
            asked,
            decision,
            dispatched,
            start,
            closed,
            late,
        } = call.clone();
        let start = match start {
            StartState::None => SavedStart::None,
            StartState::Started { sequence, started } => SavedStart::Started { sequence, started },
            StartState::Barred => SavedStart::Barred,
            StartState::BarredAfterCheck => SavedStart::BarredAfterCheck,
        };
        Self { requested, run, turn, position, asked, decision, dispatched, start, closed, late }
    }
}

impl From<SavedCall> for Call {
    fn from(saved: SavedCall) -> Self {
        let start = match saved.start {
            SavedStart::None => StartState::None,
            SavedStart::Started { sequence, started } => StartState::Started { sequence, started },
            SavedStart::Barred => StartState::Barred,
            SavedStart::BarredAfterCheck => StartState::BarredAfterCheck,
        };
        Self {
            requested: saved.requested,
            run: saved.run,
            turn: saved.turn,
            position: saved.position,
            asked: saved.asked,
            decision: saved.decision,
            dispatched: saved.dispatched,
            start,
            closed: saved.closed,
            late: saved.late,
        }
    }
}

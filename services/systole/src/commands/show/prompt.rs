//! The exact request of a turn, with what it is made of.

use std::fmt::Write as _;
use std::sync::Arc;

use planner_core::Thread;
use planner_core::prompt::{block_tokens, request, shared_prefix, token_limit};
use planner_core::toolbox::Toolbox;
use ports::journal::Journal;
use proto::fact::{Fact, TurnStarted};
use proto::ids::{Sequence, ThreadRef};
use proto::model::{Block, ModelRequest};
use proto::record::Record;
use proto::transcript::{Entry, TurnEntry};
use serde_json::{Value, json};

use crate::arguments::Show;
use crate::commands::Context;
use crate::failure::Failure;
use crate::remembered::Remembered;
use crate::screen::style::{Palette, Tone};
use crate::screen::summary::grouped;
use crate::screen::text::clean;

/// The request of the turn that is asked for.
pub(super) async fn text(
    context: &Context,
    journal: &Arc<dyn Journal>,
    place: &ThreadRef,
    show: &Show,
) -> Result<String, Failure> {
    let (thread, turn) = at_turn(context, journal, place, show.turn).await?;
    let before = match turn.turn.checked_sub(1).filter(|before| *before > 0) {
        Some(before) => at_turn(context, journal, place, Some(before)).await.ok(),
        None => None,
    };
    let known = Remembered::find(&context.common.store, &turn.agent_fingerprint)
        .map_err(|error| Failure::other("what was kept of the agent", error))?;
    let Some(known) = known else {
        let why = format!(
            "the files of agent {} as it was then are not kept beside the store",
            turn.agent
        );
        return Err(Failure::not_found(why));
    };
    let (toolbox, _) = Toolbox::new(known.tools);
    let request = request(&thread, &known.agent, &toolbox)
        .map_err(|error| Failure::other("the request", error))?;
    let limit = token_limit(&known.agent);
    let before = before.filter(|(_, before)| before.run == turn.run);
    let before = before.and_then(|(thread, _)| self::request(&thread, &known.agent, &toolbox).ok());
    let shared = before.map(|before| shared_prefix(&before, &request));
    if show.json {
        return Ok(format!("{}\n", as_json(&request, &turn, limit, shared)));
    }
    Ok(as_text(&request, &turn, (limit, shared), context.palette()))
}

/// The thread as it was when a turn's request was built: the newest turn of the newest run, or the
/// one that is asked for.
async fn at_turn(
    context: &Context,
    journal: &Arc<dyn Journal>,
    place: &ThreadRef,
    wanted: Option<u32>,
) -> Result<(Thread, TurnStarted), Failure> {
    let mut thread = Thread::new(place.clone());
    let mut found: Option<(Thread, TurnStarted)> = None;
    let mut last = 0;
    for stored in journal.read(place, Sequence::NONE, Sequence::NONE).await? {
        let Ok(placed) = stored.placed() else { continue };
        thread.apply(&stored.subject.leaf, &placed);
        if let Record::Fact(Fact::TurnStarted(turn)) = placed.record {
            last = last.max(turn.turn);
            if wanted.is_none_or(|wanted| wanted == turn.turn) {
                found = Some((thread.clone(), turn));
            }
        }
    }
    found.ok_or_else(|| no_turn(context, place, wanted, last))
}

/// What there is in place of the turn that was asked for.
fn no_turn(context: &Context, place: &ThreadRef, wanted: Option<u32>, last: u32) -> Failure {
    let thread = place.thread;
    match wanted {
        Some(wanted) if last > 0 => {
            let newest = context.same_store(&format!("show {thread} --prompt"));
            Failure::not_found(format!("thread {thread} has no turn {wanted}")).and(format!(
                "It has the turns 1 to {last}; without `--turn` the newest is shown: {newest}"
            ))
        }
        Some(_) | None => {
            Failure::not_found(format!("thread {thread} has no turn yet: no model was asked"))
        }
    }
}

fn as_json(
    request: &ModelRequest,
    turn: &TurnStarted,
    limit: usize,
    shared: Option<(usize, usize)>,
) -> Value {
    let blocks: Vec<Value> = block_tokens(request)
        .into_iter()
        .map(|(name, tokens)| json!({"name": name, "tokens": tokens}))
        .collect();
    let total: usize = block_tokens(request).iter().map(|(_, tokens)| tokens).sum();
    json!({
        "run": turn.run, "turn": turn.turn, "agent": turn.agent, "tokens": total, "limit": limit,
        "prefix": shared.map(|(same, all)| json!({"bytes": same, "of": all})),
        "blocks": blocks, "request": request,
    })
}

fn as_text(
    request: &ModelRequest,
    turn: &TurnStarted,
    (limit, shared): (usize, Option<(usize, usize)>),
    palette: Palette,
) -> String {
    let counts = block_tokens(request);
    let total: usize = counts.iter().map(|(_, tokens)| tokens).sum();
    let mut out = String::new();
    let mut say = |line: &str| {
        out.push_str(line);
        out.push('\n');
    };
    let number = |tokens: usize| grouped(u64::try_from(tokens).unwrap_or(u64::MAX));
    say(&format!(
        "request of run {}, turn {} to {}: about {} of {} tokens",
        turn.run,
        turn.turn,
        request.model,
        number(total),
        number(limit)
    ));
    if let Some((same, all)) = shared {
        let percent = same.saturating_mul(100).checked_div(all).unwrap_or_default();
        let words = format!("  the first {percent} % are those of the turn before");
        say(&palette.paint(Tone::Faint, &words));
    }
    for (name, tokens) in &counts {
        say(&palette.paint(Tone::Faint, &format!("  {:>7}  {name}", number(*tokens))));
    }
    for block in &request.head {
        say(&block_text(block, palette));
    }
    say(&heading("tool definitions", palette));
    for tool in &request.tools {
        say(&format!("{}: {}\n  {}", tool.name, clean(&tool.description), tool.parameters));
    }
    say(&heading("conversation", palette));
    for entry in request.transcript.entries() {
        say(&entry_text(entry, palette));
    }
    for block in &request.tail {
        say(&block_text(block, palette));
    }
    out
}

fn heading(name: &str, palette: Palette) -> String {
    palette.paint(Tone::Strong, &format!("\n── {name}"))
}

fn block_text(block: &Block, palette: Palette) -> String {
    format!("{}\n{}", heading(&block.name, palette), clean(&block.text))
}

fn entry_text(entry: &Entry, palette: Palette) -> String {
    let role = |name: &str| palette.paint(Tone::Warm, &format!("[{name}]"));
    match entry {
        Entry::User { text } => format!("{} {}", role("user"), clean(text)),
        Entry::Note { text } => format!("{} {}", role("note"), clean(text)),
        Entry::Turn(turn) => turn_text(turn, palette),
    }
}

fn turn_text(turn: &TurnEntry, palette: Palette) -> String {
    let role = |name: &str| palette.paint(Tone::Warm, &format!("[{name}]"));
    let mut text = format!("{} {}", role("assistant"), clean(&turn.text));
    for call in &turn.calls {
        let arguments = Value::Object(call.arguments().clone());
        let (id, tool) = (call.tool_call_id(), clean(call.tool()));
        let content = clean(&call.observation().content);
        // Writing to a string cannot fail.
        write!(text, "\n{} {tool} {arguments}", role(&format!("call {id}"))).unwrap_or_default();
        write!(text, "\n{} {content}", role(&format!("tool {id}"))).unwrap_or_default();
    }
    text
}

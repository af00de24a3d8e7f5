//! The exact request of a turn, with what it is made of: tokens by the `o200k_base` encoding, whatever
//! the planner went by, and what the provider counted.

use std::fmt::Write as _;
use std::sync::Arc;

use planner_core::Thread;
use planner_core::prompt::{block_tokens, request, shared_prefix, token_limit};
use planner_core::toolbox::Toolbox;
use ports::journal::Journal;
use proto::fact::{Estimator, Fact, TurnStarted};
use proto::ids::{Sequence, ThreadRef};
use proto::model::{ModelRequest, ModelTool};
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

/// A request as it was, with what people ask about it.
struct Shown {
    request: ModelRequest,
    turn: TurnStarted,
    /// What it may take, in tokens.
    limit: usize,
    /// How much of it is the beginning of the one before, in bytes, of all.
    shared: Option<(usize, usize)>,
    /// Tokens by block.
    blocks: Vec<(String, usize)>,
    /// What the provider counted.
    counted: Option<u64>,
}

impl Shown {
    fn total(&self) -> usize {
        self.blocks.iter().map(|(_, tokens)| tokens).sum()
    }
}

/// The request of the turn that is asked for.
pub(super) async fn text(
    context: &Context,
    journal: &Arc<dyn Journal>,
    place: &ThreadRef,
    show: &Show,
) -> Result<String, Failure> {
    let AtTurn { thread, turn, counted } = at_turn(context, journal, place, show.turn).await?;
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
    let before = before.filter(|before| before.turn.run == turn.run);
    let before =
        before.and_then(|before| self::request(&before.thread, &known.agent, &toolbox).ok());
    let shared = before.map(|before| shared_prefix(&before, &request));
    let ratio = thread.ratios.of(&request.model, Estimator::Encoding);
    let corrected = |(name, tokens)| (name, ratio.corrected(tokens));
    let blocks = block_tokens(&request, Estimator::Encoding).into_iter().map(corrected).collect();
    let shown = Shown { request, turn, limit, shared, blocks, counted };
    if show.json {
        return Ok(format!("{}\n", as_json(&shown)));
    }
    Ok(as_text(&shown, context.palette()))
}

/// A thread when a turn's request was built.
struct AtTurn {
    thread: Thread,
    turn: TurnStarted,
    /// What the provider counted, once it has answered.
    counted: Option<u64>,
}

/// The thread as it was when a turn's request was built: the newest turn of the newest run, or the
/// one that is asked for.
async fn at_turn(
    context: &Context,
    journal: &Arc<dyn Journal>,
    place: &ThreadRef,
    wanted: Option<u32>,
) -> Result<AtTurn, Failure> {
    let mut thread = Thread::new(place.clone());
    let mut found: Option<(Sequence, AtTurn)> = None;
    let mut last = 0;
    for stored in journal.read(place, Sequence::NONE, Sequence::NONE).await? {
        let Ok(placed) = stored.placed() else { continue };
        thread.apply(&stored.subject.leaf, &placed);
        match placed.record {
            Record::Fact(Fact::TurnStarted(turn)) => {
                last = last.max(turn.turn);
                if wanted.is_none_or(|wanted| wanted == turn.turn) {
                    let at_turn = AtTurn { thread: thread.clone(), turn, counted: None };
                    found = Some((placed.sequence, at_turn));
                }
            }
            Record::Fact(Fact::TurnCompleted(ended)) => {
                if let Some((started, at_turn)) = &mut found
                    && *started == ended.started
                {
                    at_turn.counted = ended.counted.map(|counted| counted.counted);
                }
            }
            Record::Fact(_)
            | Record::Input(_)
            | Record::ToolCall(_)
            | Record::Start(_)
            | Record::Observation(_)
            | Record::Tick => {}
        }
    }
    found.map(|(_, at_turn)| at_turn).ok_or_else(|| no_turn(context, place, wanted, last))
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

fn as_json(shown: &Shown) -> Value {
    let Shown { request, turn, limit, shared, blocks, counted } = shown;
    let blocks = blocks.iter().map(|(name, tokens)| json!({"name": name, "tokens": tokens}));
    let blocks: Vec<Value> = blocks.collect();
    json!({
        "run": turn.run, "turn": turn.turn, "agent": turn.agent,
        "tokens": shown.total(), "limit": limit, "counted": counted,
        "prefix": shared.map(|(same, all)| json!({"bytes": same, "of": all})),
        "blocks": blocks, "request": request,
    })
}

/// What is made of what: each block has a number, which is its colour.
fn as_text(shown: &Shown, palette: Palette) -> String {
    let mut lines = head_lines(shown, palette);
    let request = &shown.request;
    let texts = [
        request.head.iter().map(|block| clean(&block.text)).collect(),
        vec![tools_text(request), conversation_text(request)],
        request.tail.iter().map(|block| clean(&block.text)).collect(),
    ];
    let parts = shown.blocks.iter().zip(texts.concat()).enumerate();
    for (number, ((name, tokens), text)) in parts {
        let heading = palette.part(number, &format!("── {name} ({})", words(*tokens)));
        lines.push(format!("\n{}", palette.paint(Tone::Strong, &heading)));
        lines.push(palette.part(number, &text));
    }
    lines.join("\n") + "\n"
}

fn head_lines(shown: &Shown, palette: Palette) -> Vec<String> {
    let (turn, model) = (&shown.turn, &shown.request.model);
    let (total, limit) = (words(shown.total()), grouped(wide(shown.limit)));
    let mut lines = vec![format!(
        "request of run {}, turn {} to {model}: about {total} of {limit} allowed",
        turn.run, turn.turn
    )];
    let mut faint = |text: String| lines.push(palette.paint(Tone::Faint, &text));
    if let Some(counted) = shown.counted {
        faint(format!("  its provider counted {}", grouped(counted)));
    }
    if let Some((same, all)) = shown.shared {
        let percent = same.saturating_mul(100).checked_div(all).unwrap_or_default();
        faint(format!("  the first {percent} % are those of the turn before"));
    }
    for (number, (name, tokens)) in shown.blocks.iter().enumerate() {
        lines.push(palette.part(number, &format!("  {:>7}  {name}", grouped(wide(*tokens)))));
    }
    lines
}

fn wide(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn words(tokens: usize) -> String {
    format!("{} tokens", grouped(wide(tokens)))
}

fn tools_text(request: &ModelRequest) -> String {
    let line = |tool: &ModelTool| {
        format!("{}: {}\n  {}", tool.name, clean(&tool.description), tool.parameters)
    };
    request.tools.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn conversation_text(request: &ModelRequest) -> String {
    let entries = request.transcript.entries().iter();
    entries.map(entry_text).collect::<Vec<_>>().join("\n")
}

fn entry_text(entry: &Entry) -> String {
    match entry {
        Entry::User { text } => format!("[user] {}", clean(text)),
        Entry::Note { text } => format!("[note] {}", clean(text)),
        Entry::Turn(turn) => turn_text(turn),
    }
}

fn turn_text(turn: &TurnEntry) -> String {
    let mut text = format!("[assistant] {}", clean(&turn.text));
    for call in &turn.calls {
        let arguments = Value::Object(call.arguments().clone());
        let (id, tool) = (call.tool_call_id(), clean(call.tool()));
        let content = clean(&call.observation().content);
        // Writing to a string cannot fail.
        write!(text, "\n[call {id}] {tool} {arguments}").unwrap_or_default();
        write!(text, "\n[tool {id}] {content}").unwrap_or_default();
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use proto::agent::Protocol;
    use proto::hash::fingerprint;
    use proto::ids::InstanceId;
    use proto::model::{Block, Estimate};
    use proto::time::Timestamp;
    use proto::transcript::Transcript;

    use super::*;

    fn shown() -> Shown {
        let (role, tail) = ("You dig.\nDeep.", "Be brief.");
        let block = |name: &str, text: &str| Block { name: name.into(), text: text.into() };
        let request = ModelRequest {
            agent: "digger".parse().unwrap(),
            model: "m".into(),
            fallbacks: Vec::new(),
            protocol: Protocol::Contract,
            profile: None,
            head: vec![block("role", role)],
            transcript: Transcript::new(vec![Entry::User { text: "Dig.".into() }]).unwrap(),
            tail: vec![block("reminder", tail)],
            tools: Vec::new(),
            temperature: None,
            max_completion_tokens: None,
            tenant: None,
            likely_tokens: 0,
            estimate: Estimate::default(),
            failed_rounds: 0,
        };
        let turn = TurnStarted {
            run: 1,
            turn: 2,
            start: 1,
            seen: Sequence(1),
            owner: InstanceId::new("p").unwrap(),
            held_by: Sequence(1),
            deadline: Timestamp(0),
            agent: request.agent.clone(),
            agent_fingerprint: fingerprint("digger"),
            note: None,
            verify: None,
            draft: false,
            recalled: Vec::new(),
        };
        let blocks = block_tokens(&request, Estimator::Encoding);
        Shown { request, turn, limit: 1000, shared: Some((8, 10)), blocks, counted: Some(1234) }
    }

    #[test]
    fn every_block_has_its_text_its_tokens_and_where_it_may_its_colour() {
        let plain = as_text(&shown(), Palette::new(false));
        expect![[r"
            request of run 1, turn 2 to m: about 18 tokens of 1,000 allowed
              its provider counted 1,234
              the first 80 % are those of the turn before
                    5  role
                    0  tool definitions
                   10  conversation
                    3  reminder

            ── role (5 tokens)
            You dig.
            Deep.

            ── tool definitions (0 tokens)


            ── conversation (10 tokens)
            [user] Dig.

            ── reminder (3 tokens)
            Be brief.
        "]]
        .assert_eq(&plain);
        let coloured = as_text(&shown(), Palette::new(true));
        for part in ["\u{1b}[36mYou dig.\u{1b}[0m\n\u{1b}[36mDeep.", "\u{1b}[33m[user] Dig."] {
            assert!(coloured.contains(part), "{coloured:?}");
        }
        let bare: String = coloured.split('\u{1b}').collect::<Vec<_>>().join("");
        assert!(bare.len() > plain.len());
    }
}

//! Events as running text for people: thoughts and words as they come, one line per tool call,
//! a summary at the end.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use planner_core::Thread;
use planner_core::thread::{Call, Logged};
use planner_core::toolbox::FINISH;
use proto::event::{Event, ThreadEvent};
use proto::fact::{SealReason, VerifyStep};
use proto::ids::{Sequence, ToolCallId};
use proto::live::Channel;
use proto::notice::{Deadline, Next};
use proto::time::Timestamp;
use serde_json::Value;

use super::call_line::{self, CallShown, Standing};
use super::canvas::{Canvas, row};
use super::reply::{Line, Reply};
use super::steps::Apart;
use super::style::{Palette, Tone};
use super::text::{clean, columns, cut, one_line, restored_line, wrap};
use super::words::{late_words, seal_words, step_words};
use super::{View, summary};

/// Lines of an input that are shown.
const INPUT_LINES: usize = 6;
/// A longer silence of the model is told.
const SILENCE: Duration = Duration::from_secs(1);
/// Lines of an observation in a pipe, and when a thread is looked back at.
const OBSERVATION_LINES: usize = 10;
const WHOLE_LINES: usize = 1000;

/// Running text on a terminal or in a pipe.
pub(crate) struct HumanView<W> {
    canvas: Canvas<W>,
    palette: Palette,
    reply: Option<Reply>,
    calls: BTreeMap<ToolCallId, OpenCall>,
    said: String,
    began: Option<Timestamp>,
    /// When the model was last heard of.
    heard: Timestamp,
    now: Timestamp,
    frame: usize,
    /// Lines of an observation that are shown where nothing is drawn anew.
    most_lines: usize,
    /// Whether the steps of a thought are shown apart: where the whole of it is known.
    apart: bool,
    /// The heading that stands last, while nothing came below it.
    headed: Option<String>,
    /// What was waited for last: the thread and the parts of this process both tell it.
    waited: String,
    /// Calls of the reply under way, where nothing is drawn anew: the words before them may still be
    /// on their way, for they come by another road.
    behind: Vec<String>,
}

struct OpenCall {
    shown: CallShown,
    since: Timestamp,
    order: Sequence,
}

impl<W: Write> HumanView<W> {
    pub(crate) fn new(canvas: Canvas<W>, palette: Palette) -> Self {
        Self {
            canvas,
            palette,
            reply: None,
            calls: BTreeMap::new(),
            said: String::new(),
            began: None,
            heard: Timestamp::default(),
            now: Timestamp::default(),
            frame: 0,
            most_lines: OBSERVATION_LINES,
            apart: false,
            headed: None,
            waited: String::new(),
            behind: Vec::new(),
        }
    }

    /// With observations as a whole, within reason, and each step of a thought apart.
    #[must_use]
    pub(crate) fn whole(mut self) -> Self {
        self.most_lines = WHOLE_LINES;
        self.apart = true;
        self
    }

    fn lines_of(&mut self, event: &ThreadEvent, thread: &Thread) -> Vec<String> {
        let at = event.at.unwrap_or(self.now);
        match &event.event {
            Event::Input { input, text } => self.input(input, text, at),
            Event::TurnStarted { turn, start, verify, .. } => {
                self.turn_started(event, (*turn, *start), *verify)
            }
            Event::Delta { channel, offset, delta, .. } => {
                self.piece(event.sequence, *channel, *offset, delta)
            }
            Event::DeadlinePassed { deadline, next, .. } => self.deadline_passed(*deadline, *next),
            Event::Waiting { because, .. } => self.waiting(because),
            Event::WithoutMemory { because, .. } => {
                self.remark(&format!("without long-term memory: {because}"))
            }
            Event::TurnCompleted { text, .. } => self.turn_ended(text, thread, None),
            Event::TurnSealed { text, why, .. } => self.turn_ended(text, thread, Some(*why)),
            Event::ToolCall { tool_call_id, tool, arguments, effect, .. } => {
                let shown = CallShown::new(tool, arguments, Some(*effect));
                self.call(tool_call_id, OpenCall { shown, since: at, order: event.sequence })
            }
            Event::Phase { .. } | Event::ToolStarted { .. } | Event::ToolBarred { .. } => {
                Vec::new()
            }
            Event::Observation { tool_call_id, late: true, content, .. } => {
                self.late(tool_call_id, content, thread)
            }
            Event::Observation { tool_call_id, .. } => {
                self.observation(tool_call_id, &event.event, at, thread)
            }
            Event::ApprovalAsked { tool_call_id, .. } => self.approval(tool_call_id, thread),
            Event::RunFinished { answer, .. } => self.finished(answer, &event.event, at),
            Event::Parked { parked, why } => {
                vec![self.tinted(
                    Tone::Bad,
                    &format!("! record {parked} was set aside: {}", one_line(why)),
                )]
            }
            Event::Checkpoint { .. } => Vec::new(),
            Event::Restored { again, in_doubt, .. } => {
                vec![self.tinted(Tone::Bad, &restored_line(again.len(), in_doubt.len()))]
            }
        }
    }

    fn tinted(&self, tone: Tone, text: &str) -> String {
        self.palette.paint(tone, &cut(text, self.canvas.width()))
    }

    fn input(&mut self, kind: &str, text: &str, at: Timestamp) -> Vec<String> {
        self.began.get_or_insert(at);
        match kind {
            "cancel" => vec![self.tinted(Tone::Warm, &format!("■ cancel: {}", one_line(text)))],
            "decision" => Vec::new(),
            _ => self.words_of_user(text),
        }
    }

    fn words_of_user(&self, text: &str) -> Vec<String> {
        let width = self.canvas.width().saturating_sub(2);
        let all = wrap(&clean(&alert_words(text).unwrap_or_else(|| text.to_owned())), width);
        let more = all.len().saturating_sub(INPUT_LINES);
        let mut lines: Vec<String> = all
            .iter()
            .take(INPUT_LINES)
            .map(|line| format!("{} {line}", self.palette.paint(Tone::Strong, "▌")))
            .collect();
        if more > 0 {
            lines.push(self.tinted(Tone::Faint, &format!("▌ … {more} more lines")));
        }
        lines
    }

    fn turn_started(
        &mut self,
        event: &ThreadEvent,
        (turn, start): (u32, u32),
        verify: Option<VerifyStep>,
    ) -> Vec<String> {
        let mut lines = self.end_reply();
        let reply = Reply::new(event.sequence, self.text_width());
        self.reply = Some(if self.canvas.is_live() { reply } else { reply.holding() });
        self.heard = event.at.unwrap_or(self.now);
        let again = if start > 1 { ", asked again" } else { "" };
        let title = format!("turn {turn}{again}{} ", verify.map_or("", step_words));
        if lines.is_empty() && self.headed.as_deref() == Some(title.as_str()) {
            return lines;
        }
        let rule = self.canvas.width().min(60).saturating_sub(columns(&title)).saturating_sub(3);
        self.headed = Some(title.clone());
        lines.push(String::new());
        lines.push(self.tinted(Tone::Faint, &format!("── {title}{}", "─".repeat(rule))));
        lines
    }

    fn text_width(&self) -> Option<usize> {
        self.canvas.wrap_width().map(|width| width.min(100).saturating_sub(2))
    }

    fn piece(
        &mut self,
        started: Sequence,
        channel: Channel,
        offset: u64,
        delta: &str,
    ) -> Vec<String> {
        let Some(reply) = self.reply.as_mut().filter(|reply| reply.started == started) else {
            return Vec::new();
        };
        let lines = reply.piece(channel, offset, delta);
        self.heard = self.now.max(self.heard);
        self.dressed(lines)
    }

    /// The end of a run or a call says itself why it came.
    fn deadline_passed(&self, deadline: Deadline, next: Next) -> Vec<String> {
        match deadline {
            Deadline::Call | Deadline::Run => Vec::new(),
            Deadline::FirstToken | Deadline::Idle | Deadline::Total => {
                self.remark(&late_words(deadline, next))
            }
        }
    }

    fn waiting(&mut self, because: &str) -> Vec<String> {
        if because.is_empty() || std::mem::replace(&mut self.waited, because.to_owned()) == because
        {
            return Vec::new();
        }
        self.remark(because)
    }

    /// A word between the lines of the run.
    fn remark(&self, text: &str) -> Vec<String> {
        let width = self.canvas.wrap_width().unwrap_or(usize::MAX).saturating_sub(4);
        let lines = wrap(&one_line(text), width);
        let marks = std::iter::once("  … ").chain(std::iter::repeat("    "));
        let lines = marks.zip(lines).map(|(mark, line)| format!("{mark}{line}"));
        lines.map(|line| self.palette.paint(Tone::Warm, &line)).collect()
    }

    fn dressed(&self, lines: Vec<Line>) -> Vec<String> {
        lines.into_iter().map(|(channel, line)| self.dress(channel, &line)).collect()
    }

    fn dress(&self, channel: Channel, line: &str) -> String {
        match channel {
            Channel::Text if line.is_empty() => String::new(),
            Channel::Text => format!("  {line}"),
            Channel::Reasoning => self.palette.paint(Tone::Faint, &format!("┆ {line}")),
        }
    }

    fn turn_ended(
        &mut self,
        text: &str,
        thread: &Thread,
        sealed: Option<SealReason>,
    ) -> Vec<String> {
        let (thought, has_calls) = last_thought(thread);
        let apart = self.apart.then(|| Apart::of(thought, text, has_calls)).flatten();
        let said = apart.as_ref().map_or((thought, text), |apart| ("", apart.text.as_str()));
        let whole = self.reply.as_mut().map(|reply| reply.whole(said.0, said.1));
        let width = self.text_width().unwrap_or(usize::MAX);
        let mut lines = apart.map_or_else(Vec::new, |apart| apart.lines(width, self.palette));
        lines.extend(self.dressed(whole.unwrap_or_default()));
        lines.extend(self.end_reply());
        text.clone_into(&mut self.said);
        if let Some(why) = sealed {
            let text = format!("  … the reply was cut short: {}", seal_words(why));
            lines.push(self.tinted(Tone::Warm, &text));
        }
        lines
    }

    fn end_reply(&mut self) -> Vec<String> {
        let lines = self.reply.take().map(|mut reply| reply.finish()).unwrap_or_default();
        let mut lines = self.dressed(lines);
        lines.append(&mut self.behind);
        lines
    }

    fn call(&mut self, id: &ToolCallId, call: OpenCall) -> Vec<String> {
        let (width, palette) = (self.canvas.width(), self.palette);
        let line = (!self.canvas.is_live())
            .then(|| call_line::line(&call.shown, &Standing::Sent, width, palette));
        self.calls.insert(id.clone(), call);
        self.behind_words(line.into_iter().collect())
    }

    /// What belongs below the words of the reply under way.
    fn behind_words(&mut self, mut lines: Vec<String>) -> Vec<String> {
        if self.canvas.is_live() || self.reply.is_none() {
            return lines;
        }
        self.behind.append(&mut lines);
        lines
    }

    fn observation(
        &mut self,
        id: &ToolCallId,
        event: &Event,
        at: Timestamp,
        thread: &Thread,
    ) -> Vec<String> {
        let Event::Observation { code, content, receipt, duration_ms, .. } = event else {
            return Vec::new();
        };
        let open = self.calls.remove(id);
        let took = duration_ms.map(Duration::from_millis);
        let took = took.or_else(|| open.as_ref().map(|open| at.since(open.since)));
        let content = content.clone();
        let standing = Standing::Answered { code: *code, receipt: *receipt, took, content };
        let shown = match open {
            Some(open) => open.shown,
            None => match thread.calls.get(id) {
                Some(call) if is_silent(call) => return Vec::new(),
                Some(call) => shown(call),
                None => return Vec::new(),
            },
        };
        if self.canvas.is_live() {
            return vec![call_line::line(&shown, &standing, self.canvas.width(), self.palette)];
        }
        self.behind_words(call_line::block(&shown, &standing, self.most_lines, self.palette))
    }

    /// A result that came after its call was closed: the run went on without it.
    fn late(&self, id: &ToolCallId, content: &str, thread: &Thread) -> Vec<String> {
        let Some(call) = thread.calls.get(id) else { return Vec::new() };
        let tool = one_line(&call.requested.tool);
        let line = format!("  … {tool} answered late, not used: {}", one_line(content));
        vec![self.palette.paint(Tone::Faint, &cut(&line, self.canvas.width()))]
    }

    fn approval(&self, id: &ToolCallId, thread: &Thread) -> Vec<String> {
        let Some(call) = thread.calls.get(id) else { return Vec::new() };
        let effect = call.requested.terms.as_ref().map_or("unknown", |terms| terms.effect.as_str());
        let head = format!("  ⚠ {} needs your approval", one_line(&call.requested.tool));
        let mut lines = vec![format!("{} ({effect})", self.palette.paint(Tone::Warm, &head))];
        let arguments = Value::Object(call.requested.arguments.clone());
        let arguments = serde_json::to_string_pretty(&arguments).unwrap_or_default();
        let width = self.canvas.width().saturating_sub(6);
        lines.extend(
            wrap(&clean(&arguments), width).into_iter().map(|line| format!("      {line}")),
        );
        lines
    }

    fn finished(&mut self, answer: &str, event: &Event, at: Timestamp) -> Vec<String> {
        let mut lines = self.end_reply();
        if answer.trim() != self.said.trim() {
            let width = self.text_width().unwrap_or(usize::MAX);
            lines.extend(
                wrap(&clean(answer), width).iter().map(|line| self.dress(Channel::Text, line)),
            );
        }
        let took = self.began.take().map(|began| at.since(began));
        lines.push(String::new());
        lines.extend(summary::lines(event, took, self.canvas.width(), self.palette));
        lines
    }

    /// How long nothing has come, once that is long enough to wonder.
    fn silence(&self) -> Option<Duration> {
        let silent = self.now.since(self.heard);
        let waits = self.reply.is_some() && self.calls.is_empty() && silent >= SILENCE;
        waits.then_some(silent)
    }

    /// The rows that are drawn anew: the growing line, then the open calls.
    fn rows(&self) -> Vec<String> {
        let width = self.canvas.width();
        let mut rows = Vec::new();
        if let Some((channel, text)) = self.reply.as_ref().and_then(Reply::growing) {
            rows.push(self.dress(channel, &row(text, width.saturating_sub(2))));
        }
        rows.extend(self.silence().map(|since| {
            let words = call_line::waiting("the model", self.frame, since);
            self.tinted(Tone::Faint, &words)
        }));
        let mut open: Vec<&OpenCall> = self.calls.values().collect();
        open.sort_by_key(|call| call.order);
        rows.extend(open.into_iter().map(|call| {
            let since = self.now.since(call.since);
            let standing = Standing::Running { frame: self.frame, since };
            call_line::line(&call.shown, &standing, width, self.palette)
        }));
        rows
    }

    fn draw(&mut self, lines: &[String]) -> io::Result<()> {
        let rows = self.rows();
        self.canvas.draw(lines, &rows)
    }
}

/// An Alertmanager webhook in a few words.
pub(crate) fn alert_words(text: &str) -> Option<String> {
    let webhook: Value = serde_json::from_str(text).ok()?;
    let first = webhook.get("alerts")?.get(0)?;
    let word = |path: &str| first.pointer(path).and_then(Value::as_str).unwrap_or("?");
    let status = webhook.get("status").and_then(Value::as_str)?;
    Some(format!(
        "alert {} {status} since {}\n{}",
        word("/labels/alertname"),
        word("/startsAt"),
        word("/annotations/summary")
    ))
}

/// What was thought in the last reply, and whether it has calls.
fn last_thought(thread: &Thread) -> (&str, bool) {
    match thread.log.last() {
        Some(Logged::Turn { reasoning, calls, .. }) => (reasoning, !calls.is_empty()),
        Some(Logged::User { .. } | Logged::Note { .. }) | None => ("", false),
    }
}

/// A wait in whole units, rounded up: nobody answers to the millisecond.
fn spell(left: Duration) -> String {
    let seconds = left.as_millis().div_ceil(1000);
    if seconds < 120 { format!("{seconds} s") } else { format!("{} min", seconds.div_ceil(60)) }
}

fn shown(call: &Call) -> CallShown {
    let effect = call.requested.terms.as_ref().map(|terms| terms.effect);
    CallShown::new(&call.requested.tool, &call.requested.arguments, effect)
}

/// A call that only carries the answer.
fn is_silent(call: &Call) -> bool {
    call.requested.tool == FINISH
        && call.closed.as_ref().is_some_and(proto::observation::Observation::is_ok)
}

impl<W: Write + Send> View for HumanView<W> {
    fn event(&mut self, event: &ThreadEvent, thread: &Thread) -> io::Result<()> {
        let lines = self.lines_of(event, thread);
        if !lines.is_empty() && !matches!(event.event, Event::TurnStarted { .. }) {
            self.headed = None;
        }
        self.draw(&lines)
    }

    fn tick(&mut self, now: Timestamp) -> io::Result<()> {
        self.now = now;
        self.frame = self.frame.wrapping_add(1);
        let is_still = self.calls.is_empty() && self.silence().is_none();
        if is_still { Ok(()) } else { self.draw(&[]) }
    }

    fn note(&mut self, text: &str) -> io::Result<()> {
        let width = self.canvas.wrap_width().unwrap_or(usize::MAX);
        let lines = wrap(&clean(text), width);
        let lines: Vec<String> =
            lines.iter().map(|line| self.palette.paint(Tone::Faint, line)).collect();
        self.draw(&lines)
    }

    fn notice(&mut self, text: &str) -> io::Result<()> {
        let lines = self.waiting(text);
        self.headed = None;
        self.draw(&lines)
    }

    fn ask(&mut self, call: &Call, now: Timestamp) -> io::Result<bool> {
        let waits = call.asked.as_ref().map(|asked| asked.expires.since(now));
        let waits = waits.map_or_else(String::new, |left| format!(" within {}", spell(left)));
        let question = format!("  approve {}{waits}? [y/N] ", one_line(&call.requested.tool));
        let question = self.palette.paint(Tone::Strong, &question);
        self.canvas.ask(&[], &question)?;
        Ok(true)
    }

    fn answered(&mut self) {
        self.canvas.answered();
    }

    fn left(&mut self, thread: &Thread, command: &str) -> io::Result<()> {
        let mut lines = self.end_reply();
        self.calls.clear();
        lines.push(String::new());
        let id = thread.place.thread;
        lines
            .push(self.palette.paint(Tone::Warm, &format!("■ saved: thread {id} is not finished")));
        lines.push(format!("  go on with: {command}"));
        self.canvas.draw(&lines, &[])
    }

    fn hint(&mut self, text: &str) -> io::Result<()> {
        let line = self.palette.paint(Tone::Faint, &format!("  {}", clean(text)));
        self.canvas.draw(&[line], &[])
    }
}

#[cfg(test)]
#[path = "human_tests.rs"]
mod tests;

//! What a `dev` prints: one line per thing that matters, of all threads.

use std::io::{self, IsTerminal, Write};

use ports::journal::Stored;
use proto::event::{Event, ThreadEvent, events_of};
use proto::ids::ThreadId;
use proto::time::Timestamp;
use serde_json::{Value, json};

use super::changes::Change;
use super::http::Http;
use crate::commands::Context;
use crate::control::Status;
use crate::failure::Failure;
use crate::screen::canvas::terminal_columns;
use crate::screen::style::{Palette, Tone};
use crate::screen::summary;
use crate::screen::text::{columns, cut, one_line, restored_line, wrap};

/// The width where there is no terminal.
const PAGE: usize = 120;
/// Characters of a thread's id that tell it from others.
const ENOUGH: usize = 6;

/// Standard output.
pub(super) struct Screen {
    json: bool,
    palette: Palette,
    on_terminal: bool,
    closed: bool,
}

impl Screen {
    pub(super) fn new(context: &Context, json: bool) -> Self {
        let on_terminal = io::stdout().is_terminal();
        Self { json, palette: context.palette(), on_terminal, closed: false }
    }

    /// Whether nobody reads any more.
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    fn line(&mut self, line: &str) {
        let mut out = io::stdout().lock();
        self.closed |= writeln!(out, "{line}").and_then(|()| out.flush()).is_err();
    }

    fn event(&mut self, value: &Value) {
        self.line(&value.to_string());
    }

    fn width(&self) -> usize {
        if self.on_terminal { terminal_columns().saturating_sub(1) } else { PAGE }
    }

    fn faint(&mut self, text: &str) {
        self.tinted(Tone::Faint, text);
    }

    /// In as many lines as it takes.
    fn tinted(&mut self, tone: Tone, text: &str) {
        for line in wrap(text, self.width()) {
            let line = self.palette.paint(tone, &line);
            self.line(&line);
        }
    }

    /// Why something takes longer, while it does.
    pub(super) fn notice(&mut self, words: &str) {
        if self.json {
            tracing::warn!("{words}");
        } else {
            self.tinted(Tone::Warm, &format!("… {}", one_line(words)));
        }
    }

    /// It is up.
    pub(super) fn up(
        &mut self,
        context: &Context,
        status: &Status,
        unfinished: usize,
        http: &Http,
    ) {
        if self.json {
            return self.event(&json!({
                "type": "dev_started", "pid": status.pid, "agents": status.agents,
                "unfinished": unfinished, "dry_run": status.dry_run, "http": http.url(),
            }));
        }
        let store = context.common.store.display();
        self.line(&format!("dev is up on {store} as process id {}", status.pid));
        let names = status.agents.iter().map(|agent| columns(agent.name.as_str()));
        let names = names.max().unwrap_or(0);
        for agent in &status.agents {
            let pad = " ".repeat(names.saturating_sub(columns(agent.name.as_str())));
            let name = self.palette.paint(Tone::Strong, agent.name.as_str());
            self.line(&format!("  {name}{pad}  {}", agent.model));
        }
        if status.dry_run {
            self.tinted(Tone::Warm, "dry run: irreversible tools only say what they would do");
        }
        if unfinished > 0 {
            self.line(&format!(
                "{} on where it was",
                count(unfinished, "unfinished run goes", "unfinished runs go")
            ));
        }
        match http {
            Http::At(_) => self.line(&format!("  HTTP at {}", http.url().unwrap_or_default())),
            Http::Missing(why) => self.tinted(Tone::Warm, why),
            Http::Off => {}
        }
        let run = context.same_store("run AGENT \"…\"");
        self.faint(&format!("in another terminal: {run} · Ctrl-C here stops, runs are kept"));
    }

    /// What operators hold back.
    pub(super) fn frozen(&mut self, words: &[String]) {
        if self.json {
            return;
        }
        for words in words {
            self.tinted(Tone::Warm, words);
        }
    }

    /// The newest files are at work.
    pub(super) fn taken_up(&mut self, status: &Status, change: &Change) {
        if self.json {
            return self.event(&json!({
                "type": "dev_reloaded", "at": change.at, "files": change.files,
                "agents": status.agents,
            }));
        }
        let names: Vec<&str> = status.agents.iter().map(|agent| agent.name.as_str()).collect();
        self.faint(&format!(
            "{} {}: {} begin runs as they are now; runs under way keep what they began with",
            time(change.at),
            change.words(),
            names.join(", ")
        ));
    }

    /// The files have changed and cannot be used.
    pub(super) fn kept(&mut self, failure: &Failure, change: &Change) {
        if self.json {
            return self.event(&json!({
                "type": "dev_not_reloaded", "at": change.at, "files": change.files,
                "code": failure.code, "lines": failure.lines,
            }));
        }
        self.tinted(
            Tone::Bad,
            &format!(
                "{} {}, but not in a way that can be used; runs begin as before",
                time(change.at),
                change.words()
            ),
        );
        for line in &failure.lines {
            self.tinted(Tone::Plain, &one_line(line));
        }
    }

    /// The end was asked for.
    pub(super) fn stopping(&mut self) {
        if !self.json {
            self.faint("stopping: what is under way is finished first; Ctrl-C again stops at once");
        }
    }

    /// It is over.
    pub(super) fn down(&mut self, command: &str, unfinished: usize) {
        if self.json {
            return self.event(&json!({"type": "dev_stopped", "unfinished": unfinished}));
        }
        if unfinished == 0 {
            return self.line("dev is down; every run is over");
        }
        let runs = count(unfinished, "run is", "runs are");
        self.line(&format!("dev is down; {runs} not over and will go on with:"));
        self.line(&format!("  {command}"));
    }

    /// One record of any thread.
    pub(super) fn record(&mut self, stored: &Stored) {
        let Ok(placed) = stored.placed() else { return };
        for event in events_of(stored.subject.thread.thread, &placed) {
            if self.json {
                let line = serde_json::to_string(&event).unwrap_or_default();
                self.line(&line);
            } else if let Some(say) = words(&event, self.palette) {
                let head = format!("{} {} ", time(stored.at), short(event.thread));
                let left = self.width().saturating_sub(columns(&head));
                let line = format!("{}{}", self.palette.paint(Tone::Faint, &head), say(left));
                self.line(&line);
            }
        }
    }
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// The end of an id, which `show` and `approve` take too.
fn short(thread: ThreadId) -> String {
    let id = thread.to_string();
    id.get(id.len().saturating_sub(ENOUGH)..).unwrap_or_default().to_owned()
}

/// In UTC, as the journal is shown.
fn time(at: Timestamp) -> String {
    match jiff::Timestamp::from_millisecond(at.0) {
        Ok(time) => time.strftime("%T").to_string(),
        Err(_) => at.to_string(),
    }
}

/// Why, if somebody said so.
fn reason(text: &str) -> String {
    let text = one_line(text);
    if text.is_empty() { text } else { format!(": {text}") }
}

/// A line that is made once its width is known.
type Words = Box<dyn FnOnce(usize) -> String>;

fn plain(palette: Palette, tone: Tone, text: String) -> Words {
    Box::new(move |width| palette.paint(tone, &cut(&text, width)))
}

/// What people want to know of an event; nothing of most.
fn words(event: &ThreadEvent, palette: Palette) -> Option<Words> {
    let say = |tone: Tone, text: String| Some(plain(palette, tone, text));
    match &event.event {
        Event::Input { input, text } if input == "decision" => {
            say(Tone::Faint, format!("a person has decided{}", reason(text)))
        }
        Event::Input { input, text } => say(Tone::Plain, format!("▌ {input}: {}", one_line(text))),
        Event::ToolCall { tool, tool_call_id, .. } => {
            say(Tone::Faint, format!("→ {} ({tool_call_id})", one_line(tool)))
        }
        Event::ApprovalAsked { tool, tool_call_id, .. } => {
            let thread = short(event.thread);
            let tool = one_line(tool);
            let ask = format!("⚠ {tool} waits: systole approve {thread} {tool_call_id} [--deny]");
            say(Tone::Warm, ask)
        }
        Event::Observation { tool_call_id, code: Some(code), .. } => {
            say(Tone::Warm, format!("✗ call {tool_call_id}: {}", code.as_str().replace('_', " ")))
        }
        Event::RunFinished { .. } => {
            let finished = event.event.clone();
            Some(Box::new(move |width| {
                summary::lines(&finished, None, width, palette)
                    .into_iter()
                    .next()
                    .unwrap_or_default()
            }))
        }
        Event::Parked { parked, why } => {
            say(Tone::Bad, format!("! record {parked} was set aside: {}", one_line(why)))
        }
        Event::Restored { again, in_doubt, .. } => {
            say(Tone::Bad, restored_line(again.len(), in_doubt.len()))
        }
        Event::TurnStarted { .. }
        | Event::Checkpoint { .. }
        | Event::Delta { .. }
        | Event::DeadlinePassed { .. }
        | Event::Waiting { .. }
        | Event::WithoutMemory { .. }
        | Event::TurnCompleted { .. }
        | Event::TurnSealed { .. }
        | Event::ToolStarted { .. }
        | Event::ToolBarred { .. }
        | Event::Phase { .. }
        | Event::Observation { code: None, .. } => None,
    }
}

//! `systole threads`: all threads, newest first, one a line.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use planner_core::Thread;
use planner_core::next_turn::next_agent;
use planner_core::phase::phase;
use planner_core::thread::Logged;
use ports::journal::Journal;
use proto::event::Event;
use proto::fact::Outcome;
use proto::ids::AgentName;
use proto::time::Timestamp;
use serde_json::{Value, json};

use super::dev::find;
use super::{Context, print};
use crate::agent_files::{Disk, load};
use crate::arguments::{ThreadState, Threads};
use crate::failure::{Exit, Failure};
use crate::follow::Follower;
use crate::inputs::tenant;
use crate::screen::call_line::span;
use crate::screen::canvas::terminal_columns;
use crate::screen::human::alert_words;
use crate::screen::style::{Palette, Tone};
use crate::screen::text::{columns, cut, one_line};
use crate::shell;
use crate::wiring::{clock, is_alive, read_store};

/// The most threads that are looked at.
const MOST: usize = 1000;
/// The most that `show` lists.
const SHOWN: usize = 200;
/// The width where there is no terminal.
const PAGE: usize = 120;

/// Lists them.
pub(crate) async fn threads(context: &Context, asked: &Threads) -> Result<Exit, Failure> {
    let path = &context.common.store;
    if !path.exists() {
        let why = format!("{} does not exist: nothing has run here yet", path.display());
        return Err(Failure::not_found(why));
    }
    let journal = read_store(path)?;
    let most = usize::try_from(asked.limit).unwrap_or(MOST);
    let lives = is_alive(path).await;
    let wanted = |entry: &Entry| asked.state.is_empty() || asked.state.contains(&entry.state());
    let entries = entries(&journal, lives, most, wanted).await?;
    print(&listed(&entries, context, asked.json))?;
    Ok(Exit::Done)
}

/// The same for `show` without a thread.
pub(super) async fn all(
    context: &Context,
    journal: &Arc<dyn Journal>,
    json: bool,
) -> Result<String, Failure> {
    Ok(listed(
        &entries(journal, is_alive(&context.common.store).await, SHOWN, |_| true).await?,
        context,
        json,
    ))
}

struct Entry {
    thread: Thread,
    finished: Option<Event>,
    words: String,
    /// A process runs on the store.
    lives: bool,
}

async fn entries(
    journal: &Arc<dyn Journal>,
    lives: bool,
    most: usize,
    wanted: impl Fn(&Entry) -> bool,
) -> Result<Vec<Entry>, Failure> {
    let mut entries = Vec::new();
    for place in journal.threads(&tenant(), MOST).await? {
        let mut follower = Follower::new(Arc::clone(journal), place);
        let mut finished = None;
        follower
            .look(&mut |(event, _)| {
                if matches!(event.event, Event::RunFinished { .. }) {
                    finished = Some(event.event.clone());
                }
            })
            .await?;
        let thread = follower.thread().clone();
        let words = first_words(&thread);
        let entry = Entry { thread, finished, words, lives };
        if wanted(&entry) {
            entries.push(entry);
        }
        if entries.len() >= most {
            break;
        }
    }
    Ok(entries)
}

fn first_words(thread: &Thread) -> String {
    let logged = thread.log.iter().find_map(|logged| match logged {
        Logged::User { text, .. } => Some(text.as_str()),
        Logged::Note { .. } | Logged::Turn { .. } => None,
    });
    let unread = thread.unread.first().map(|unread| unread.message.text.as_str());
    let words = logged.or(unread).unwrap_or_default();
    one_line(&alert_words(words).unwrap_or_else(|| words.to_owned()))
}

impl Entry {
    fn state(&self) -> ThreadState {
        if !self.thread.is_at_rest() {
            let mut open = self.thread.open_calls();
            let waits = open.any(|call| call.asked.is_some() && call.decision.is_none());
            return match (waits, self.lives) {
                (true, _) => ThreadState::Waiting,
                (false, true) => ThreadState::Running,
                (false, false) => ThreadState::Interrupted,
            };
        }
        match &self.finished {
            Some(Event::RunFinished { outcome: Outcome::Answered, .. }) => ThreadState::Answered,
            Some(Event::RunFinished { outcome: Outcome::Failed, .. }) => ThreadState::Failed,
            Some(Event::RunFinished { outcome: Outcome::Stopped, .. }) => ThreadState::Stopped,
            Some(_) | None => ThreadState::Empty,
        }
    }

    fn turns(&self) -> u32 {
        match (&self.thread.run, &self.finished) {
            (Some(run), _) => run.turns,
            (None, Some(Event::RunFinished { turns, .. })) => *turns,
            (None, Some(_) | None) => 0,
        }
    }

    /// Its state and, while a run is not over, the phase of the run.
    fn standing(&self) -> String {
        let state = self.state().as_str();
        if self.thread.is_at_rest() {
            return state.to_owned();
        }
        format!("{state} {}", phase(&self.thread))
    }

    fn age(&self, now: Timestamp) -> String {
        age(now.since(self.thread.head.at))
    }

    fn agent(&self) -> String {
        next_agent(&self.thread).map_or_else(|| "-".to_owned(), |agent| agent.to_string())
    }
}

impl ThreadState {
    fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Waiting => "waiting",
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::Stopped => "stopped",
            Self::Empty => "empty",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::Running | Self::Interrupted | Self::Waiting => Tone::Warm,
            Self::Answered => Tone::Good,
            Self::Failed | Self::Stopped => Tone::Bad,
            Self::Empty => Tone::Plain,
        }
    }
}

fn listed(entries: &[Entry], context: &Context, json: bool) -> String {
    let lines: Vec<String> = if json {
        entries.iter().map(|entry| as_json(entry).to_string()).collect()
    } else if entries.is_empty() {
        vec!["no threads".to_owned()]
    } else {
        let mut lines = table(entries, clock().now(), width(), context.palette());
        let left = entries.iter().find(|entry| entry.state() == ThreadState::Interrupted);
        lines.extend(left.map(|entry| interrupted(context, &entry.thread)));
        lines
    };
    lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect()
}

/// What to do about a run that no process goes on with.
pub(super) fn interrupted(context: &Context, thread: &Thread) -> String {
    let id = thread.place.thread;
    let file = next_agent(thread).and_then(|agent| file_of(context, &agent));
    let or = file.map_or_else(String::new, |file| {
        let command = format!("run {} --thread {id}", shell::word(file));
        format!(", or with `{}`", context.same_store(&command))
    });
    format!("interrupted: nothing runs on this store; go on with the command that began it{or}")
}

/// The agent's file, if it is one of those found here.
pub(super) fn file_of(context: &Context, agent: &AgentName) -> Option<PathBuf> {
    let is_its = |path: &PathBuf| {
        load(&Disk, path, &context.environment).is_ok_and(|loaded| loaded.agent.name == *agent)
    };
    find::files(&[]).unwrap_or_default().into_iter().find(is_its)
}

fn width() -> usize {
    if io::stdout().is_terminal() { terminal_columns().saturating_sub(1) } else { PAGE }
}

/// Below this many columns the end of an id has to do.
const NARROW: usize = 60;
/// Characters of an id that tell it from others.
const ENOUGH: usize = 8;

/// How wide each column is.
struct Widths {
    agent: usize,
    state: usize,
    age: usize,
    all: usize,
}

fn table(entries: &[Entry], now: Timestamp, width: usize, palette: Palette) -> Vec<String> {
    let widest = |of: &dyn Fn(&Entry) -> String| {
        entries.iter().map(|entry| columns(&of(entry))).max().unwrap_or(0)
    };
    let widths = Widths {
        agent: widest(&Entry::agent).min(16),
        state: widest(&Entry::standing),
        age: widest(&|entry| entry.age(now)),
        all: width,
    };
    entries.iter().map(|entry| as_text(entry, now, &widths, palette)).collect()
}

fn as_text(entry: &Entry, now: Timestamp, widths: &Widths, palette: Palette) -> String {
    let pad = |text: &str, to: usize| " ".repeat(to.saturating_sub(columns(text)));
    let (standing, age) = (entry.standing(), entry.age(now));
    let agent = cut(&entry.agent(), widths.agent);
    let turns = format!("{:>2} t", entry.turns());
    let id = entry.thread.place.thread.to_string();
    // Enough of it for every command that takes a thread.
    let shown = if widths.all < NARROW { id.len().saturating_sub(ENOUGH) } else { 0 };
    let id = id.get(shown..).unwrap_or_default();
    let taken = [columns(id), widths.agent, widths.state, columns(&turns), widths.age, 10];
    let left = widths.all.saturating_sub(taken.into_iter().sum());
    let line = format!(
        "{}  {agent}{}  {}{}  {turns}  {}{}  {}",
        id,
        pad(&agent, widths.agent),
        palette.paint(entry.state().tone(), &standing),
        pad(&standing, widths.state),
        pad(&age, widths.age),
        palette.paint(Tone::Faint, &age),
        cut(&entry.words, left),
    );
    line.trim_end().to_owned()
}

/// A span in one short word.
fn age(span_: std::time::Duration) -> String {
    match span_.as_secs() {
        0 => span(span_),
        seconds @ 1..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min", seconds / 60),
        seconds @ 3600..86_400 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

fn as_json(entry: &Entry) -> Value {
    json!({
        "thread": entry.thread.place.thread,
        "agent": next_agent(&entry.thread),
        "state": entry.state().as_str(),
        "phase": phase(&entry.thread).as_str(),
        "unfinished": !entry.thread.is_at_rest(),
        "turns": entry.turns(),
        "runs": entry.thread.runs,
        "last_at": entry.thread.head.at,
        "finished": entry.finished,
        "text": entry.words,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn ages_are_short() {
        let told = [999, 59_000, 61_000, 7_300_000, 200_000_000].map(Duration::from_millis);
        assert_eq!(told.map(age), ["999 ms", "59 s", "1 min", "2 h", "2 d"]);
    }
}

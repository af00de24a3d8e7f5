//! All threads, newest first, one a line.

use std::sync::Arc;

use planner_core::Thread;
use planner_core::next_turn::next_agent;
use planner_core::phase::phase;
use planner_core::thread::Logged;
use ports::journal::Journal;
use proto::event::Event;
use proto::time::Timestamp;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::follow::Follower;
use crate::inputs::tenant;
use crate::screen::call_line::span;
use crate::screen::style::{Palette, Tone};
use crate::screen::summary::outcome_word;
use crate::screen::text::{columns, cut, one_line};

/// The most threads that are listed.
const MOST: usize = 200;

struct Entry {
    thread: Thread,
    finished: Option<Event>,
    words: String,
}

/// The list.
pub(super) async fn text(
    journal: &Arc<dyn Journal>,
    now: Timestamp,
    json: bool,
    palette: Palette,
) -> Result<String, Failure> {
    let mut text = String::new();
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
        let entry = Entry { thread, finished, words };
        let line = if json { as_json(&entry).to_string() } else { as_text(&entry, now, palette) };
        text.push_str(&line);
        text.push('\n');
    }
    if text.is_empty() && !json {
        text.push_str("no threads yet\n");
    }
    Ok(text)
}

fn first_words(thread: &Thread) -> String {
    let logged = thread.log.iter().find_map(|logged| match logged {
        Logged::User { text, .. } => Some(text.as_str()),
        Logged::Note { .. } | Logged::Turn { .. } => None,
    });
    let unread = thread.unread.first().map(|unread| unread.message.text.as_str());
    one_line(logged.or(unread).unwrap_or_default())
}

fn state(entry: &Entry) -> (String, Tone) {
    if !entry.thread.is_at_rest() {
        return (format!("unfinished: {}", phase(&entry.thread)), Tone::Warm);
    }
    match &entry.finished {
        Some(Event::RunFinished { outcome, .. }) => {
            let tone =
                if *outcome == proto::fact::Outcome::Answered { Tone::Good } else { Tone::Bad };
            (outcome_word(*outcome).to_owned(), tone)
        }
        Some(_) | None => ("at rest".to_owned(), Tone::Plain),
    }
}

fn as_text(entry: &Entry, now: Timestamp, palette: Palette) -> String {
    let (state, tone) = state(entry);
    let agent = next_agent(&entry.thread).map_or_else(|| "-".to_owned(), |agent| agent.to_string());
    let age = format!("{} ago", span(now.since(entry.thread.head.at)));
    let pad = |text: &str, to: usize| " ".repeat(to.saturating_sub(columns(text)));
    format!(
        "{}  {}{}  {}{}  {}{}  {}",
        entry.thread.place.thread,
        cut(&agent, 12),
        pad(&agent, 12),
        palette.paint(tone, &state),
        pad(&state, 10),
        palette.paint(Tone::Faint, &age),
        pad(&age, 14),
        cut(&entry.words, 60)
    )
}

fn as_json(entry: &Entry) -> Value {
    json!({
        "thread": entry.thread.place.thread,
        "agent": next_agent(&entry.thread),
        "phase": phase(&entry.thread).as_str(),
        "unfinished": !entry.thread.is_at_rest(),
        "runs": entry.thread.runs,
        "last_at": entry.thread.head.at,
        "finished": entry.finished,
        "text": entry.words,
    })
}

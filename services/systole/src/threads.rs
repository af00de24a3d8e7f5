//! Finding threads: by what a person types, and the unfinished ones of an agent.

use std::sync::Arc;

use planner_core::Thread;
use planner_core::next_turn::next_agent;
use planner_core::thread::Logged;
use ports::journal::Journal;
use proto::ids::{AgentName, ThreadId, ThreadRef};

use crate::failure::Failure;
use crate::follow::fold;
use crate::inputs::tenant;

/// The most threads that are looked at.
const MOST: usize = 1000;

/// The thread that a word means: an id, the end of one, or `last`.
pub(crate) async fn find(journal: &Arc<dyn Journal>, word: &str) -> Result<ThreadRef, Failure> {
    let all = journal.threads(&tenant(), MOST).await?;
    if word == "last" {
        let newest = all.into_iter().next();
        return newest.ok_or_else(|| Failure::not_found("the store has no thread yet"));
    }
    let wanted = word.to_ascii_uppercase();
    let id = wanted.parse::<ThreadId>().ok();
    let fits = |place: &ThreadRef| match id {
        Some(id) => place.thread == id,
        None => wanted.len() >= 4 && place.thread.to_string().ends_with(&wanted),
    };
    let mut fitting = all.into_iter().filter(fits);
    match (fitting.next(), fitting.next()) {
        (Some(place), None) => Ok(place),
        (Some(_), Some(_)) => Err(Failure::input(format!("`{word}` fits several threads"))),
        (None, _) => {
            let why = format!("there is no thread `{word}`; `systole show` lists them all");
            Err(Failure::not_found(why))
        }
    }
}

/// The newest unfinished thread of an agent that `wanted` agrees to.
pub(crate) async fn unfinished(
    journal: &Arc<dyn Journal>,
    agent: &AgentName,
    wanted: impl Fn(&Thread) -> bool,
) -> Result<Option<Thread>, Failure> {
    for place in journal.threads(&tenant(), MOST).await? {
        let thread = fold(journal, &place).await?;
        let is_its = next_agent(&thread).as_ref() == Some(agent);
        if is_its && !thread.is_at_rest() && wanted(&thread) {
            return Ok(Some(thread));
        }
    }
    Ok(None)
}

/// The words that the unfinished run of a thread is about.
pub(crate) fn words(thread: &Thread) -> Option<&str> {
    let run = thread.run.as_ref().map(|run| run.number);
    let read = thread.log.iter().find_map(|logged| match logged {
        Logged::User { run: of, text } if Some(*of) == run => Some(text.as_str()),
        Logged::User { .. } | Logged::Note { .. } | Logged::Turn { .. } => None,
    });
    read.or_else(|| thread.unread.first().map(|unread| unread.message.text.as_str()))
}

//! Finding threads: by what a person types, and the unfinished ones of an agent.

use std::sync::Arc;

use planner_core::Thread;
use planner_core::thread::Logged;
use ports::journal::Journal;
use proto::ids::{ThreadId, ThreadRef};

use crate::failure::Failure;
use crate::inputs::tenant;

/// The most threads that are looked at.
pub(crate) const MOST: usize = 1000;

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

/// The words that the unfinished run of a thread is about.
pub(crate) fn words(thread: &Thread) -> Option<&str> {
    let run = thread.run.as_ref().map(|run| run.number);
    let read = thread.log.iter().find_map(|logged| match logged {
        Logged::User { run: of, text } if Some(*of) == run => Some(text.as_str()),
        Logged::User { .. } | Logged::Note { .. } | Logged::Turn { .. } => None,
    });
    read.or_else(|| thread.unread.first().map(|unread| unread.message.text.as_str()))
}

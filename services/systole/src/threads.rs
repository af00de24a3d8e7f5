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
/// The shortest end of an id that is looked for.
const SHORTEST: usize = 4;
/// Ids that are named when several fit.
const NAMED: usize = 5;

/// The thread that a word means: an id, the end of one, or `last`.
pub(crate) async fn find(journal: &Arc<dyn Journal>, word: &str) -> Result<ThreadRef, Failure> {
    let all = journal.threads(&tenant(), MOST).await?;
    if word == "last" {
        let newest = all.into_iter().next();
        return newest.ok_or_else(|| Failure::not_found("the store has no thread yet"));
    }
    let wanted = word.to_ascii_uppercase();
    let id = wanted.parse::<ThreadId>().ok();
    if id.is_none() && wanted.len() < SHORTEST {
        let why = format!("`{word}` is too short to tell one thread from the others");
        return Err(Failure::input(why).and(format!(
            "Type the last {SHORTEST} characters of its id or more, the whole id, or `last`; \
             `systole threads` lists the ids."
        )));
    }
    let fits = |place: &ThreadRef| match id {
        Some(id) => place.thread == id,
        None => place.thread.to_string().ends_with(&wanted),
    };
    let fitting: Vec<ThreadRef> = all.into_iter().filter(fits).collect();
    match fitting.as_slice() {
        [place] => Ok(place.clone()),
        [] => Err(Failure::not_found(format!("there is no thread `{word}`"))
            .and("An id is told by its end; `systole threads` lists the ids.")),
        several => Err(ambiguous(word, several)),
    }
}

fn ambiguous(word: &str, fitting: &[ThreadRef]) -> Failure {
    let mut names: Vec<String> =
        fitting.iter().take(NAMED).map(|place| place.thread.to_string()).collect();
    if fitting.len() > NAMED {
        names.push("…".to_owned());
    }
    let why = format!("`{word}` is the end of {} ids: {}", fitting.len(), names.join(", "));
    Failure::input(why).and("Type one more character of the end of the one that is meant.")
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

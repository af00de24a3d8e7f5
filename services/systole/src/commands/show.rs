//! `systole show`: threads, a transcript, a journal, a model request. Reads only, so it works
//! while another process runs on the store.

mod journal;
mod prompt;

use std::sync::Arc;

use planner_core::Thread;
use planner_core::thread::{Call, StartState};
use ports::journal::Journal;
use proto::ids::ThreadRef;
use proto::tool::Effect;

use super::{Context, print, threads};
use crate::arguments::Show;
use crate::failure::{Exit, Failure};
use crate::follow::Follower;
use crate::screen::View;
use crate::screen::canvas::Canvas;
use crate::screen::human::HumanView;
use crate::screen::json::JsonView;
use crate::screen::text::one_line;
use crate::threads::find;
use crate::wiring::{is_alive, read_store};

/// Shows what is asked for.
pub(crate) async fn show(context: &Context, show: &Show) -> Result<Exit, Failure> {
    let path = &context.common.store;
    if !path.exists() {
        let why = format!("{} does not exist: nothing has run here yet", path.display());
        return Err(Failure::not_found(why));
    }
    let journal = read_store(path)?;
    let text = match &show.thread {
        None if show.prompt || show.journal => {
            find_and_tell(context, show, &journal, "last").await?
        }
        None => threads::all(context, &journal, show.json).await?,
        Some(word) => find_and_tell(context, show, &journal, word).await?,
    };
    print(&text).map(|()| Exit::Done)
}

async fn find_and_tell(
    context: &Context,
    show: &Show,
    journal: &Arc<dyn Journal>,
    word: &str,
) -> Result<String, Failure> {
    let place = find(journal, word).await?;
    if show.prompt {
        return prompt::text(context, journal, &place, show).await;
    }
    if show.journal {
        return journal::text(journal, &place, show.json, context.palette()).await;
    }
    transcript(context, journal, &place, show.json).await
}

/// The thread as it was seen while it ran.
async fn transcript(
    context: &Context,
    journal: &Arc<dyn Journal>,
    place: &ThreadRef,
    json: bool,
) -> Result<String, Failure> {
    let mut text = Vec::new();
    {
        let mut view: Box<dyn View + '_> = if json {
            Box::new(JsonView::new(&mut text))
        } else {
            Box::new(HumanView::new(Canvas::new(&mut text, None), context.palette()).whole())
        };
        let mut follower = Follower::new(Arc::clone(journal), place.clone());
        let mut tell = |(event, thread): crate::follow::Told<'_>| {
            // Writing to memory cannot fail.
            view.event(event, thread).unwrap_or_default();
        };
        follower.look(&mut tell).await?;
        if !json && !follower.thread().is_at_rest() {
            let is_up = is_alive(&context.common.store).await;
            let mut lines = standing(follower.thread(), is_up);
            if !is_up {
                lines.push(threads::interrupted(context, follower.thread()));
            }
            for words in lines {
                view.note(&words).unwrap_or_default();
            }
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// What an unfinished run waits for, a line each.
fn standing(thread: &Thread, is_up: bool) -> Vec<String> {
    let calls = thread.open_calls();
    let mut lines: Vec<String> = calls.map(|call| waits(thread, call, is_up)).collect();
    if lines.is_empty() {
        lines.push(match thread.run.as_ref().map(|run| run.open.is_some()) {
            Some(true) if is_up => "… not finished: the model is asked".to_owned(),
            Some(true) => "… not finished: the model was being asked".to_owned(),
            Some(false) | None => "… not finished".to_owned(),
        });
    }
    lines
}

/// A question that was answered is no longer what the call waits for.
fn waits(thread: &Thread, call: &Call, is_up: bool) -> String {
    let (tool, id) = (one_line(&call.requested.tool), call.id());
    let effect = call.requested.terms.as_ref().map(|terms| terms.effect);
    let has_begun = matches!(call.start, StartState::Started { .. });
    if call.asked.is_some() && call.decision.is_none() {
        let thread = thread.place.thread;
        format!("… {tool} waits for your approval: systole approve {thread} {id} [--deny]")
    } else if has_begun && effect == Some(Effect::Checkable) {
        format!(
            "… {tool} ({id}) has begun; if its process is gone it waits to be checked, not approved"
        )
    } else if has_begun || call.dispatched.is_some() {
        let how = if is_up { "is under way" } else { "was under way" };
        format!("… {tool} ({id}) {how}")
    } else {
        format!("… {tool} ({id}) is not sent yet")
    }
}

#[cfg(test)]
mod tests {
    use proto::ids::{Partition, TenantId, ThreadId, ThreadRef};

    use super::*;

    #[test]
    fn a_thread_without_a_run_waits_for_nothing_that_has_a_name() {
        let (tenant, thread) = (TenantId::new("default").unwrap(), ThreadId::from_parts(1, 1));
        let thread = Thread::new(ThreadRef { partition: Partition(0), tenant, thread });
        assert_eq!(standing(&thread, true), ["… not finished"]);
    }
}

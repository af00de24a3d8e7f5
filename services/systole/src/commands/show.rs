//! `systole show`: threads, a transcript, a journal, a model request. Reads only, so it works
//! while another process runs on the store.

mod journal;
mod prompt;

use std::sync::Arc;

use ports::journal::Journal;
use proto::ids::ThreadRef;

use super::{Context, print, threads};
use crate::arguments::Show;
use crate::failure::{Exit, Failure};
use crate::follow::Follower;
use crate::screen::View;
use crate::screen::canvas::Canvas;
use crate::screen::human::HumanView;
use crate::screen::json::JsonView;
use crate::threads::find;
use crate::wiring::read_store;

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
            view.note("… not finished").unwrap_or_default();
        }
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

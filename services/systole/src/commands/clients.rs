//! `systole send` and `systole tail`: an input into a distributed deployment, and what comes of it,
//! straight over its bus.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use ports::BusError;
use proto::event::Event;
use proto::ids::{Sequence, ThreadRef};
use proto::input::{InputBody, Message};
use serde_json::json;

use super::Context;
use crate::arguments::{BusFlags, Send, Tail};
use crate::failure::{Exit, Failure};
use crate::follow::{Follower, Told, fold};
use crate::inputs;
use crate::interrupts::Interrupts;
use crate::nodes::kill::KillSwitch;
use crate::nodes::settings::BusSettings;
use crate::nodes::sources;
use crate::screen::View;
use crate::threads::find;
use crate::wiring::servers::Servers;

/// The largest text.
const LARGEST: u64 = 512 * 1024;
/// Pause after a look that the bus did not answer.
const AGAIN: Duration = Duration::from_millis(500);

/// Sends an input; follows the thread if that is asked for.
pub(crate) async fn send(context: &Context, send: &Send) -> Result<Exit, Failure> {
    let text = text(&send.text)?;
    let (settings, servers) = connect(context, &send.bus).await?;
    let ports = servers.ports();
    let thread = send.thread.unwrap_or_else(|| ports.ids.thread_id(ports.clock.now()));
    let place = inputs::place_in(thread, settings.partitions);
    if send.thread.is_some() && fold(&ports.journal, &place).await?.head.sequence == Sequence::NONE
    {
        return Err(Failure::not_found(format!("there is no thread {thread}")));
    }
    let key = send.key.clone().unwrap_or_else(|| inputs::fresh_key(ports.ids.as_ref()));
    let message = Message {
        text,
        agent: send.agent.clone(),
        approve: send.approve.clone(),
        complexity: send.complexity,
    };
    let body = InputBody::Message(message);
    let ids = ports.ids.as_ref();
    let at = inputs::append(&ports.journal, ids, &place, key, body).await?;
    if send.follow {
        return follow(context, &servers, place, at, send.json).await;
    }
    let line = if send.json {
        json!({"thread": thread, "sequence": at}).to_string()
    } else {
        thread.to_string()
    };
    // Nobody is left to read it: the input is accepted all the same.
    writeln!(io::stdout(), "{line}").unwrap_or_default();
    Ok(Exit::Done)
}

/// Shows a thread from its first record until its run is over.
pub(crate) async fn tail(context: &Context, tail: &Tail) -> Result<Exit, Failure> {
    let (_, servers) = connect(context, &tail.bus).await?;
    let place = find(&servers.ports().journal, &tail.thread).await?;
    follow(context, &servers, place, Sequence::NONE, tail.json).await
}

async fn connect(context: &Context, flags: &BusFlags) -> Result<(BusSettings, Servers), Failure> {
    let found = sources::find(flags.config.as_deref(), &context.environment, &flags.given())?;
    let settings = found.read(BusSettings::read)?;
    let servers = Servers::connect(&settings, "client", &KillSwitch::default()).await?;
    Ok((settings, servers))
}

fn text(given: &str) -> Result<String, Failure> {
    let mut text = given.to_owned();
    if given == "-" {
        text.clear();
        let read = io::stdin().take(LARGEST.saturating_add(1)).read_to_string(&mut text);
        read.map_err(|error| Failure::input(format!("standard input: {error}")))?;
    }
    if text.trim().is_empty() {
        return Err(Failure::input("the text is empty"));
    }
    if u64::try_from(text.len()).unwrap_or(u64::MAX) > LARGEST {
        return Err(Failure::input(format!("the text is longer than {LARGEST} bytes")));
    }
    Ok(text)
}

/// Shows what comes after `from` until the thread is at rest. While the bus is away it waits: what
/// was accepted goes on by itself.
async fn follow(
    context: &Context,
    servers: &Servers,
    place: ThreadRef,
    from: Sequence,
    json: bool,
) -> Result<Exit, Failure> {
    let mut interrupts =
        Interrupts::listen().map_err(|error| Failure::other("signals cannot be heard", error))?;
    let ports = servers.ports();
    let follower = Follower::new(Arc::clone(&ports.journal), place);
    let mut follower = follower.with_live(ports.live.as_ref()).await?;
    let mut view = context.view(json);
    let mut shown = Shown { view: view.as_mut(), from, last: None, closed: false };
    loop {
        let mut tell = |told: Told<'_>| shown.tell(told);
        let looked = tokio::select! {
            biased;
            () = interrupts.asked() => return Ok(Exit::Interrupted),
            looked = follower.next(&mut tell) => looked,
        };
        match looked {
            Ok(()) => {}
            Err(error @ BusError::Unavailable(_)) => {
                tracing::warn!(%error, "the bus does not answer; the thread goes on without us");
                tokio::time::sleep(AGAIN).await;
            }
            Err(error) => return Err(error.into()),
        }
        if shown.closed {
            return Ok(Exit::Interrupted);
        }
        if let Some(exit) = shown.last.filter(|_| follower.thread().is_at_rest()) {
            return Ok(exit);
        }
    }
}

struct Shown<'a> {
    view: &'a mut dyn View,
    from: Sequence,
    last: Option<Exit>,
    closed: bool,
}

impl Shown<'_> {
    fn tell(&mut self, (event, thread): Told<'_>) {
        if event.sequence < self.from || self.closed {
            return;
        }
        if let Event::RunFinished { outcome, .. } = &event.event {
            self.last = Some(Exit::from(*outcome));
        }
        self.closed = self.view.event(event, thread).is_err();
    }
}

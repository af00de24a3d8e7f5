//! One watched run: events to the view, questions to the person, signals to the engine, until the
//! thread is at rest.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use planner_core::thread::Call;
use ports::BusError;
use ports::clock::Clock;
use ports::journal::Journal;
use proto::event::Event;
use proto::ids::{Sequence, ToolCallId, ToolName};
use proto::input::Decision;
use tokio::sync::watch;

use crate::engine::Engine;
use crate::failure::{Exit, Failure};
use crate::follow::{Follower, Told, fold};
use crate::inputs::Inbox;
use crate::interrupts::Interrupts;
use crate::notices::Notices;
use crate::person::{Answer, Person};
use crate::screen::View;

/// How often an open question is compared with the journal.
const STILL_OPEN: Duration = Duration::from_millis(500);

/// How watching ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The run is over, and its end was shown.
    Finished(Exit),
    /// The run is over, and nobody reads what is printed: its end is still to be shown.
    Unseen(Exit),
    /// A signal asked for the end; the run is saved.
    Interrupted,
    /// Nobody reads what is printed.
    PipeClosed,
}

/// What a session needs.
pub(crate) struct Parts {
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    /// Where a person's word goes.
    pub(crate) inbox: Box<dyn Inbox>,
    pub(crate) follower: Follower,
    pub(crate) view: Box<dyn View>,
    /// Tools whose calls are approved without a question.
    pub(crate) approve: Vec<ToolName>,
    /// What is older was shown before.
    pub(crate) shown_to: Sequence,
    /// The end of a run that lies before this is not the end that is waited for.
    pub(crate) ends_after: Sequence,
    /// Goes on with the run.
    pub(crate) command: String,
    /// Whether a person may be asked.
    pub(crate) may_ask: bool,
    /// What is said inside.
    pub(crate) notices: Notices,
    /// Present when another process runs the thread.
    pub(crate) attached: Option<Attached>,
}

/// The process that runs a thread for this one.
pub(crate) struct Attached {
    /// Its id.
    pub(crate) pid: u32,
    /// False once it is gone.
    pub(crate) lives: watch::Receiver<bool>,
}

/// One watched run.
pub(crate) struct Session {
    parts: Parts,
    person: Option<Person>,
    asked: BTreeSet<ToolCallId>,
    seen: Seen,
}

/// What was told of the end.
#[derive(Debug, Default)]
struct Seen {
    /// How the newest run ended.
    last: Option<Exit>,
    /// The thread was at rest then: what comes later belongs to no run that is watched.
    is_over: bool,
    /// Nobody reads: nothing more is printed.
    is_closed: bool,
}

/// Why a look at the thread did not go well.
enum Trouble {
    Store(BusError),
    Output(io::Error),
}

impl From<BusError> for Trouble {
    fn from(error: BusError) -> Self {
        Self::Store(error)
    }
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

impl Session {
    pub(crate) fn new(parts: Parts) -> Self {
        let person = if parts.may_ask { Person::present() } else { None };
        Self { parts, person, asked: BTreeSet::new(), seen: Seen::default() }
    }

    /// Watches until the end and stops the engine.
    pub(crate) async fn watch(
        &mut self,
        engine: &mut Engine,
        interrupts: &mut Interrupts,
    ) -> Result<Ending, Failure> {
        let ending = match self.until_rest(engine, interrupts).await {
            Ok(ending) => ending,
            Err(Trouble::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Ending::PipeClosed
            }
            Err(trouble) => {
                engine.stop().await;
                // The first trouble is the cause; what is seen here may only follow from it.
                let cause = engine.trouble().map(Trouble::Store);
                return Err(self.failure(cause.unwrap_or(trouble)));
            }
        };
        match ending {
            Ending::Finished(_) | Ending::Unseen(_) => engine.stop().await,
            Ending::PipeClosed => {
                engine.stop().await;
                return Ok(self.last_look().await.unwrap_or(Ending::PipeClosed));
            }
            Ending::Interrupted if self.parts.attached.is_some() => {
                return Ok(self.last_look().await.unwrap_or_else(|| self.detach()));
            }
            Ending::Interrupted => return Ok(self.wind_down(engine).await),
        }
        Ok(ending)
    }

    fn failure(&self, trouble: Trouble) -> Failure {
        match trouble {
            Trouble::Store(error) => error.into(),
            Trouble::Output(error) => Failure {
                exit: Exit::Interrupted,
                ..Failure::other("standard output", error)
                    .and(format!("The run is saved; go on with: {}", self.parts.command))
            },
        }
    }

    /// The view, for closing words.
    pub(crate) fn view(&mut self) -> &mut dyn View {
        self.parts.view.as_mut()
    }

    async fn until_rest(
        &mut self,
        engine: &Engine,
        interrupts: &mut Interrupts,
    ) -> Result<Ending, Trouble> {
        loop {
            self.look().await?;
            if let Some(ending) = self.over() {
                return Ok(ending);
            }
            if let Some(error) = engine.trouble() {
                return Err(Trouble::Store(error));
            }
            if interrupts.is_asked() {
                return Ok(Ending::Interrupted);
            }
            let lives = self.parts.attached.as_ref().is_none_or(|holder| *holder.lives.borrow());
            if !lives {
                return Ok(Ending::Interrupted);
            }
            tokio::select! {
                biased;
                () = interrupts.asked() => return Ok(Ending::Interrupted),
                decided = self.decide_open_questions() => decided?,
            }
        }
    }

    /// Waits for a moment, or for live text, and shows what is new.
    async fn look(&mut self) -> Result<(), Trouble> {
        self.show(true).await
    }

    async fn show(&mut self, waits: bool) -> Result<(), Trouble> {
        let Self { parts, seen, .. } = self;
        let (shown_to, ends_after) = (parts.shown_to, parts.ends_after);
        let (view, mut closed) = (&mut parts.view, None);
        let mut tell = |(event, thread): Told<'_>| {
            // What follows the end, such as a late result, would hide it; `show` has it.
            if event.sequence <= shown_to || seen.is_over {
                return;
            }
            if !seen.is_closed {
                closed = view.event(event, thread).err();
                seen.is_closed = closed.is_some();
            }
            if let Event::RunFinished { outcome, .. } = &event.event
                && event.sequence > ends_after
            {
                seen.last = Some(Exit::from(*outcome));
                seen.is_over = thread.is_at_rest();
            }
        };
        if waits {
            parts.follower.next(&mut tell).await?;
        } else {
            parts.follower.look(&mut tell).await?;
        }
        if let Some(error) = closed {
            return Err(error.into());
        }
        if !seen.is_closed && !seen.is_over {
            for words in parts.notices.take() {
                view.notice(&words)?;
            }
            view.tick(parts.clock.now())?;
        }
        Ok(())
    }

    /// How the run ended, if it did.
    fn over(&self) -> Option<Ending> {
        let is_over = self.seen.is_over || self.parts.follower.thread().is_at_rest();
        let exit = self.seen.last.filter(|_| is_over)?;
        Some(if self.seen.is_closed { Ending::Unseen(exit) } else { Ending::Finished(exit) })
    }

    /// What was finished in the last moment lies in the journal, shown or not.
    async fn last_look(&mut self) -> Option<Ending> {
        // A reader that went away just now is noted, and so does not hide the end.
        if let Err(Trouble::Store(error)) = self.show(false).await {
            tracing::warn!(%error, "the journal could not be read once more");
        }
        self.over()
    }

    async fn decide_open_questions(&mut self) -> Result<(), Trouble> {
        while let Some(call) = self.next_question() {
            self.asked.insert(call.id().clone());
            self.decide(&call).await?;
        }
        Ok(())
    }

    /// A call that waits for a word and was not asked about.
    fn next_question(&self) -> Option<Call> {
        let mut open = self.parts.follower.thread().open_calls();
        open.find(|call| {
            call.asked.is_some() && call.decision.is_none() && !self.asked.contains(call.id())
        })
        .cloned()
    }

    async fn decide(&mut self, call: &Call) -> Result<(), Trouble> {
        let tool = call.requested.tool.clone();
        if self.parts.approve.iter().any(|approved| approved.as_str() == tool) {
            return self.say(call, true, "--approve", "").await;
        }
        if self.person.is_none() && self.parts.attached.is_some() {
            return self.leave_open(call);
        }
        if let Some(person) = &mut self.person {
            person.begin();
        }
        let now = self.parts.clock.now();
        if self.person.is_none() || !self.parts.view.ask(call, now)? {
            let note = format!(
                "There is no terminal to ask a person, so nobody agreed. `--approve {tool}` agrees beforehand."
            );
            return self.say(call, false, "no terminal", &note).await;
        }
        let (agrees, note) = match self.answer(call).await? {
            // Settled otherwise, which is shown as it comes.
            None => return Ok(()),
            Some(Answer::Yes) => (true, ""),
            Some(Answer::No) => (false, "The person at the terminal said no."),
            Some(Answer::Ended) => {
                self.parts.view.note("no answer: input ended")?;
                return self.say(call, false, "terminal", "No answer: the input ended.").await;
            }
        };
        self.parts.view.answered();
        self.say(call, agrees, "terminal", note).await
    }

    /// The person's answer; none when the question was settled otherwise.
    async fn answer(&mut self, call: &Call) -> Result<Option<Answer>, Trouble> {
        let Some(person) = &mut self.person else { return Ok(Some(Answer::Ended)) };
        loop {
            if let Ok(answer) = tokio::time::timeout(STILL_OPEN, person.answer()).await {
                return Ok(Some(answer));
            }
            let place = &self.parts.follower.thread().place;
            let thread = fold(&self.parts.journal, place).await?;
            let now = thread.calls.get(call.id());
            if now.is_none_or(|now| now.closed.is_some() || now.decision.is_some()) {
                return Ok(None);
            }
        }
    }

    async fn say(&self, call: &Call, approve: bool, by: &str, note: &str) -> Result<(), Trouble> {
        let Some(asked) = &call.asked else { return Ok(()) };
        let decision = Decision {
            tool_call_id: call.id().clone(),
            approve,
            arguments_hash: asked.arguments_hash.clone(),
            fingerprint: Some(asked.fingerprint.clone()),
            by: by.to_owned(),
            note: note.to_owned(),
        };
        let place = &self.parts.follower.thread().place;
        self.parts.inbox.decide(place, decision).await?;
        Ok(())
    }

    /// The process that runs the thread stays, so somebody else may still decide.
    fn leave_open(&mut self, call: &Call) -> Result<(), Trouble> {
        let thread = self.parts.follower.thread().place.thread;
        let note = format!("  waits for a word: systole approve {thread} {} [--deny]", call.id());
        self.parts.view.note(&note)?;
        Ok(())
    }

    /// Leaves a run that another process goes on with, or did.
    fn detach(&mut self) -> Ending {
        let Parts { attached, view, follower, command, .. } = &mut self.parts;
        let Some(holder) = attached else { return Ending::Interrupted };
        let lives = *holder.lives.borrow();
        let words = if lives { "goes on with this run" } else { "ran this and is gone" };
        let note = format!("\nthe dev with process id {} {words}", holder.pid);
        let told = view.note(&note).and_then(|()| view.left(follower.thread(), command));
        if told.is_ok() { Ending::Interrupted } else { Ending::PipeClosed }
    }

    /// Shows what still happens while the engine lets go of its work.
    async fn wind_down(&mut self, engine: &mut Engine) -> Ending {
        let note = "\nstopping: what is under way is finished first; Ctrl-C again stops at once";
        self.seen.is_closed |= self.parts.view.note(note).is_err();
        let stopping = engine.stop();
        tokio::pin!(stopping);
        let mut looks = true;
        loop {
            tokio::select! {
                biased;
                () = &mut stopping => break,
                looked = self.look(), if looks => looks = looked.is_ok(),
            }
        }
        if let Some(ending) = self.last_look().await {
            return ending;
        }
        let thread = self.parts.follower.thread();
        let is_closed =
            self.seen.is_closed || self.parts.view.left(thread, &self.parts.command).is_err();
        if is_closed { Ending::PipeClosed } else { Ending::Interrupted }
    }
}

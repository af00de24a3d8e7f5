//! From an agent to its end: opens the store, starts planner and worker, gives or finds the input,
//! watches, and lets go.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use planner_core::Thread;
use planner_core::next_turn::next_agent;
use ports::BusError;
use ports::journal::Journal;
use proto::call::ToolCall;
use proto::fact::Fact;
use proto::ids::{AgentName, InputKey, Sequence, ThreadRef, ToolName};
use proto::input::{InputBody, Message};
use proto::record::Record;
use tokio::sync::watch;

use crate::agent_files::LoadedAgent;
use crate::arguments::Common;
use crate::control::{Door, Fresh, Holder, Known, Role, Status};
use crate::engine::Engine;
use crate::failure::{Exit, Failure};
use crate::follow::{Follower, fold};
use crate::inputs::{self, OwnInbox};
use crate::interrupts::Interrupts;
use crate::remembered::Remembered;
use crate::screen::View;
use crate::session::{Ending, Parts, Session};
use crate::settings::Environment;
use crate::staff::{Hands, Member, Staff};
use crate::threads::words;
use crate::wiring::{ChosenModel, Store};

/// What to run and how.
pub(crate) struct Launch<'a> {
    pub(crate) common: &'a Common,
    pub(crate) environment: &'a Environment,
    pub(crate) loaded: &'a LoadedAgent,
    pub(crate) model: &'a ChosenModel,
    pub(crate) approve: &'a [ToolName],
    /// Goes on with a thread, once its id is put behind it.
    pub(crate) command: String,
    /// Whether `command` takes the thread's id.
    pub(crate) names_thread: bool,
    pub(crate) json: bool,
    pub(crate) hands: Hands,
}

/// Which run to watch.
pub(crate) enum Aim {
    /// A run that begins with this message.
    Begin { place: ThreadRef, key: InputKey, message: Message },
    /// A run that is under way, or one that is over.
    GoOn { place: ThreadRef },
}

impl Aim {
    pub(crate) fn place(&self) -> &ThreadRef {
        match self {
            Self::Begin { place, .. } | Self::GoOn { place } => place,
        }
    }
}

/// A watched run that has ended, with its view for closing words.
pub(crate) struct Ended {
    pub(crate) ending: Ending,
    pub(crate) session: Session,
    pub(crate) place: ThreadRef,
}

impl Ended {
    /// How the program ends.
    pub(crate) fn exit(&self) -> Exit {
        match self.ending {
            Ending::Finished(exit) | Ending::Unseen(exit) => exit,
            Ending::Interrupted | Ending::PipeClosed => Exit::Interrupted,
        }
    }
}

impl Launch<'_> {
    /// Runs it in `store` until the thread is at rest or somebody interrupts.
    pub(crate) async fn run(
        &self,
        store: &Store,
        aim: Aim,
        mut view: Box<dyn View>,
        interrupts: &mut Interrupts,
    ) -> Result<Ended, Failure> {
        let place = aim.place().clone();
        store.scope().only(place.thread);
        let found = self.accept(store, &aim).await?;
        interrupts.goes_on_with(&self.command_for(&place));
        let mut engine = Engine::new(store.trouble());
        let model = if found.is_over {
            "this run ended before its end was shown; it is shown now, nothing begins".to_owned()
        } else {
            self.start(store, &mut engine).await?
        };
        let intro = format!("{} · thread {} · {model}", self.loaded.agent.name, place.thread);
        // A view that nobody looks at is noticed with the first event.
        view.note(&intro).unwrap_or_default();
        for words in store.frozen().await {
            view.note(&words).unwrap_or_default();
        }
        for words in self.waits_in_vain(store, &place).await? {
            view.note(&words).unwrap_or_default();
        }
        let mut session = Session::new(self.parts(store, &place, view, &found).await?);
        let ending = session.watch(&mut engine, interrupts).await?;
        if let Ending::Finished(_) = ending {
            store.endings().shown(&place).await?;
        }
        Ok(Ended { ending, session, place })
    }

    /// Calls under way whose tool nobody here has any more, with how long they are waited for.
    async fn waits_in_vain(
        &self,
        store: &Store,
        place: &ThreadRef,
    ) -> Result<Vec<String>, Failure> {
        let ports = store.ports();
        let (thread, now) = (fold(&ports.journal, place).await?, ports.clock.now());
        let known = |tool: &ToolName| {
            self.loaded.tools.iter().any(|known| known.definition.contract.name == *tool)
        };
        let sent = thread.open_calls().filter_map(|call| call.dispatched.as_ref());
        let words = |call: &ToolCall| {
            let (tool, id) = (&call.tool, &call.tool_call_id);
            let left = call.deadline.since(now).as_secs();
            format!(
                "the call {id} waits for the tool {tool}, which no tool file of this agent has any \
                 more; it is given up in {left} s, or with `systole cancel {}`",
                place.thread
            )
        };
        Ok(sent.filter(|call| !known(&call.tool)).map(words).collect())
    }

    /// Starts planner and worker; answers with the words for the model.
    async fn start(&self, store: &Store, engine: &mut Engine) -> Result<String, Failure> {
        let staff = self.staff();
        let words = store.start(engine, &staff).await?;
        let status = status(Role::Run, &staff, &words);
        let status = watch::Sender::new(status).subscribe();
        open_door(&self.common.store, store, engine, status, None);
        Ok(words.join(", "))
    }

    /// Appends the message, if there is one; answers what is known of the run.
    async fn accept(&self, store: &Store, aim: &Aim) -> Result<Found, Failure> {
        remember(self.loaded, &self.common.store);
        let (ports, endings) = (store.ports(), store.endings());
        match aim {
            Aim::GoOn { place } => {
                let found = look_back(&ports.journal, place).await?;
                if let Some((agent, text)) = found.asked_for.as_ref().filter(|_| !found.is_over) {
                    endings.expect(place, agent, text, None).await?;
                }
                Ok(found)
            }
            Aim::Begin { place, key, message } => {
                let unseen = unseen_before(store, place).await?;
                let agent = &self.loaded.agent.name;
                endings.expect(place, agent, &message.text, Some(key)).await?;
                let (key, body) = (key.clone(), InputBody::Message(message.clone()));
                let ids = ports.ids.as_ref();
                let at = inputs::append(&ports.journal, ids, place, key, body).await?;
                // Before the first turn, which then reads it too.
                self.hands.speak_first(ports).await?;
                Ok(Found::beginning(at, unseen))
            }
        }
    }

    /// What goes on with the run.
    fn command_for(&self, place: &ThreadRef) -> String {
        if self.names_thread {
            format!("{} --thread {}", self.command, place.thread)
        } else {
            self.command.clone()
        }
    }

    async fn parts(
        &self,
        store: &Store,
        place: &ThreadRef,
        view: Box<dyn View>,
        found: &Found,
    ) -> Result<Parts, Failure> {
        let ports = store.ports();
        let follower = Follower::new(Arc::clone(&ports.journal), place.clone());
        let command = self.command_for(place);
        Ok(Parts {
            journal: Arc::clone(&ports.journal),
            clock: Arc::clone(&ports.clock),
            inbox: Box::new(OwnInbox {
                journal: Arc::clone(&ports.journal),
                ids: Arc::clone(&ports.ids),
            }),
            follower: follower.with_live(ports.live.as_ref()).await?,
            view,
            approve: self.approve.to_vec(),
            shown_to: found.shown_to,
            ends_after: found.ends_after,
            command,
            may_ask: !self.json,
            notices: store.notices(),
            attached: None,
        })
    }

    /// The agent alone.
    pub(crate) fn staff(&self) -> Staff<'_> {
        let members = vec![Member { loaded: self.loaded, model: self.model }];
        Staff { members, environment: self.environment, hands: self.hands.clone() }
    }
}

/// What this process says of itself.
pub(crate) fn status(role: Role, staff: &Staff<'_>, words: &[String]) -> Status {
    let agents = staff.members.iter().zip(words).map(|(member, model)| Known {
        name: member.loaded.agent.name.clone(),
        fingerprint: member.loaded.agent.fingerprint.clone(),
        file: Some(member.loaded.file.clone()),
        model: model.clone(),
    });
    let dry_run = matches!(staff.hands, Hands::Dry);
    let (pid, agents) = (std::process::id(), agents.collect());
    Status { pid, role, agents, dry_run, kept_back: Vec::new() }
}

/// Lets others ask this process.
pub(crate) fn open_door(
    path: &Path,
    store: &Store,
    engine: &mut Engine,
    status: watch::Receiver<Status>,
    fresh: Option<Fresh>,
) {
    let ports = store.ports();
    match Door::open(&real(path)) {
        Ok(door) => {
            let holder = Holder {
                journal: Arc::clone(&ports.journal),
                live: Arc::clone(&ports.live),
                ids: Arc::clone(&ports.ids),
                scope: store.scope().clone(),
                endings: store.endings(),
                status,
                fresh,
            };
            engine.start_background("control", door.serve(holder));
        }
        Err(error) => tracing::warn!(%error, "other commands cannot reach this process"),
    }
}

/// Later questions about an agent can then be answered without its files.
pub(crate) fn remember(loaded: &LoadedAgent, store: &Path) {
    let contracts = loaded.tools.iter().map(|tool| tool.definition.contract.clone());
    let remembered = Remembered { agent: loaded.agent.clone(), tools: contracts.collect() };
    if let Err(error) = remembered.keep(store) {
        tracing::warn!(%error, "the agent could not be kept for `show --prompt`");
    }
}

/// The file behind links, so that everybody finds the same socket beside it.
pub(crate) fn real(store: &Path) -> PathBuf {
    store.canonicalize().unwrap_or_else(|_| store.to_owned())
}

/// What a journal tells of the run that is to be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// What is older was shown before.
    pub(crate) shown_to: Sequence,
    /// The end lies behind this.
    pub(crate) ends_after: Sequence,
    /// The run has ended.
    pub(crate) is_over: bool,
    /// Agent and text of an unfinished run.
    pub(crate) asked_for: Option<(AgentName, String)>,
}

impl Found {
    /// A run that begins with the message at `at`, shown from `from` on if not from there.
    pub(crate) fn beginning(at: Sequence, from: Option<Sequence>) -> Self {
        let ends_after = Sequence(at.0.saturating_sub(1));
        let shown_to = from.unwrap_or(ends_after);
        Self { shown_to, ends_after, is_over: false, asked_for: None }
    }
}

/// The newest run of a thread; of a thread at rest it is over.
pub(crate) async fn look_back(
    journal: &Arc<dyn Journal>,
    place: &ThreadRef,
) -> Result<Found, BusError> {
    let mut ends = Vec::new();
    let mut thread = Thread::new(place.clone());
    for stored in journal.read(place, Sequence::NONE, Sequence::NONE).await? {
        let Ok(placed) = stored.placed() else { continue };
        if matches!(&placed.record, Record::Fact(Fact::RunFinished(_))) {
            ends.push(placed.sequence);
        }
        thread.apply(&stored.subject.leaf, &placed);
    }
    let is_over = thread.is_at_rest();
    let back = if is_over { 2 } else { 1 };
    let index = ends.len().checked_sub(back);
    let before = index.and_then(|index| ends.get(index)).copied().unwrap_or(Sequence::NONE);
    let asked_for = next_agent(&thread).zip(words(&thread).map(str::to_owned));
    Ok(Found { shown_to: before, ends_after: before, is_over, asked_for })
}

/// What lies before a run of this thread whose end nobody has been shown, if there is one: it is
/// shown first.
async fn unseen_before(store: &Store, place: &ThreadRef) -> Result<Option<Sequence>, BusError> {
    if !store.endings().all().await?.contains_key(&place.thread) {
        return Ok(None);
    }
    let found = look_back(&store.ports().journal, place).await?;
    Ok(found.is_over.then_some(found.shown_to))
}

/// A message with what the command line says about it.
pub(crate) fn message(
    text: String,
    agent: &AgentName,
    approve: &[ToolName],
    complexity: Option<u32>,
) -> Message {
    Message { text, agent: Some(agent.clone()), approve: approve.to_vec(), complexity }
}

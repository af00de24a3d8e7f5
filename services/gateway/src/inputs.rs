//! `POST /v1/threads/{thread}/inputs`: the same key is the same input, and gets the same answer.

use axum::Json;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use ports::append::{Landed, Patience, append_surely};
use ports::inputs::{fresh_key, input_append};
use ports::journal::Fence;
use proto::error_code::ErrorCode;
use proto::ids::{AgentName, InputKey, Nonce, Sequence, ThreadId, ThreadRef, ToolName};
use proto::input::{InputBody, Message};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::body;
use crate::caller::Caller;
use crate::events::id::EventId;
use crate::gateway::App;
use crate::problem::Problem;
use crate::reading::{Reading, no_thread};

/// How often an input is tried against others that come at the same time.
const TRIES: u32 = 8;
/// The most tools that an input may approve.
const MOST_APPROVED: usize = 64;

/// How an input wants to be read while a run is active.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// By the next run.
    #[default]
    Enqueue,
    /// By the next turn.
    Steer,
    /// At once.
    Interrupt,
    /// Not at all.
    Reject,
}

/// What a client says.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NewInput {
    /// The words.
    pub(crate) text: String,
    /// How it wants to be read while a run is active.
    #[serde(default)]
    pub(crate) mode: Mode,
    /// Who answers from here on.
    #[serde(default)]
    pub(crate) agent: Option<AgentName>,
    /// Tools whose approval is given with the input.
    #[serde(default)]
    pub(crate) approve: Vec<ToolName>,
    /// How hard it is; sets the turn limit.
    #[serde(default)]
    #[schemars(range(min = 1, max = 5))]
    pub(crate) complexity: Option<u32>,
    /// The idempotency key, if it is not in the header.
    #[serde(default)]
    pub(crate) key: Option<InputKey>,
}

impl NewInput {
    /// Checks it and gives it its form in the journal.
    pub(crate) fn body(self, app: &App) -> Result<InputBody, Problem> {
        if self.text.trim().is_empty() {
            return Err(Problem::input("`text` is empty", "Say something."));
        }
        if self.complexity.is_some_and(|complexity| !(1..=5).contains(&complexity)) {
            return Err(Problem::input(
                "`complexity` is not 1 to 5",
                "Leave it out, or say how hard it is.",
            ));
        }
        if self.approve.len() > MOST_APPROVED {
            return Err(Problem::input(
                "`approve` names too many tools",
                "Name those that it needs.",
            ));
        }
        if let Some(agent) = &self.agent {
            check_agent(app, agent)?;
        }
        let Self { text, agent, approve, complexity, .. } = self;
        let message = Message { text, agent, approve, complexity };
        Ok(match self.mode {
            Mode::Enqueue | Mode::Reject => InputBody::Message(message),
            Mode::Steer => InputBody::Steer(message),
            Mode::Interrupt => InputBody::Interrupt(message),
        })
    }
}

/// An agent that nobody runs would leave its thread waiting.
pub(crate) fn check_agent(app: &App, agent: &AgentName) -> Result<(), Problem> {
    let Some(known) = &app.settings.agents else { return Ok(()) };
    if known.contains(agent) {
        return Ok(());
    }
    let names: Vec<_> = known.iter().map(AgentName::as_str).collect();
    let message = format!("there is no agent `{agent}`; there are: {}", names.join(", "));
    Err(Problem::not_found(message, "Name one of these, or start a planner that has it."))
}

/// An input on its way into a thread.
#[derive(Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) place: ThreadRef,
    pub(crate) key: InputKey,
    pub(crate) body: InputBody,
    pub(crate) traceparent: Option<String>,
    /// Whether it is for a thread at rest only.
    pub(crate) only_at_rest: bool,
}

/// Where an input lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Accepted {
    pub(crate) thread: ThreadId,
    pub(crate) sequence: Sequence,
    /// The id of its event.
    #[schemars(with = "String")]
    pub(crate) id: EventId,
    pub(crate) key: InputKey,
}

pub(crate) async fn post(
    State(app): State<App>,
    caller: Caller,
    Path(thread): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let place = app.place(&caller.tenant, thread_id(&thread)?);
    let new: NewInput = body::read(&app, request).await?;
    let (mode, key) = (new.mode, choose_key(&app, caller.key, new.key.clone())?);
    let offer = Offer {
        place,
        key,
        body: new.body(&app)?,
        traceparent: caller.traceparent,
        only_at_rest: mode == Mode::Reject,
    };
    let accepted = app.in_time(accept(&app, &offer)).await?;
    Ok((StatusCode::ACCEPTED, Json(accepted)).into_response())
}

/// The thread that a path names.
pub(crate) fn thread_id(text: &str) -> Result<ThreadId, Problem> {
    let fix = "Use the id that POST /v1/threads answered.";
    text.parse().map_err(|error| Problem::input(format!("{error}"), fix))
}

/// The key of the header or of the body, or a fresh one.
pub(crate) fn choose_key(
    app: &App,
    header: Option<InputKey>,
    field: Option<InputKey>,
) -> Result<InputKey, Problem> {
    match (header, field) {
        (Some(header), Some(field)) if header != field => {
            let fix = "Send the key once.";
            Err(Problem::input("the header and the body name two idempotency keys", fix))
        }
        (Some(key), _) | (None, Some(key)) => Ok(key),
        (None, None) => Ok(fresh_key(app.ports.ids.as_ref())),
    }
}

/// Appends an input unless its key is known.
pub(crate) async fn accept(app: &App, offer: &Offer) -> Result<Accepted, Problem> {
    let mut floor = Sequence::NONE;
    for _ in 0..TRIES {
        let reading = Reading::load(app, &offer.place, floor).await?;
        if let Some(taken) = reading.inputs.get(&offer.key) {
            check_same(&taken.body, offer)?;
            app.metrics.accepted(&offer.body);
            return Ok(Accepted::at(offer, taken.sequence, &taken.nonce));
        }
        check_fits(&reading, offer)?;
        let (key, body) = (offer.key.clone(), offer.body.clone());
        let ids = app.ports.ids.as_ref();
        let mut append = input_append(ids, &offer.place, key, body, offer.traceparent.clone());
        if offer.only_at_rest {
            // Of two that come at the same time one is first.
            append.fence = Fence::Subject(reading.last_input);
        }
        match append_surely(app.ports.journal.as_ref(), &append, Patience::default()).await? {
            Landed::At(sequence) => {
                app.metrics.accepted(&offer.body);
                return Ok(Accepted::at(offer, sequence, &append.nonce));
            }
            Landed::Duplicate(sequence) => floor = sequence,
            Landed::Lost { last } => floor = last.unwrap_or(floor),
        }
    }
    Err(Problem::overloaded("other inputs of the thread kept coming first"))
}

fn check_same(taken: &InputBody, offer: &Offer) -> Result<(), Problem> {
    if *taken == offer.body {
        return Ok(());
    }
    Err(Problem::conflict(
        ErrorCode::KeyReused,
        format!("the key `{}` belongs to another input of this thread", offer.key),
        "Take a new key for a new input.",
    ))
}

fn check_fits(reading: &Reading, offer: &Offer) -> Result<(), Problem> {
    let names_agent = match &offer.body {
        InputBody::Message(said) | InputBody::Steer(said) | InputBody::Interrupt(said) => {
            said.agent.is_some()
        }
        InputBody::Cancel { .. } | InputBody::Decision(_) => false,
    };
    if reading.is_empty() && !names_agent {
        return Err(no_thread(offer.place.thread));
    }
    if offer.only_at_rest && !reading.thread.is_at_rest() {
        return Err(Problem::conflict(
            ErrorCode::RunActive,
            "the thread has an active run",
            "Wait for its end, or send the input with mode enqueue, steer or interrupt.",
        ));
    }
    Ok(())
}

impl Accepted {
    fn at(offer: &Offer, sequence: Sequence, nonce: &Nonce) -> Self {
        let (thread, key) = (offer.place.thread, offer.key.clone());
        Self { thread, sequence, id: EventId::new(sequence, nonce), key }
    }
}

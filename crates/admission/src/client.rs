//! Asks for places on behalf of one process.
//!
//! Requests of one tenant for one model wait in line here, and only the first of them asks, so what
//! the shared store is asked does not grow with the line. While the store does not answer, a part of
//! the limits applies in this process alone. Without limits nothing is asked until a provider refuses
//! for the first time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use ports::BusError;
use ports::admission::{Admission, NotAdmitted, Permit, SharedCells, Went, Wish};
use ports::clock::{Clock, Ids};
use ports::model::Ear;
use proto::notice::Notice;
use tokio::sync::{Mutex, mpsc};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::local::LocalCells;
use crate::pool::{Because, Decision, Event, Limits, Pool};

/// How long a place may be held at most: longer than any reply.
const LEASE: Duration = Duration::from_mins(6);
/// How long what is known of a model is kept when nobody asks it.
const KEEP: Duration = Duration::from_mins(10);
/// Swaps that may be lost to others before the store counts as out of order.
const MOST_SWAPS: u32 = 50;
/// How long the shared store may take, and how long it is left alone after it did not answer.
const PATIENCE: Duration = Duration::from_secs(1);
const REST: Duration = Duration::from_secs(5);
/// Ends of requests that wait to be noted; beyond it their places fall free when their time is up.
const NOTES: usize = 4096;
/// Lines that are remembered while nobody stands in them.
const LINES: usize = 1000;

/// How a process asks.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// What each model at each endpoint allows.
    pub limits: Limits,
    /// The longest wait of one request.
    pub longest_wait: Duration,
    /// The part of the limits that this process takes alone while the store does not answer: one of
    /// so many.
    pub alone: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self { limits: Limits::default(), longest_wait: Duration::from_mins(1), alone: 4 }
    }
}

impl Settings {
    fn local_limits(&self) -> Limits {
        let (Limits { requests, tokens, open }, part) = (self.limits, self.alone.max(1));
        let size = usize::try_from(part).unwrap_or(1);
        Limits {
            requests: requests.map(|most| (most / part).max(1)),
            tokens: tokens.map(|most| (most / u64::from(part)).max(1)),
            open: open.map(|most| (most / size).max(1)),
        }
    }
}

/// Where a place was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Given {
    Shared,
    Here,
}

type Line = Arc<Mutex<()>>;

/// Places for the requests of one process.
pub struct Admissions {
    shared: Arc<dyn SharedCells>,
    here: LocalCells,
    ids: Arc<dyn Ids>,
    settings: Settings,
    lines: Mutex<BTreeMap<(String, String), Line>>,
    rests_until: Mutex<Option<Instant>>,
    /// Models that refused, while no limit is set.
    awake: Mutex<BTreeMap<String, Instant>>,
    note: mpsc::Sender<Note>,
    notes: Mutex<mpsc::Receiver<Note>>,
}

impl Admissions {
    /// Places that `shared` agrees on.
    pub fn new(
        shared: Arc<dyn SharedCells>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn Ids>,
        settings: Settings,
    ) -> Self {
        let (note, notes) = mpsc::channel(NOTES);
        Self {
            shared,
            here: LocalCells::new(clock),
            ids,
            settings,
            lines: Mutex::default(),
            rests_until: Mutex::default(),
            awake: Mutex::default(),
            note,
            notes: Mutex::new(notes),
        }
    }

    /// Gives places back as requests end, for ever.
    pub async fn settle(self: Arc<Self>) {
        let mut notes = self.notes.lock().await;
        while let Some(Note { name, given, event }) = notes.recv().await {
            if matches!(event, Event::Refused { .. }) {
                let until = Instant::now().checked_add(KEEP);
                self.awake.lock().await.extend(until.map(|until| (name.clone(), until)));
            }
            // A place that cannot be given back falls free when its time is up.
            if let Err(error) = self.apply_to(given, &name, &event).await {
                tracing::debug!(%error, "the end of a model request was not noted");
            }
        }
    }

    async fn is_asleep(&self, name: &str) -> bool {
        let now = Instant::now();
        let mut awake = self.awake.lock().await;
        awake.retain(|_, until| *until > now);
        self.settings.limits == Limits::default() && !awake.contains_key(name)
    }

    async fn line(&self, name: &str, tenant: &str) -> Line {
        let mut lines = self.lines.lock().await;
        if lines.len() >= LINES {
            lines.retain(|_, line| Arc::strong_count(line) > 1);
        }
        let line = lines.entry((name.to_owned(), tenant.to_owned())).or_default();
        Arc::clone(line)
    }

    /// Lets the pool know, where the shared store answers, else here alone.
    async fn apply(&self, name: &str, event: &Event) -> (Decision, Given) {
        if self.rests_until.lock().await.is_none_or(|until| until <= Instant::now()) {
            match self.apply_to(Given::Shared, name, event).await {
                Ok(decision) => {
                    if self.rests_until.lock().await.take().is_some() {
                        tracing::info!("limits of models are shared again");
                    }
                    return (decision, Given::Shared);
                }
                Err(error) => {
                    let until = Instant::now().checked_add(REST);
                    if std::mem::replace(&mut *self.rests_until.lock().await, until).is_none() {
                        tracing::warn!(%error, "limits of models are kept by this process alone");
                    }
                }
            }
        }
        let decision = self.apply_to(Given::Here, name, event).await;
        // Cells of this process always answer.
        (decision.unwrap_or(Decision::Go(0)), Given::Here)
    }

    async fn apply_to(
        &self,
        given: Given,
        name: &str,
        event: &Event,
    ) -> Result<Decision, BusError> {
        let (cells, limits): (&dyn SharedCells, Limits) = match given {
            Given::Shared => (self.shared.as_ref(), self.settings.limits),
            Given::Here => (&self.here, self.settings.local_limits()),
        };
        for lost in 0..MOST_SWAPS {
            let late = |_| BusError::Unavailable("it did not answer in time".to_owned());
            let cell = timeout(PATIENCE, cells.cell(name)).await.map_err(late)??;
            let kept = cell.value.as_ref().and_then(|value| serde_json::from_slice(value).ok());
            let mut pool: Pool = kept.unwrap_or_default();
            let now = u64::try_from(cell.now.0).unwrap_or_default().saturating_mul(1000);
            let decision = pool.apply(&limits, event, now);
            let after = Bytes::from(serde_json::to_vec(&pool).unwrap_or_default());
            let swap = cells.swap_cell(name, cell.value.as_ref(), after, KEEP);
            if timeout(PATIENCE, swap).await.map_err(late)?? {
                return Ok(decision);
            }
            sleep(self.ids.jitter(Duration::from_millis(u64::from(lost.min(10))))).await;
        }
        Err(BusError::Unavailable("others changed it each time".to_owned()))
    }

    fn place(&self, name: &str, given: Given, id: String, reserved: u64) -> Box<dyn Permit> {
        let (note, name) = (self.note.clone(), name.to_owned());
        Box::new(Place { note, name, given, id, reserved, went: Went::Dropped })
    }

    async fn first_in_line(
        &self,
        (name, wish, tenant): (&str, &Wish, &str),
        told: &mut Told<'_>,
        until: Instant,
    ) -> Result<Box<dyn Permit>, Because> {
        loop {
            let id = self.ids.nonce().to_string();
            let event = Event::Ask {
                id: id.clone(),
                tenant: tenant.to_owned(),
                tokens: wish.tokens,
                lease: micros(LEASE),
            };
            let (decision, given) = self.apply(name, &event).await;
            let (pause, because) = match decision {
                Decision::Go(pause) => {
                    let place = self.place(name, given, id, wish.tokens);
                    sleep(Duration::from_micros(pause)).await;
                    return Ok(place);
                }
                Decision::Wait(pause, because) => (Duration::from_micros(pause), because),
                Decision::Noted => (Duration::ZERO, Because::Others),
            };
            told.tell(because.words(), until);
            let pause = pause.saturating_add(self.ids.jitter(pause / 4));
            if Instant::now().checked_add(pause).is_none_or(|then| then > until) {
                self.apply(name, &Event::Leave { tenant: tenant.to_owned() }).await;
                return Err(because);
            }
            sleep(pause).await;
        }
    }
}

#[async_trait]
impl Admission for Admissions {
    async fn admit(&self, wish: &Wish, ear: &dyn Ear) -> Result<Box<dyn Permit>, NotAdmitted> {
        let name = format!("{} {}", wish.endpoint, wish.model);
        let tenant = wish.tenant.as_ref().map_or("", |tenant| tenant.as_str());
        if self.is_asleep(&name).await {
            return Ok(self.place(&name, Given::Shared, String::new(), 0));
        }
        let began = Instant::now();
        let until = began.checked_add(self.settings.longest_wait).unwrap_or(began);
        let mut told = Told { ear, last: "" };
        let not = |because: &str| NotAdmitted {
            waited: self.settings.longest_wait,
            because: format!("because {because}"),
        };
        let line = self.line(&name, tenant).await;
        let first = if let Ok(first) = line.try_lock() {
            first
        } else {
            told.tell(IN_LINE, until);
            let first = timeout_at(until, line.lock()).await;
            first.map_err(|_elapsed| not(IN_LINE))?
        };
        let place = self.first_in_line((&name, wish, tenant), &mut told, until).await;
        drop(first);
        told.tell("", until);
        place.map_err(|because| not(because.words()))
    }
}

const IN_LINE: &str = "earlier requests for the model wait too";

/// Says why something waits, each reason once.
struct Told<'e> {
    ear: &'e dyn Ear,
    last: &'static str,
}

impl Told<'_> {
    fn tell(&mut self, words: &'static str, until: Instant) {
        if self.last == words {
            return;
        }
        self.last = words;
        let because =
            if words.is_empty() { String::new() } else { format!("waiting because {words}") };
        let left = until.saturating_duration_since(Instant::now()).as_millis();
        let at_most_ms = u64::try_from(left).ok().filter(|_| !words.is_empty());
        self.ear.notice(Notice::Waiting { because, at_most_ms });
    }
}

fn micros(span: Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}

/// The end of a request, on its way to its pool.
#[derive(Debug)]
struct Note {
    name: String,
    given: Given,
    event: Event,
}

#[derive(Debug)]
struct Place {
    note: mpsc::Sender<Note>,
    name: String,
    given: Given,
    id: String,
    reserved: u64,
    went: Went,
}

impl Permit for Place {
    fn went(&mut self, went: Went) {
        self.went = went;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let (id, reserved) = (std::mem::take(&mut self.id), self.reserved);
        let event = match self.went {
            Went::Throttled(wait) => Event::Refused { id, reserved, wait: wait.map(micros) },
            Went::Answered(_) | Went::Dropped if id.is_empty() => return,
            Went::Answered(used) => Event::Done { id, reserved, used },
            Went::Dropped => Event::Done { id, reserved, used: None },
        };
        let note = Note { name: std::mem::take(&mut self.name), given: self.given, event };
        if self.note.try_send(note).is_err() {
            tracing::debug!("a place falls free when its time is up");
        }
    }
}

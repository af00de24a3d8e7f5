//! What a run begins with: memories that fit what the user said. They go into the record that starts
//! the run's first turn, so a replay shows what the model was shown, whatever memory says by then.

use bytes::Bytes;
use memory_core::fragment::Origin;
use planner_core::Thread;
use planner_core::prompt::{token_limit, tokens};
use planner_core::thread::Logged;
use ports::BusError;
use ports::live::Topic;
use ports::recall::{Access, Filter, Hit, Query, Space, short_id};
use proto::agent::Agent;
use proto::fact::{Estimator, Fact, Recalled, TurnStarted};
use proto::ids::Sequence;
use proto::notice::{LiveNotice, Notice};

use crate::memory::Memory;
use crate::planner::Shared;

/// Characters of the user's words that are looked for.
const LONGEST_QUESTION: usize = 2000;
/// Characters of one memory that the model is shown.
const LONGEST_MEMORY: usize = 1200;
/// Entries at the end of a thread that the model has in front of it anyway.
const NEWEST: usize = 8;

/// A fact to append, and why it came without memories if it should have had some.
pub(crate) struct Brought {
    pub(crate) fact: Fact,
    pub(crate) missing: Option<String>,
}

/// Puts memories into the fact that begins a run; leaves every other fact as it is.
pub(crate) async fn bring(shared: &Shared, thread: &Thread, fact: Fact) -> Brought {
    let (memory, mut turn) = match (&shared.config.memory, fact) {
        (Some(memory), Fact::TurnStarted(turn)) if begins_a_run(&turn) => (memory, turn),
        (_, fact) => return Brought { fact, missing: None },
    };
    let agent = planner_core::view::Agents::agent(&shared.book, &turn.agent);
    let Some(agent) = agent.filter(|agent| uses_memory(agent)) else {
        return Brought { fact: Fact::TurnStarted(turn), missing: None };
    };
    let metrics = &shared.config.metrics.memory;
    let timer = metrics.recall_seconds.start_timer();
    let found = tokio::time::timeout(memory.deadline, recall(shared, memory, thread, agent)).await;
    timer.observe_duration();
    let missing = match found {
        Ok(Ok(recalled)) => {
            turn.recalled = recalled;
            None
        }
        Ok(Err(error)) => Some(error.to_string()),
        Err(_) => Some(format!("no answer within {} ms", memory.deadline.as_millis())),
    };
    if let Some(because) = &missing {
        metrics.recall_failures.inc();
        tracing::info!(thread = %thread.place, because, "a run begins without long-term memory");
    }
    Brought { fact: Fact::TurnStarted(turn), missing }
}

/// Tells readers that the run goes on without; losing that is allowed.
pub(crate) async fn tell(shared: &Shared, thread: &Thread, started: Sequence, because: String) {
    let turn = thread.run.as_ref().map_or(1, |run| run.turns.saturating_add(1));
    let notice = LiveNotice { started, turn, notice: Notice::WithoutMemory { because } };
    let message = Bytes::from(serde_json::to_vec(&notice).unwrap_or_default());
    let topic = Topic::Text(thread.place.clone());
    if let Err(error) = shared.ports.live.publish(&topic, message).await {
        tracing::debug!(%error, "a notice was not published");
    }
}

fn begins_a_run(turn: &TurnStarted) -> bool {
    turn.turn == 1 && turn.start == 1 && turn.verify.is_none()
}

fn uses_memory(agent: &Agent) -> bool {
    agent.memory.recall > 0
}

async fn recall(
    shared: &Shared,
    memory: &Memory,
    thread: &Thread,
    agent: &Agent,
) -> Result<Vec<Recalled>, BusError> {
    let asked: Vec<&str> = thread.unread.iter().map(|input| input.message.text.as_str()).collect();
    let asked = (memory.redact)(cut(&asked.join("\n"), LONGEST_QUESTION));
    if asked.trim().is_empty() {
        return Ok(Vec::new());
    }
    // What the model sees anyway need not be recalled.
    let sees_all = log_tokens(thread) < token_limit(agent) / 2;
    let filter = Filter {
        without: sees_all.then_some(thread.place.thread),
        editions: agent.memory.collections.clone(),
        ..Filter::default()
    };
    let k = usize::try_from(agent.memory.recall).unwrap_or(usize::MAX);
    let now = shared.clock.now(thread.head.at);
    let vector = meaning(memory, &asked).await?;
    let query = Query { vector, filter, ..Query::words(asked, k, now) };
    let hits = memory.recall.query(&Access::of_thread(&thread.place), &query).await?;
    let newest = thread.log.len().saturating_sub(NEWEST);
    let is_old = |hit: &Hit| {
        let id = &hit.kept.fragment.id;
        id.thread != thread.place.thread || usize::try_from(id.turn).is_ok_and(|turn| turn < newest)
    };
    Ok(hits.iter().filter(|hit| is_old(hit)).map(shown).collect())
}

/// What the words mean, where the store holds what the embedder makes.
async fn meaning(memory: &Memory, text: &str) -> Result<Option<std::sync::Arc<[f32]>>, BusError> {
    if fitting_space(memory).await?.is_none() {
        return Ok(None);
    }
    let made = memory.embedder.embed(&[text.to_owned()]).await?;
    Ok(made.into_iter().next())
}

/// The space of the store, if the embedder makes vectors of it.
pub(crate) async fn fitting_space(memory: &Memory) -> Result<Option<Space>, BusError> {
    let Some(space) = memory.embedder.space().await? else { return Ok(None) };
    Ok(memory.recall.space().await?.filter(|own| *own == space))
}

fn shown(hit: &Hit) -> Recalled {
    let fragment = &hit.kept.fragment;
    let source = match &fragment.origin {
        Origin::Document { collection, version, document, section } => {
            format!("{collection}@{version}, {document}, {section}")
        }
        Origin::User
        | Origin::Model
        | Origin::Tool { .. }
        | Origin::Note
        | Origin::Remembered
        | Origin::Recalled => short_id(&fragment.id),
    };
    Recalled { source, text: cut(&fragment.text, LONGEST_MEMORY).to_owned() }
}

fn cut(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(at, _)| text.get(..at).unwrap_or(text))
}

fn log_tokens(thread: &Thread) -> usize {
    let said = thread.log.iter().map(|logged| match logged {
        Logged::User { text, .. } | Logged::Note { text } | Logged::Turn { text, .. } => {
            tokens(Estimator::Characters, text)
        }
    });
    let answers = thread.calls.values().filter_map(|call| call.closed.as_ref());
    said.chain(answers.map(|closed| tokens(Estimator::Characters, &closed.content)))
        .fold(0, usize::saturating_add)
}

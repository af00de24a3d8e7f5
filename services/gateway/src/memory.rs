//! `GET /v1/memory`, and one memory: what is remembered of the caller's tenant, and its removal.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query as Asked, State};
use memory_core::fragment::FragmentId;
use ports::recall::{Access, Filter, Kept, Query, Recall, Scope, parse_id, short_id};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::caller::Caller;
use crate::gateway::App;
use crate::problem::Problem;

/// Memories of one answer.
const USUAL: usize = 20;
const MOST: usize = 100;
/// Turns shown before and after a memory.
const AROUND: u32 = 2;

/// What is asked for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct What {
    /// Words to look for; all memories, by id, where there are none.
    q: Option<String>,
    /// Only what this thread said.
    thread: Option<String>,
    /// The last one of the page before.
    after: Option<String>,
    /// At most so many.
    limit: Option<usize>,
}

fn memory(app: &App) -> Result<Arc<dyn Recall>, Problem> {
    app.memory.clone().ok_or_else(|| {
        Problem::not_found("this gateway has no long-term memory", "Set SYSTOLE_QDRANT for it.")
    })
}

fn id_of(access: &Access, text: &str) -> Result<FragmentId, Problem> {
    let fix = "Copy it from GET /v1/memory.";
    parse_id(access, text).map_err(|error| Problem::input(error.to_string(), fix))
}

/// The best ones for words, or a page of all.
pub(crate) async fn list(
    State(app): State<App>,
    caller: Caller,
    what: Result<Asked<What>, QueryRejection>,
) -> Result<Json<Value>, Problem> {
    let wrong = |error: QueryRejection| {
        Problem::input(error.body_text(), "Ask with q, thread, after and limit.")
    };
    let Asked(what) = what.map_err(wrong)?;
    let (recall, access) = (memory(&app)?, Access::of_caller(caller.tenant));
    let limit = what.limit.unwrap_or(USUAL).clamp(1, MOST);
    let thread = what.thread.as_deref().map(crate::inputs::thread_id).transpose()?;
    let filter = Filter { thread, all_editions: true, ..Filter::default() };
    let after = what.after.as_deref().map(|id| id_of(&access, id)).transpose()?;
    let found = app.in_time(async {
        let Some(words) = what.q else {
            let page = recall.list(&access, &filter, after.as_ref(), limit).await?;
            return Ok(page.into_iter().map(|kept| (kept, None)).collect());
        };
        let query = Query::words(words, limit, app.ports.clock.now());
        let hits = recall.query(&access, &Query { filter, ..query }).await?;
        Ok(hits.into_iter().map(|hit| (hit.kept, Some(hit.ranked.score))).collect::<Vec<_>>())
    });
    let found = found.await?;
    let memories: Vec<Value> = found.iter().map(|(kept, score)| shown(kept, *score)).collect();
    Ok(Json(json!({ "memories": memories })))
}

/// One, with the turns around it and why it counts as much as it does.
pub(crate) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path((thread, place)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let (recall, access) = (memory(&app)?, Access::of_caller(caller.tenant));
    let id = id_of(&access, &format!("{thread}/{place}"))?;
    let look = app.in_time(async {
        let one = recall.get(&access, std::slice::from_ref(&id)).await?.pop();
        Ok((one, recall.neighbours(&access, &id, AROUND).await?))
    });
    let (one, around) = look.await?;
    let Some(one) = one else {
        let what = format!("there is no memory {}", short_id(&id));
        return Err(Problem::not_found(what, "GET /v1/memory lists what there is."));
    };
    let around: Vec<Value> = around.iter().map(|kept| shown(kept, None)).collect();
    let why = one.fragment.explanation.clone();
    Ok(Json(json!({ "memory": shown(&one, None), "around": around, "why": why })))
}

/// Removes one for good.
pub(crate) async fn forget(
    State(app): State<App>,
    caller: Caller,
    Path((thread, place)): Path<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let (recall, access) = (memory(&app)?, Access::of_caller(caller.tenant));
    let id = id_of(&access, &format!("{thread}/{place}"))?;
    let scope = Scope::Fragment { id };
    let now = app.ports.clock.now();
    let gone = app.in_time(async { Ok(recall.forget(&access, &scope, now).await?) }).await?;
    Ok(Json(json!({ "forgotten": gone })))
}

fn shown(kept: &Kept, score: Option<f64>) -> Value {
    let fragment = &kept.fragment;
    json!({
        "id": short_id(&fragment.id),
        "kind": fragment.kind.as_str(),
        "from": fragment.origin,
        "text": fragment.text,
        "at": fragment.at,
        "importance": fragment.importance,
        "holds_until": kept.invalid_from,
        "superseded_by": kept.superseded_by.as_ref().map(short_id),
        "score": score,
    })
}

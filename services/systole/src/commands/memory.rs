//! `systole memory`: what is remembered, why, and how it is forgotten.

mod eval;
mod forget;
mod ingest;
mod passages;

use std::io::{self, Write};
use std::sync::Arc;

use memory_core::fragment::Origin;
use ports::recall::{Access, Filter, Hit, Kept, Query, Recall, parse_id, short_id};
use serde_json::{Value, json};

use super::{Context, print};
use crate::arguments::{Memory, MemoryFind, MemoryList, MemoryOne, MemoryPlace};
use crate::failure::{Exit, Failure};
use crate::screen::text::{instant, one_line};
use crate::wiring::{clock, memory};

/// Memories of one page of an export.
const PAGE: usize = 500;
/// Turns that `show` shows before and after a memory.
const AROUND: u32 = 2;
/// Characters of a text in a list.
const LINE: usize = 100;

/// Carries out one of the commands.
pub(crate) async fn memory(context: &Context, asked: &Memory) -> Result<Exit, Failure> {
    match asked {
        Memory::List(asked) => list(context, asked).await,
        Memory::Find(asked) => find(context, asked).await,
        Memory::Show(asked) => show(context, asked).await,
        Memory::Why(asked) => why(context, asked).await,
        Memory::Export(place) => export(context, place).await,
        Memory::Forget(asked) => forget::forget(context, asked).await,
        Memory::Ingest(asked) => ingest::ingest(context, asked).await,
        Memory::Eval(asked) => eval::eval(context, asked).await,
        Memory::Reindex(place) => ingest::reindex(context, place).await,
    }
}

/// The memory that is meant, and whose.
fn open(context: &Context, place: &MemoryPlace) -> Result<(Arc<dyn Recall>, Access), Failure> {
    let recall = memory::named(&context.common)?;
    Ok((recall, Access::of_caller(place.tenant.clone())))
}

async fn list(context: &Context, asked: &MemoryList) -> Result<Exit, Failure> {
    let (recall, access) = open(context, &asked.place)?;
    let filter = Filter { thread: asked.thread, all_editions: true, ..Filter::default() };
    let all = recall.list(&access, &filter, None, asked.limit).await?;
    let size = recall.size(&access).await?;
    for kept in &all {
        print(&line(kept, asked.place.json))?;
    }
    if !asked.place.json {
        print(&format!("{} of {} memories\n", all.len(), size.fragments))?;
    }
    Ok(Exit::Done)
}

async fn find(context: &Context, asked: &MemoryFind) -> Result<Exit, Failure> {
    let (recall, access) = open(context, &asked.place)?;
    let filter = Filter { editions: asked.edition.clone(), ..Filter::default() };
    let vector = memory::meaning(recall.as_ref(), &context.common, &asked.question).await?;
    let words = Query::words(asked.question.clone(), asked.limit, clock().now());
    let hits = recall.query(&access, &Query { filter, vector, ..words }).await?;
    for Hit { kept, ranked } in &hits {
        if asked.place.json {
            print(&format!("{}\n", json!({"memory": as_json(kept), "ranked": ranked})))?;
        } else {
            print(&format!("{:.4}  {}", ranked.score, line(kept, false)))?;
        }
    }
    Ok(Exit::Done)
}

async fn one(recall: &dyn Recall, access: &Access, id: &str) -> Result<Kept, Failure> {
    let id = parse_id(access, id).map_err(|error| Failure::input(error.to_string()))?;
    let found = recall.get(access, std::slice::from_ref(&id)).await?.pop();
    found.ok_or_else(|| {
        Failure::not_found(format!("there is no memory {}", short_id(&id)))
            .and("`systole memory list` shows what there is")
    })
}

async fn show(context: &Context, asked: &MemoryOne) -> Result<Exit, Failure> {
    let (recall, access) = open(context, &asked.place)?;
    let kept = one(recall.as_ref(), &access, &asked.id).await?;
    if asked.place.json {
        print(&line(&kept, true))?;
        return Ok(Exit::Done);
    }
    let around = recall.neighbours(&access, &kept.fragment.id, AROUND).await?;
    let (before, after): (Vec<Kept>, Vec<Kept>) =
        around.into_iter().partition(|other| other.fragment.id < kept.fragment.id);
    for other in &before {
        print(&line(other, false))?;
    }
    print(&format!("\n{}\n\n", harmless(&kept.fragment.text)))?;
    for other in &after {
        print(&line(other, false))?;
    }
    Ok(Exit::Done)
}

async fn why(context: &Context, asked: &MemoryOne) -> Result<Exit, Failure> {
    let (recall, access) = open(context, &asked.place)?;
    let kept = one(recall.as_ref(), &access, &asked.id).await?;
    if asked.place.json {
        print(&line(&kept, true))?;
        return Ok(Exit::Done);
    }
    let fragment = &kept.fragment;
    let mut lines = vec![
        format!("memory      {}", short_id(&fragment.id)),
        format!("from        {}", origin(&fragment.origin)),
        format!("kind        {}", fragment.kind.as_str()),
        format!("said        {}", instant(fragment.at)),
        format!("importance  {:.2}", fragment.importance),
    ];
    let holds = match (&kept.invalid_from, &kept.superseded_by) {
        (None, _) => "yes".to_owned(),
        (Some(until), None) => format!("until {}", instant(*until)),
        (Some(until), Some(by)) => {
            format!("until {}, when {} took its place", instant(*until), short_id(by))
        }
    };
    lines.push(format!("holds       {holds}"));
    for fact in &fragment.facts {
        lines.push(format!("states      {}", one_line(&fact.line())));
    }
    match &fragment.explanation {
        Some(explanation) => {
            let text = serde_json::to_string_pretty(explanation).unwrap_or_default();
            lines.push(format!("because\n{text}"));
        }
        None => lines.push("because     nobody has scored it".to_owned()),
    }
    print(&(lines.join("\n") + "\n"))?;
    Ok(Exit::Done)
}

async fn export(context: &Context, place: &MemoryPlace) -> Result<Exit, Failure> {
    let (recall, access) = open(context, place)?;
    let filter = Filter { all_editions: true, ..Filter::default() };
    let mut after = None;
    loop {
        let page = recall.list(&access, &filter, after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(Exit::Done) };
        after = Some(last.fragment.id.clone());
        for kept in &page {
            print(&line(kept, true))?;
        }
    }
}

fn as_json(kept: &Kept) -> Value {
    let mut value = serde_json::to_value(kept).unwrap_or_default();
    if let Some(object) = value.as_object_mut() {
        object.insert("id".to_owned(), short_id(&kept.fragment.id).into());
    }
    value
}

fn line(kept: &Kept, json: bool) -> String {
    if json {
        return format!("{}\n", as_json(kept));
    }
    let fragment = &kept.fragment;
    let id = short_id(&fragment.id);
    let gone = if kept.invalid_from.is_some() { " (holds no more)" } else { "" };
    let text: String = one_line(&fragment.text).chars().take(LINE).collect();
    format!("{id}  {}{gone}  {text}\n", origin(&fragment.origin))
}

fn origin(origin: &Origin) -> String {
    match origin {
        Origin::User => "user".to_owned(),
        Origin::Model => "model".to_owned(),
        Origin::Tool { tool } => format!("tool {}", one_line(tool)),
        Origin::Note => "note".to_owned(),
        Origin::Remembered => "remembered".to_owned(),
        Origin::Recalled => "recalled".to_owned(),
        Origin::Document { collection, version, document, section } => {
            let (document, section) = (one_line(document), one_line(section));
            format!("{collection}@{version}, {document}, {section}")
        }
    }
}

/// Lines stay lines; what a terminal would obey does not.
fn harmless(text: &str) -> String {
    text.lines().map(one_line).collect::<Vec<_>>().join("\n")
}

/// Says how far something has come, where people watch.
fn progress(text: &str) {
    let mut err = io::stderr();
    if io::IsTerminal::is_terminal(&err) {
        write!(err, "\r{text}\x1b[K").unwrap_or_default();
    }
}

/// Ends the line of [`progress`].
fn progress_done() {
    let mut err = io::stderr();
    if io::IsTerminal::is_terminal(&err) {
        writeln!(err).unwrap_or_default();
    }
}

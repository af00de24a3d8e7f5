//! `systole memory ingest` and `systole memory reindex`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use memory_core::fragment::{Fragment, FragmentId, Origin};
use memory_core::kind::Kind;
use memory_core::text::tokens;
use ports::embedder::{Embedder, MOST_TEXTS};
use ports::recall::{Access, Edition, Filter, Kept, Recall, document_thread};
use serde_json::json;

use super::passages::{Passage, passages};
use super::{Context, open, print, progress, progress_done};
use crate::arguments::{MemoryIngest, MemoryPlace};
use crate::failure::{Exit, Failure};
use crate::wiring::{clock, memory};

/// The largest file that is taken in.
const LARGEST: u64 = 64 << 20;
/// The deepest folder.
const DEEPEST: usize = 32;

#[derive(Debug, Default)]
struct Counted {
    documents: usize,
    passages: usize,
    fresh: usize,
    passed_over: Vec<PathBuf>,
}

/// Takes documents in. What is there already is not embedded again, so it may be ended and begun anew.
pub(super) async fn ingest(context: &Context, asked: &MemoryIngest) -> Result<Exit, Failure> {
    let name = format!("{}@{}", asked.collection, asked.version);
    let edition = Edition::parse(&name).ok_or_else(|| {
        Failure::input(format!("`{name}` is no collection with its version"))
            .and("use letters, digits, `.`, `-` and `_`, at most 64 on each side")
    })?;
    let (recall, access) = open(context, &asked.place)?;
    let embedder = memory::fitting(recall.as_ref(), &context.common).await?;
    let files = files(&asked.paths)?;
    let mut counted = Counted::default();
    for (number, (root, file)) in files.iter().enumerate() {
        let document = name_of(root, file);
        progress(&format!("{} of {}: {document}", number.saturating_add(1), files.len()));
        let Some(all) = read(file, &document)? else {
            counted.passed_over.push(file.clone());
            continue;
        };
        let writes =
            Writes { recall: recall.as_ref(), embedder: embedder.as_deref(), access: &access };
        counted.documents = counted.documents.saturating_add(1);
        counted.passages = counted.passages.saturating_add(all.len());
        let fresh = writes.document(&edition, &document, all).await?;
        counted.fresh = counted.fresh.saturating_add(fresh);
    }
    progress_done();
    tell(&edition, &counted, asked.place.json)?;
    Ok(Exit::Done)
}

fn tell(edition: &Edition, counted: &Counted, json: bool) -> Result<(), Failure> {
    let Counted { documents, passages, fresh, passed_over } = counted;
    if json {
        let line = json!({
            "edition": edition.to_string(), "documents": documents, "passages": passages, "new": fresh,
            "passed_over": passed_over,
        });
        return print(&format!("{line}\n"));
    }
    for file in passed_over {
        print(&format!("passed over: {} (not text, or of no known form)\n", file.display()))?;
    }
    print(&format!("{edition}: {documents} documents, {passages} passages, {fresh} of them new\n"))
}

/// Files of the folders that are named, in order, each with the folder that it was found in.
fn files(paths: &[PathBuf]) -> Result<Vec<(PathBuf, PathBuf)>, Failure> {
    let mut found = Vec::new();
    for path in paths {
        collect(path, path, 0, &mut found)?;
    }
    if found.is_empty() {
        return Err(Failure::not_found("there is no file to take in"));
    }
    found.sort();
    Ok(found)
}

fn collect(
    root: &Path,
    path: &Path,
    depth: usize,
    found: &mut Vec<(PathBuf, PathBuf)>,
) -> Result<(), Failure> {
    let wrong = |error| Failure::input(format!("{}: {error}", path.display()));
    if !std::fs::metadata(path).map_err(wrong)?.is_dir() {
        found.push((root.to_path_buf(), path.to_path_buf()));
        return Ok(());
    }
    if depth >= DEEPEST {
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(wrong)? {
        let entry = entry.map_err(wrong)?;
        // Hidden folders are not documents.
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            collect(root, &entry.path(), depth.saturating_add(1), found)?;
        }
    }
    Ok(())
}

/// A document's name: its path below what was named.
fn name_of(root: &Path, file: &Path) -> String {
    let below = file.strip_prefix(root).ok().filter(|below| !below.as_os_str().is_empty());
    let name = below.or_else(|| file.file_name().map(Path::new)).unwrap_or(file);
    name.display().to_string()
}

fn read(file: &Path, document: &str) -> Result<Option<Vec<Passage>>, Failure> {
    let wrong = |error| Failure::input(format!("{}: {error}", file.display()));
    if std::fs::metadata(file).map_err(wrong)?.len() > LARGEST {
        return Ok(None);
    }
    let bytes = std::fs::read(file).map_err(wrong)?;
    let Ok(text) = String::from_utf8(bytes) else { return Ok(None) };
    passages(document, &text)
        .map_err(|error| Failure::input(format!("{}: {error}", file.display())))
}

struct Writes<'a> {
    recall: &'a dyn Recall,
    embedder: Option<&'a dyn Embedder>,
    access: &'a Access,
}

impl Writes<'_> {
    /// Puts what is new of a document; answers how many passages that were.
    async fn document(
        &self,
        edition: &Edition,
        document: &str,
        all: Vec<Passage>,
    ) -> Result<usize, Failure> {
        let thread = document_thread(edition, document);
        let redact = memory::redact();
        let now = clock().now();
        let mut fresh = 0_usize;
        let pieces: Vec<Fragment> = (0_u64..)
            .zip(all)
            .map(|(turn, Passage { section, text })| {
                let id =
                    FragmentId { tenant: self.access.tenant().clone(), thread, turn, fragment: 0 };
                let text = redact(&text);
                Fragment {
                    id,
                    origin: Origin::Document {
                        collection: edition.collection.clone(),
                        version: edition.version.clone(),
                        document: document.to_owned(),
                        section,
                    },
                    kind: Kind::Document,
                    at: now,
                    tokens: u32::try_from(tokens(&text)).unwrap_or(u32::MAX),
                    text,
                    entities: Vec::new(),
                    importance: 0.0,
                    explanation: None,
                    facts: Vec::new(),
                }
            })
            .collect();
        for part in pieces.chunks(MOST_TEXTS) {
            fresh = fresh.saturating_add(self.part(part).await?);
        }
        Ok(fresh)
    }

    async fn part(&self, part: &[Fragment]) -> Result<usize, Failure> {
        let ids: Vec<FragmentId> = part.iter().map(|piece| piece.id.clone()).collect();
        let there = self.recall.get(self.access, &ids).await?;
        let is_there = |piece: &Fragment| {
            there.iter().any(|kept| {
                kept.fragment.id == piece.id
                    && kept.fragment.text == piece.text
                    && (self.embedder.is_none() || kept.vector.is_some())
            })
        };
        let fresh: Vec<Fragment> = part.iter().filter(|piece| !is_there(piece)).cloned().collect();
        if fresh.is_empty() {
            return Ok(0);
        }
        let kept = with_vectors(self.embedder, fresh.into_iter().map(Kept::new).collect()).await?;
        let put = self.recall.put(self.access, kept).await?;
        if put.forgotten > 0 {
            let why = format!("{} passages were withdrawn at a later time than now", put.forgotten);
            return Err(
                Failure::input(why).and("check this machine's clock, or use another version")
            );
        }
        Ok(put.kept)
    }
}

async fn with_vectors(
    embedder: Option<&dyn Embedder>,
    mut kept: Vec<Kept>,
) -> Result<Vec<Kept>, Failure> {
    let Some(embedder) = embedder else { return Ok(kept) };
    let texts: Vec<String> = kept.iter().map(|one| one.fragment.text.clone()).collect();
    for (one, vector) in kept.iter_mut().zip(embedder.embed(&texts).await?) {
        one.vector = Some(vector);
    }
    Ok(kept)
}

/// Makes every vector anew, in the space of the embedder that is set. It may be ended and begun anew.
pub(super) async fn reindex(context: &Context, place: &MemoryPlace) -> Result<Exit, Failure> {
    let (recall, access) = open(context, place)?;
    let embedder: Arc<dyn Embedder> = memory::embedder(&context.common)?;
    let space = embedder.space().await?;
    recall.settle(space.clone()).await?;
    let embedder = space.is_some().then_some(embedder);
    let total = recall.size(&access).await?.fragments;
    let filter = Filter { all_editions: true, ..Filter::default() };
    let (mut after, mut seen, mut made) = (None, 0_usize, 0_usize);
    loop {
        let page = recall.list(&access, &filter, after.as_ref(), MOST_TEXTS).await?;
        let Some(last) = page.last() else { break };
        after = Some(last.fragment.id.clone());
        seen = seen.saturating_add(page.len());
        let ids: Vec<FragmentId> = page.into_iter().map(|kept| kept.fragment.id).collect();
        let bare =
            recall.get(&access, &ids).await?.into_iter().filter(|kept| kept.vector.is_none());
        let bare: Vec<Kept> = bare.collect();
        if let Some(embedder) = &embedder
            && !bare.is_empty()
        {
            made = made.saturating_add(bare.len());
            recall.put(&access, with_vectors(Some(embedder.as_ref()), bare).await?).await?;
        }
        progress(&format!("{seen} of {total}"));
    }
    progress_done();
    let held = space.map_or_else(|| "words alone".to_owned(), |space| space.to_string());
    if place.json {
        print(&format!("{}\n", json!({"seen": seen, "made": made, "space": held})))?;
    } else {
        print(&format!("{seen} memories, {made} vectors made: {held}\n"))?;
    }
    Ok(Exit::Done)
}

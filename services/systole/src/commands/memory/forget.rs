//! `systole memory forget`: what was named leaves every tier, with a tombstone that stops writers that
//! come late, a receipt of what went, and a search of the raw bytes that proves it.

use std::path::{Path, PathBuf};

use ports::BusError;
use ports::recall::{Access, Recall, Scope, parse_id};
use proto::envelope::Envelope;
use proto::ids::{Sequence, ThreadRef};
use proto::input::InputBody;
use proto::record::Record;
use proto::time::Timestamp;
use serde_json::json;

use super::{Context, open, print};
use crate::arguments::MemoryForget;
use crate::failure::{Exit, Failure};
use crate::wiring::memory::file_of;
use crate::wiring::{Store, clock};

/// The most words that are searched for afterwards.
const MOST_WORDS: usize = 256;
/// Words shorter than this are found by chance.
const SHORTEST_WORD: usize = 9;
/// The most threads of a tenant that are looked at.
const THREADS: usize = 1_000_000;

/// What went from where.
#[derive(Debug, Default)]
struct Receipt {
    tiers: Vec<(String, u64)>,
    /// What is searched for in the bytes afterwards.
    words: Vec<String>,
    left: Vec<(String, PathBuf)>,
    /// What this command does not reach.
    beyond: Vec<&'static str>,
}

/// Forgets, and prints the receipt. What is still found afterwards is a failure.
pub(super) async fn forget(context: &Context, asked: &MemoryForget) -> Result<Exit, Failure> {
    let (recall, access) = open(context, &asked.place)?;
    let now = clock().now();
    let mut receipt = Receipt::default();
    let needs_store = asked.thread.is_some() || asked.subject.is_some() || asked.all;
    if needs_store && context.common.qdrant.is_none() {
        let store = open_store(context)?;
        let done =
            forget_in_store(&store, &access, asked, (recall.as_ref(), now), &mut receipt).await;
        store.close().await?;
        done?;
    } else if needs_store {
        receipt.beyond.push("the records, results and states of the deployment's threads");
    }
    receipt.words.extend(asked.subject.as_deref().map(|subject| subject.trim().to_owned()));
    for scope in scopes(asked, &access)? {
        let gone = recall.forget(&access, &scope, now).await?;
        receipt.tiers.push((format!("long-term memory, {scope}"), gone));
    }
    drop(recall);
    receipt.beyond.push("recordings that `systole run --record` wrote into your own files");
    if context.common.qdrant.is_none() {
        search(&context.common.store, &mut receipt)?;
    }
    tell(&receipt, asked.place.json)?;
    Ok(if receipt.left.is_empty() { Exit::Done } else { Exit::Failed })
}

fn open_store(context: &Context) -> Result<Store, Failure> {
    Store::open_measured(&context.common, true, |journal| journal).map_err(|error| {
        let is_held = matches!(error, BusError::Locked(_));
        let failure = Failure::from(error);
        let advice = "stop the process that runs on the store, then forget again: what it has in \
                      memory would be written again";
        if is_held { failure.and(advice) } else { failure }
    })
}

/// Long-term memory first gets its tombstones, so that nothing is indexed again meanwhile.
async fn forget_in_store(
    store: &Store,
    access: &Access,
    asked: &MemoryForget,
    (recall, now): (&dyn Recall, Timestamp),
    receipt: &mut Receipt,
) -> Result<(), Failure> {
    let all = store.ports().journal.threads(access.tenant(), THREADS).await?;
    for thread in all {
        let said = said(store, &thread).await?;
        let is_meant = match (&asked.thread, &asked.subject) {
            (Some(id), _) => thread.thread == *id,
            (None, Some(subject)) => names(&said, subject),
            (None, None) => true,
        };
        if !is_meant {
            continue;
        }
        receipt.note_words(&said);
        let gone = recall.forget(access, &Scope::Thread { thread: thread.thread }, now).await?;
        receipt.tiers.push((format!("long-term memory, thread {}", thread.thread), gone));
        for (tier, rows) in store.forget_thread(&thread).await? {
            receipt.tiers.push((format!("{tier} of thread {}", thread.thread), rows));
        }
    }
    Ok(())
}

fn scopes(asked: &MemoryForget, access: &Access) -> Result<Vec<Scope>, Failure> {
    let mut scopes = Vec::new();
    scopes.extend(asked.thread.map(|thread| Scope::Thread { thread }));
    scopes.extend(asked.subject.as_deref().map(Scope::subject));
    scopes.extend(asked.all.then_some(Scope::Tenant));
    scopes.extend(asked.edition.clone().map(|edition| Scope::Edition { edition }));
    if let Some(id) = &asked.id {
        let id = parse_id(access, id).map_err(|error| Failure::input(error.to_string()))?;
        scopes.push(Scope::Fragment { id });
    }
    Ok(scopes)
}

/// The payloads of a thread's records.
async fn said(store: &Store, thread: &ThreadRef) -> Result<Vec<String>, Failure> {
    let records = store.ports().journal.read(thread, Sequence::NONE, Sequence::NONE).await?;
    Ok(records.iter().map(|stored| String::from_utf8_lossy(&stored.payload).into_owned()).collect())
}

fn names(said: &[String], subject: &str) -> bool {
    let subject = subject.trim().to_lowercase();
    !subject.is_empty() && said.iter().any(|text| text.to_lowercase().contains(&subject))
}

impl Receipt {
    /// The longest words that people said: long enough to be in no other place by chance.
    fn note_words(&mut self, said: &[String]) {
        for payload in said {
            let Ok(envelope) = Envelope::decode(payload.as_bytes()) else { continue };
            let Record::Input(input) = envelope.body else { continue };
            let (InputBody::Message(message)
            | InputBody::Steer(message)
            | InputBody::Interrupt(message)) = input.body
            else {
                continue;
            };
            let words = message.text.split(|c: char| !c.is_alphanumeric());
            let long = words.filter(|word| word.len() >= SHORTEST_WORD);
            for word in long {
                if self.words.len() < MOST_WORDS && !self.words.iter().any(|known| known == word) {
                    self.words.push(word.to_owned());
                }
            }
        }
    }
}

/// Looks for the words in every byte of the store's files.
fn search(store: &Path, receipt: &mut Receipt) -> Result<(), Failure> {
    let memory = file_of(store);
    for file in [store.to_path_buf(), log_of(store), memory.clone(), log_of(&memory)] {
        let bytes = match std::fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(Failure::other(&file.display().to_string(), error)),
        };
        let haystack = String::from_utf8_lossy(&bytes);
        for word in &receipt.words {
            if haystack.contains(word.as_str()) {
                receipt.left.push((word.clone(), file.clone()));
            }
        }
    }
    Ok(())
}

fn log_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}

fn tell(receipt: &Receipt, json: bool) -> Result<(), Failure> {
    if json {
        let tiers: Vec<_> =
            receipt.tiers.iter().map(|(tier, gone)| json!({"tier": tier, "gone": gone})).collect();
        let left: Vec<_> =
            receipt.left.iter().map(|(_, file)| file.display().to_string()).collect();
        let line = json!({
            "forgotten": tiers, "searched_for": receipt.words.len(), "found_in": left,
            "beyond": receipt.beyond,
        });
        return print(&format!("{line}\n"));
    }
    for (tier, gone) in &receipt.tiers {
        print(&format!("{gone:>8}  {tier}\n"))?;
    }
    let words = receipt.words.len();
    if words == 0 {
        print("it had no long word to search the bytes for\n")?;
    } else if receipt.left.is_empty() {
        print(&format!("searched every byte for {words} of its longest words: none is left\n"))?;
    }
    for (word, file) in &receipt.left {
        let place = file.display();
        print(&format!("`{word}` is still in {place}: another thread may say it too\n"))?;
    }
    for beyond in &receipt.beyond {
        print(&format!("not reached: {beyond}\n"))?;
    }
    Ok(())
}

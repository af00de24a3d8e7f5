//! What the rules are written with.

use memory_core::fact::{Fact, FactId};
use memory_core::fragment::{Fragment, FragmentId, Origin};
use memory_core::kind::Kind;
use ports::recall::{Access, Edition, Hit, Kept, Put, Query, Recall, Space, document_thread};
use proto::ids::ThreadId;
use proto::time::Timestamp;

use super::super::Broken;
use super::super::kit::tenant;

/// Days are long, so that adapters that count in seconds see them too.
pub(super) fn now() -> Timestamp {
    Timestamp(1_800_000_000_000)
}

/// Thirty days before.
pub(super) fn long_ago() -> Timestamp {
    now().before(std::time::Duration::from_hours(24 * 30))
}

pub(super) fn acme() -> Access {
    Access::of_caller(tenant("acme"))
}

pub(super) fn globex() -> Access {
    Access::of_caller(tenant("globex"))
}

pub(super) fn thread(n: u64) -> ThreadId {
    ThreadId::from_parts(1_767_225_600_000 + n, u128::from(n))
}

/// A part of the first turn of the `n`th thread.
pub(super) fn id(n: u64, part: u32) -> FragmentId {
    FragmentId { tenant: tenant("acme"), thread: thread(n), turn: 1, fragment: part }
}

/// What was said in the first turn of a thread.
pub(super) fn said(n: u64, part: u32, text: &str) -> Kept {
    Kept::new(Fragment {
        id: id(n, part),
        origin: Origin::User,
        kind: Kind::Talk,
        text: text.to_owned(),
        at: now().before(std::time::Duration::from_mins(1)),
        tokens: 1,
        entities: Vec::new(),
        importance: 0.0,
        explanation: None,
        facts: Vec::new(),
    })
}

/// The same in another turn.
pub(super) fn at_turn(n: u64, turn: u64, text: &str) -> Kept {
    let mut kept = said(n, 0, text);
    kept.fragment.id.turn = turn;
    kept
}

/// The same of somebody else.
pub(super) fn of(access: &Access, mut kept: Kept) -> Kept {
    kept.fragment.id.tenant = access.tenant().clone();
    kept
}

/// A fragment that states a fact.
pub(super) fn stated(n: u64, part: u32, subject: &str, attribute: &str, value: &str) -> Kept {
    let mut kept = said(n, part, &format!("{subject} {attribute} {value}"));
    kept.fragment.facts.push(Fact {
        id: FactId { source: id(n, part), number: 0 },
        subject: subject.to_owned(),
        attribute: attribute.to_owned(),
        value: value.to_owned(),
        valid_from: kept.fragment.at,
        invalid_from: None,
        supersedes: None,
        superseded_by: None,
    });
    kept
}

/// A part of a document of an edition.
pub(super) fn passage(edition: &Edition, part: u64, text: &str) -> Kept {
    let mut kept = said(1, 0, text);
    let thread = document_thread(edition, "policy.md");
    kept.fragment.id = FragmentId { thread, turn: part, ..kept.fragment.id };
    kept.fragment.kind = Kind::Document;
    kept.fragment.origin = Origin::Document {
        collection: edition.collection.clone(),
        version: edition.version.clone(),
        document: "policy.md".to_owned(),
        section: "Money".to_owned(),
    };
    kept
}

pub(super) fn space() -> Space {
    Space { model: "test".to_owned(), dimension: 3 }
}

pub(super) fn vector(x: f32, y: f32) -> Vec<f32> {
    vec![x, y, 0.0]
}

pub(super) fn near(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| (a - b).abs() < 0.01)
}

pub(super) async fn put(memory: &dyn Recall, fragments: Vec<Kept>) -> Result<Put, Broken> {
    Ok(memory.put(&acme(), fragments).await?)
}

pub(super) fn ask(text: &str) -> Query {
    Query::words(text, 10, now())
}

pub(super) fn shown(hits: &[Hit]) -> Vec<FragmentId> {
    hits.iter().map(|hit| hit.kept.fragment.id.clone()).collect()
}

pub(super) async fn found(memory: &dyn Recall, text: &str) -> Result<Vec<FragmentId>, Broken> {
    Ok(shown(&memory.query(&acme(), &ask(text)).await?))
}

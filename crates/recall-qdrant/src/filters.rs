//! The filter of a tenant. Every request is made with one: there is no other way to make a filter.

use ports::recall::{Access, Edition, Filter as Wanted, Query, Scope};
use proto::time::Timestamp;
use qdrant_client::qdrant::{Condition, Filter, PointId, Range};

use crate::points::{FOREVER, edition_text, float};

/// What a point is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Fragment,
    Tombstone,
}

impl What {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Fragment => "fragment",
            Self::Tombstone => "tombstone",
        }
    }
}

/// A tenant's points of a kind.
pub(crate) fn own(access: &Access, what: What) -> Filter {
    Filter::must([
        Condition::matches("tenant", access.tenant().as_str().to_owned()),
        Condition::matches("what", what.as_str().to_owned()),
    ])
}

/// The same, among these ids.
pub(crate) fn own_ids(access: &Access, ids: Vec<PointId>) -> Filter {
    let mut filter = own(access, What::Fragment);
    filter.must.push(Condition::has_id(ids));
    filter
}

/// A tenant's fragments that fit, whenever they hold.
pub(crate) fn fitting(access: &Access, wanted: &Wanted) -> Filter {
    let mut filter = own(access, What::Fragment);
    if !wanted.kinds.is_empty() {
        let kinds: Vec<String> = wanted.kinds.iter().map(|kind| kind.as_str().to_owned()).collect();
        filter.must.push(Condition::matches("kind", kinds));
    }
    if let Some(thread) = wanted.thread {
        filter.must.push(Condition::matches("thread", thread.to_string()));
    }
    if let Some(thread) = wanted.without {
        filter.must_not.push(Condition::matches("thread", thread.to_string()));
    }
    if let Some(at) = wanted.as_of {
        filter.must.push(Condition::range("at", up_to(at)));
    }
    if !wanted.all_editions {
        let named: Vec<String> = wanted.editions.iter().map(edition_text).collect();
        let mut served = vec![Condition::is_empty("edition")];
        if !named.is_empty() {
            served.push(Condition::matches("edition", named));
        }
        filter.must.push(Filter::should(served).into());
    }
    filter
}

/// The same, of those that hold at the time of the question.
pub(crate) fn answering(access: &Access, query: &Query) -> Filter {
    let mut filter = fitting(access, &query.filter);
    filter.must.push(holds_at(query.about()));
    filter
}

fn holds_at(at: Timestamp) -> Condition {
    Condition::range("until", Range { gt: Some(float(at.0.min(FOREVER - 1))), ..Range::default() })
}

fn up_to(at: Timestamp) -> Range {
    Range { lte: Some(float(at.0)), ..Range::default() }
}

/// The parts of a row of turns.
pub(crate) fn turns(thread: &str, from: i64, to: i64) -> Filter {
    let range = Range { gte: Some(float(from)), lte: Some(float(to)), ..Range::default() };
    Filter::must([Condition::matches("thread", thread.to_owned()), Condition::range("turn", range)])
}

/// A tenant's fragments that a scope covers.
pub(crate) fn covered(access: &Access, scope: &Scope, id: impl Fn() -> Option<PointId>) -> Filter {
    let mut filter = own(access, What::Fragment);
    match scope {
        Scope::Tenant => {}
        Scope::Thread { thread } => {
            filter.must.push(Condition::matches("thread", thread.to_string()));
        }
        Scope::Subject { hash } => filter.must.push(Condition::matches("subjects", hash.clone())),
        Scope::Fragment { .. } => filter.must.push(Condition::has_id(id())),
        Scope::Edition { edition } => {
            filter.must.push(Condition::matches("edition", named(edition)));
        }
    }
    filter
}

fn named(edition: &Edition) -> String {
    edition_text(edition)
}

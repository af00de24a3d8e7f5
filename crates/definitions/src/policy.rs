//! What a worker keeps to around a tool: what is shared, what waits, what stands in.

use serde_json::{Value, json};

use crate::run::Run;

/// The rules of one tool that only its workers need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Policy {
    /// What one mutation at a time holds.
    pub resource: Option<Resource>,
    /// How long a result may be used again; 0 for never. Only for read-only tools.
    pub cache_ttl_ms: u64,
    /// How old a result may be that stands in for a failure; 0 for none. Only for read-only tools.
    pub stale_ms: u64,
    /// How many calls may run at once.
    pub concurrency: Concurrency,
    /// Other ways to run the tool, tried in this order when the one before did not do.
    pub fallbacks: Vec<Run>,
    /// How its results are shortened.
    pub shaping: Shaping,
}

/// What one mutation at a time holds, on all workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    /// Its name, a [`crate::template::Template`] over the arguments.
    pub name: String,
    /// How long it rests after each mutation.
    pub cool_down_ms: u64,
    /// How often it may be changed.
    pub rate: Option<Rate>,
}

/// At most so many in each span of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub most: u32,
    /// In how long.
    pub per_ms: u64,
}

/// How many calls of a tool may run at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Concurrency {
    /// On one worker.
    pub per_worker: Option<u32>,
    /// On all workers together.
    pub fleet: Option<u32>,
}

/// How results that are too long are shortened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shaping {
    /// Paths of a JSON result that are kept, such as `/items/*/id`; all when empty.
    pub keep: Vec<String>,
    /// Rows of a table, or items of a list, that are shown.
    pub rows: Option<u32>,
    /// Which part of a text is shown.
    pub part: Part,
}

/// Which part of a long text is shown; lines about errors always are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Part {
    /// Beginning and end.
    #[default]
    Both,
    /// The beginning.
    Head,
    /// The end.
    Tail,
}

impl Policy {
    /// What counts for the tool's fingerprint, besides its runs.
    pub(crate) fn as_json(&self) -> Value {
        let resource = self.resource.as_ref().map(|resource| {
            let rate = resource.rate.map(|rate| json!([rate.most, rate.per_ms]));
            json!({ "name": resource.name, "cool_down_ms": resource.cool_down_ms, "rate": rate })
        });
        let part = match self.shaping.part {
            Part::Both => "both",
            Part::Head => "head",
            Part::Tail => "tail",
        };
        json!({
            "resource": resource,
            "cache_ttl_ms": self.cache_ttl_ms,
            "stale_ms": self.stale_ms,
            "shape": { "keep": self.shaping.keep, "rows": self.shaping.rows, "part": part },
        })
    }
}

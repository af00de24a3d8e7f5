//! Listens to what planners say about their decisions, so that a run can tell which rule of
//! `planner-core` it never reached, and to everything when somebody reads the story.

use std::fmt::{Debug, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use planner_core::view::Branch;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Subscriber;
use tracing::{Event, Level, Metadata};

static COUNTS: [AtomicU64; Branch::ALL.len()] = [const { AtomicU64::new(0) }; Branch::ALL.len()];

/// Hears `branch` fields; hears all events of planners and workers if it prints.
struct Listener {
    prints: bool,
}

/// Starts to listen, once per process.
pub fn listen(prints: bool) {
    let listener = Listener { prints };
    tracing::subscriber::set_global_default(listener).expect("nobody else listens");
}

/// How often each branch was taken.
pub fn counts() -> Vec<(Branch, u64)> {
    let counted = Branch::ALL.iter().zip(&COUNTS);
    counted.map(|(branch, count)| (*branch, count.load(Ordering::Relaxed))).collect()
}

struct Fields {
    prints: bool,
    branch: Option<usize>,
    line: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "branch" {
            self.branch = Branch::ALL.iter().position(|branch| branch.as_str() == value);
        }
        self.record_debug(field, &value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if self.prints {
            write!(self.line, " {}={value:?}", field.name()).unwrap_or_default();
        }
    }
}

impl Subscriber for Listener {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        let decides = metadata.fields().field("branch").is_some();
        let ours = ["planner", "worker"].iter().any(|name| metadata.target().starts_with(name));
        metadata.is_event() && (decides || (self.prints && ours))
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields { prints: self.prints, branch: None, line: String::new() };
        event.record(&mut fields);
        if self.prints && *event.metadata().level() <= Level::DEBUG {
            crate::say(&format!("        {}:{}", event.metadata().target(), fields.line));
        }
        if let Some(count) = fields.branch.and_then(|place| COUNTS.get(place)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

//! Reads what a worker keeps to around a tool.

use approval_rule::ApprovalRule;
use proto::tool::{Approval, Deadlines};

use crate::fields::Fields;
use crate::http::Method;
use crate::policy::{Concurrency, Part, Policy, Rate, Resource, Shaping};
use crate::problem::Report;
use crate::run::{Run, Surroundings};
use crate::run_reader::{self, Written};
use crate::template::Template;
use crate::times::{self, DAY_MS};
use crate::yaml::{Kind, Place};

const APPROVALS: [(&str, Approval); 3] = [
    ("never", Approval::Never),
    ("always", Approval::Always),
    ("when_tainted", Approval::WhenTainted),
];
const APPROVAL: &str = "one of never, always, when_tainted, { when: \"<condition>\" }";
const PARTS: [(&str, Part); 3] = [("both", Part::Both), ("head", Part::Head), ("tail", Part::Tail)];
/// Calls of one tool at once.
const MOST_AT_ONCE: u64 = 10_000;
/// Mutations of one resource that are remembered.
const MOST_PER_SPAN: u32 = 64;
/// Other ways to run a tool.
const MOST_FALLBACKS: usize = 4;

/// A policy with the places that have to be compared with the parameters.
pub(crate) struct ReadPolicy<'n> {
    pub(crate) policy: Policy,
    pub(crate) resource: Option<(Template, Place<'n>)>,
    pub(crate) fallbacks: Vec<Written<'n>>,
}

/// Reads a policy; `None` when something about it is wrong.
pub(crate) fn read<'n>(
    fields: &mut Fields<'n>,
    method: Method,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<ReadPolicy<'n>> {
    let at = fields.get("resource");
    let resource = at.as_ref().map(|at| resource(at, report));
    let cache = span_or(fields, "cache_ttl_ms", 0, report);
    let stale = span_or(fields, "stale_ms", 0, report);
    let concurrency = match fields.get("concurrency") {
        Some(at) => concurrency(&at, report),
        None => Some(Concurrency::default()),
    };
    let fallbacks = match fields.get("fallback") {
        Some(at) => fallbacks(&at, method, around, report),
        None => Some(Vec::new()),
    };
    let shaping = match fields.get("shape") {
        Some(at) => shaping(&at, report),
        None => Some(Shaping::default()),
    };
    let (resource, place) = match resource {
        Some(resource) => {
            let resource = resource?;
            let template = Template::parse(&resource.name);
            (Some(resource), at.map(|at| (template, at)))
        }
        None => (None, None),
    };
    let fallbacks = fallbacks?;
    let runs: Vec<Run> = fallbacks.iter().map(|written| written.run.clone()).collect();
    let (cache_ttl_ms, stale_ms) = (cache?, stale?);
    let (concurrency, shaping) = (concurrency?, shaping?);
    let policy = Policy { resource, cache_ttl_ms, stale_ms, concurrency, fallbacks: runs, shaping };
    Some(ReadPolicy { policy, resource: place, fallbacks })
}

fn span_or(
    fields: &mut Fields<'_>,
    name: &'static str,
    otherwise: u64,
    report: &mut Report,
) -> Option<u64> {
    match fields.get(name) {
        Some(at) => times::span(&at, times::Unit::Millis, 0, report),
        None => Some(otherwise),
    }
}

/// How long a call may wait and take in all.
pub(crate) fn deadlines(fields: &mut Fields<'_>, report: &mut Report) -> Option<Deadlines> {
    let mut read = |name| match fields.get(name) {
        Some(at) => times::span(&at, times::Unit::Millis, 1, report).map(Some),
        None => Some(None),
    };
    let (start_ms, total_ms) = (read("start_timeout_ms"), read("total_timeout_ms"));
    Some(Deadlines { start_ms: start_ms?, total_ms: total_ms? })
}

/// When a person is asked.
pub(crate) fn approval<'p>(
    at: &Place<'_>,
    parameters: impl Iterator<Item = &'p str>,
    report: &mut Report,
) -> Option<Approval> {
    let Kind::Map(_) = at.node().kind else {
        let text = at.node().as_text();
        let chosen = APPROVALS.iter().find(|(word, _)| Some(*word) == text);
        if chosen.is_none() {
            let names = APPROVALS.iter().map(|(word, _)| *word);
            let meant = text.and_then(|text| argument_check::nearest(text, names));
            let fix = meant
                .map_or_else(|| "write one of them".to_owned(), |word| format!("write `{word}`"));
            report.wrong(at, APPROVAL, fix);
        }
        return chosen.map(|(_, approval)| approval.clone());
    };
    let mut fields = Fields::of(at, report)?;
    let when = fields.required("when", "a condition over the arguments, in CEL", report);
    fields.close(report);
    let when = when?;
    // YAML reads `when: true` as a truth value.
    let text = match when.node().kind {
        Kind::Bool(truth) => truth.to_string(),
        Kind::Null | Kind::Number(_) | Kind::Text(_) | Kind::List(_) | Kind::Map(_) => {
            when.words(report)?.to_owned()
        }
    };
    match ApprovalRule::parse(&text, parameters) {
        Ok(_) => Some(Approval::When(text)),
        Err(bad) => {
            report.broken(&when, "a condition over the arguments, in CEL", bad.found, bad.fix);
            None
        }
    }
}

fn resource(at: &Place<'_>, report: &mut Report) -> Option<Resource> {
    if at.node().as_text().is_some() {
        let name = at.words(report)?.to_owned();
        return Some(Resource { name, ..Resource::default() });
    }
    let mut fields = Fields::of(at, report)?;
    let name = fields.required("name", "what is held, such as `service/{service}`", report);
    let name = name.and_then(|at| at.words(report).map(str::to_owned));
    let cool_down_ms = span_or(&mut fields, "cool_down_ms", 0, report);
    let rate = fields.get("rate").map(|at| rate(&at, report));
    fields.close(report);
    let rate = match rate {
        Some(rate) => Some(rate?),
        None => None,
    };
    Some(Resource { name: name?, cool_down_ms: cool_down_ms?, rate })
}

/// `2 per 10m`.
fn rate(at: &Place<'_>, report: &mut Report) -> Option<Rate> {
    let text = at.text(report)?;
    let parsed = text.split_once(" per ").and_then(|(most, span)| {
        let most: u32 = most.trim().parse().ok()?;
        let per_ms = times::with_unit(span)?;
        let fits = (1..=MOST_PER_SPAN).contains(&most) && (1..=DAY_MS).contains(&per_ms);
        fits.then_some(Rate { most, per_ms })
    });
    if parsed.is_none() {
        let expected = format!("1 to {MOST_PER_SPAN} in a span of at most a day");
        report.wrong(at, expected, "write such as `2 per 10m` or `1 per 30s`");
    }
    parsed
}

fn concurrency(at: &Place<'_>, report: &mut Report) -> Option<Concurrency> {
    let number = |at: Place<'_>, report: &mut Report| {
        at.whole(1, MOST_AT_ONCE, report).and_then(|number| u32::try_from(number).ok())
    };
    if let Kind::Number(_) = at.node().kind {
        let per_worker = Some(number(at.clone(), report)?);
        return Some(Concurrency { per_worker, fleet: None });
    }
    let mut fields = Fields::of(at, report)?;
    let per_worker = fields.get("per_worker").map(|at| number(at, report));
    let fleet = fields.get("fleet").map(|at| number(at, report));
    fields.close(report);
    let told = |limit: Option<Option<u32>>| match limit {
        Some(Some(limit)) => Some(Some(limit)),
        Some(None) => None,
        None => Some(None),
    };
    Some(Concurrency { per_worker: told(per_worker)?, fleet: told(fleet)? })
}

fn fallbacks<'n>(
    at: &Place<'n>,
    method: Method,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Vec<Written<'n>>> {
    let places = match &at.node().kind {
        Kind::List(items) if items.iter().all(|item| matches!(item.kind, Kind::Map(_))) => {
            at.list(report)?
        }
        Kind::Map(_) => vec![at.clone()],
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => {
            report.wrong(at, "a list of runs", "write `- command: […]` or `- http: …` lines");
            return None;
        }
    };
    if places.len() > MOST_FALLBACKS {
        report.wrong(at, format!("at most {MOST_FALLBACKS} runs"), "leave some out");
        return None;
    }
    places.iter().map(|at| run_reader::read(at, method, around, report)).collect()
}

fn shaping(at: &Place<'_>, report: &mut Report) -> Option<Shaping> {
    let mut fields = Fields::of(at, report)?;
    let keep = match fields.get("keep") {
        Some(at) => paths(&at, report),
        None => Some(Vec::new()),
    };
    let rows = fields.get("rows").map(|at| at.whole(1, 10_000, report));
    let part = match fields.get("part") {
        Some(at) => at.choice(&PARTS, report),
        None => Some(Part::Both),
    };
    fields.close(report);
    let rows = match rows {
        Some(rows) => Some(u32::try_from(rows?).ok()?),
        None => None,
    };
    Some(Shaping { keep: keep?, rows, part: part? })
}

fn paths(at: &Place<'_>, report: &mut Report) -> Option<Vec<String>> {
    let paths = at.texts(report)?;
    if let Some(path) = paths.iter().find(|path| !path.starts_with('/')) {
        let fix = "write such as `/status` or `/items/*/id`";
        report.broken(at, "JSON pointers, in which `*` stands for each", format!("`{path}`"), fix);
        return None;
    }
    Some(paths)
}

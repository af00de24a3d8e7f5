//! Reads a rehearsal file.

use definitions::fields::Fields;
use definitions::problem::Report;
use definitions::yaml::{Kind, Node, Place};
use regex::Regex;

use crate::case_reader::cases;
use crate::condition::{Condition, Since, Watch};
use crate::heard::Speaker;
use crate::matcher::Matcher;
use crate::mentions;
use crate::script::{CallRule, Fail, Finish, Pace, Rule, Script};
use crate::template::{Shape, Template};

const SPEAKERS: [(&str, Speaker); 2] = [("user", Speaker::User), ("tool", Speaker::Tool)];
const SCOPES: [(&str, Since); 2] = [("user", Since::User), ("start", Since::Start)];
const FINISHES: [(&str, Finish); 3] =
    [("stop", Finish::Stop), ("tool_calls", Finish::ToolCalls), ("length", Finish::Length)];
const HOUR_MS: u64 = 60 * 60 * 1000;

pub(crate) fn script(file: &str, root: &Node, report: &mut Report) -> Option<Script> {
    let whole = Place::root(root);
    let mut fields = Fields::of(&whole, report)?;
    let speed = optional(fields.get("pace"), report, pace);
    let listed = fields.required("rules", "a list of rules", report);
    let mentions = listed.as_ref().map(mentions::of).unwrap_or_default();
    let rules = listed.and_then(|at| rules(&at, report));
    // Cases are for `rehearse`; a mistake in them is told by whoever reads the file first.
    let cases = fields.get("cases").map_or(Some(Vec::new()), |at| cases(&at, report));
    fields.close(report);
    cases?;
    let pace = speed?.unwrap_or_default();
    Some(Script { file: file.to_owned(), rules: rules?, pace, mentions })
}

pub(crate) fn rules(place: &Place<'_>, report: &mut Report) -> Option<Vec<Rule>> {
    let places = place.list(report)?;
    if places.is_empty() {
        report.wrong(place, "at least one rule", "add `- when: { last: user }` with `say: …`");
    }
    let read: Vec<Option<Rule>> = places.iter().map(|place| rule(place, report)).collect();
    unreachable_rules(&places, &read, report);
    read.into_iter().collect()
}

/// A rule that always fits hides the ones behind it.
fn unreachable_rules(places: &[Place<'_>], rules: &[Option<Rule>], report: &mut Report) {
    let is_always = |rule: &Option<Rule>| rule.as_ref().is_some_and(|rule| rule.when.is_always());
    let Some(first) = rules.iter().position(is_always) else { return };
    for place in places.iter().skip(first.saturating_add(1)) {
        let found = format!("one behind rules[{first}], which fits every request");
        report.broken(place, "a rule that can be reached", found, "move it in front of that one");
    }
}

fn rule(place: &Place<'_>, report: &mut Report) -> Option<Rule> {
    let mut fields = Fields::of(place, report)?;
    let when = fields.get("when").map_or(Some(Condition::default()), |at| condition(&at, report));
    let say = optional(fields.get("say"), report, template);
    let reasoning = optional(fields.get("reasoning"), report, template);
    let calls = fields.get("calls").map_or(Some(Vec::new()), |at| calls(&at, report));
    let confidence =
        optional(fields.get("confidence"), report, |at, report| at.number(0.0, 1.0, report));
    let finish = optional(fields.get("finish"), report, |at, report| at.choice(&FINISHES, report));
    let speed = optional(fields.get("pace"), report, pace);
    let fail = optional(fields.get("fail"), report, fail);
    let does =
        ["say", "reasoning", "calls", "fail"].iter().any(|name| place.node().get(name).is_some());
    if !does {
        let fix = "add `say: …`, `calls: […]` or `fail: …`";
        report.broken(place, "a rule that does something", "only its condition", fix);
    }
    fields.close(report);
    if let Some(when) = &when {
        mentions::check_groups(place, &groups(when), report);
    }
    let (fail, fail_times) = fail?.map_or((None, None), |(fail, times)| (Some(fail), times));
    Some(Rule {
        line: place.node().line,
        when: when?,
        say: say?,
        reasoning: reasoning?,
        calls: calls?,
        confidence: confidence?,
        finish: finish?,
        pace: speed?,
        fail,
        fail_times,
    })
}

/// The groups of a rule's `user_matches`, by number and by name.
fn groups(when: &Condition) -> Vec<String> {
    let names = when.user_matches.iter().flat_map(|pattern| pattern.capture_names().enumerate());
    names
        .flat_map(|(number, name)| [Some(number.to_string()), name.map(str::to_owned)])
        .flatten()
        .collect()
}

/// Absent is fine, wrong is not.
#[expect(clippy::option_option, reason = "absent and wrong are different answers")]
pub(crate) fn optional<'n, T>(
    at: Option<Place<'n>>,
    report: &mut Report,
    read: impl FnOnce(&Place<'n>, &mut Report) -> Option<T>,
) -> Option<Option<T>> {
    match at {
        Some(at) => read(&at, report).map(Some),
        None => Some(None),
    }
}

fn condition(place: &Place<'_>, report: &mut Report) -> Option<Condition> {
    let mut fields = Fields::of(place, report)?;
    let since = optional(fields.get("since"), report, |at, report| at.choice(&SCOPES, report));
    let last = optional(fields.get("last"), report, |at, report| at.choice(&SPEAKERS, report));
    let model = optional(fields.get("model"), report, pattern);
    let user_matches = optional(fields.get("user_matches"), report, pattern);
    let turn = fields.get("turn").map_or(Some(Vec::new()), |at| matchers(&at, report));
    let called = fields.get("called").map_or(Some(Vec::new()), |at| at.texts(report));
    let not_called = fields.get("not_called").map_or(Some(Vec::new()), |at| at.texts(report));
    let times = fields.get("times").map_or(Some(Vec::new()), |at| by_name(&at, report));
    let mut observed = fields.get("observed").map_or(Some(Vec::new()), |at| watches(&at, report));
    let newest = newest(&mut fields, report);
    fields.close(report);
    if let (Some(observed), Some(Some(watch))) = (observed.as_mut(), newest.as_ref()) {
        observed.push(watch.clone());
    }
    newest?;
    Some(Condition {
        since: since?.unwrap_or_default(),
        last: last?,
        model: model?,
        user_matches: user_matches?,
        turn: turn?,
        called: called?,
        not_called: not_called?,
        times: times?,
        observed: observed?,
    })
}

/// `tool`, `observation` and `observation_matches`: the newest observation, of that tool or of any.
#[expect(clippy::option_option, reason = "absent and wrong are different answers")]
fn newest(fields: &mut Fields<'_>, report: &mut Report) -> Option<Option<Watch>> {
    let tool =
        optional(fields.get("tool"), report, |at, report| at.words(report).map(str::to_owned));
    let text = optional(fields.get("observation_matches"), report, pattern);
    let values = fields.get("observation").map_or(Some(Vec::new()), |at| by_name(&at, report));
    let watch = Watch { tool: tool?, text: text?, values: values? };
    let is_empty = watch.tool.is_none() && watch.text.is_none() && watch.values.is_empty();
    Some((!is_empty).then_some(watch))
}

/// `observed: { tool: { path: matcher } }`; the path `$text` is the whole text.
fn watches(place: &Place<'_>, report: &mut Report) -> Option<Vec<Watch>> {
    Fields::of(place, report)?;
    let entries = place.node().entries().iter();
    let watches: Vec<Option<Watch>> = entries
        .map(|entry| {
            let at = place.child(&entry.name, &entry.node);
            let tool = Some(entry.name.clone());
            if entry.node.is_null() {
                return Some(Watch { tool, ..Watch::default() });
            }
            let mut values = by_name(&at, report)?;
            let text = values.iter().position(|(path, _)| path == "$text");
            let text = match text.map(|index| values.remove(index)) {
                Some((_, Matcher::Matches(pattern))) => Some(pattern),
                Some(_) => {
                    report.wrong(&at, "`$text: { matches: … }`", "write a pattern for the text");
                    return None;
                }
                None => None,
            };
            Some(Watch { tool, text, values })
        })
        .collect();
    watches.into_iter().collect()
}

/// Matchers by name or path; a map may hold several for one value.
pub(crate) fn by_name(place: &Place<'_>, report: &mut Report) -> Option<Vec<(String, Matcher)>> {
    Fields::of(place, report)?;
    let mut all = Some(Vec::new());
    for entry in place.node().entries() {
        let read = matchers(&place.child(&entry.name, &entry.node), report);
        match (all.as_mut(), read) {
            (Some(all), Some(read)) => {
                all.extend(read.into_iter().map(|matcher| (entry.name.clone(), matcher)));
            }
            (Some(_) | None, _) => all = None,
        }
    }
    all
}

/// The name of a test and how it is made.
type Maker<T> = (&'static str, fn(T) -> Matcher);

/// A plain value is equality; a map names tests.
pub(crate) fn matchers(place: &Place<'_>, report: &mut Report) -> Option<Vec<Matcher>> {
    let Kind::Map(_) = place.node().kind else {
        return Some(vec![Matcher::Equals(place.node().to_json())]);
    };
    let mut fields = Fields::of(place, report)?;
    let mut found = Vec::new();
    let plain: [Maker<serde_json::Value>; 2] = [("equals", Matcher::Equals), ("not", Matcher::Not)];
    for (name, make) in plain {
        found.extend(fields.get(name).map(|at| Some(make(at.node().to_json()))));
    }
    let limits: [Maker<f64>; 4] = [
        ("above", Matcher::Above),
        ("at_least", Matcher::AtLeast),
        ("below", Matcher::Below),
        ("at_most", Matcher::AtMost),
    ];
    for (name, make) in limits {
        let at = fields.get(name);
        found.extend(at.map(|at| at.number(f64::MIN, f64::MAX, report).map(make)));
    }
    found.extend(fields.get("one_of").map(|at| {
        let items = at.list(report)?;
        Some(Matcher::OneOf(items.iter().map(|item| item.node().to_json()).collect()))
    }));
    found.extend(fields.get("matches").map(|at| pattern(&at, report).map(Matcher::Matches)));
    found.extend(fields.get("exists").map(|at| at.truth(report).map(Matcher::Exists)));
    fields.close(report);
    found.into_iter().collect()
}

fn pattern(place: &Place<'_>, report: &mut Report) -> Option<Regex> {
    match Regex::new(place.text(report)?) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            let text = error.to_string();
            let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
            report.broken(
                place,
                "a regular expression",
                reason,
                "correct it; write it in 'single quotes'",
            );
            None
        }
    }
}

fn template(place: &Place<'_>, report: &mut Report) -> Option<Template> {
    match Template::parse(place.text(report)?) {
        Ok(template) => Some(template),
        Err(reason) => {
            let fix = "use user, input.path, observed.tool.path or turn";
            report.broken(place, "text with `{{path}}` for values", reason, fix);
            None
        }
    }
}

fn calls(place: &Place<'_>, report: &mut Report) -> Option<Vec<CallRule>> {
    let items = place.list(report)?;
    let calls: Vec<Option<CallRule>> = items.iter().map(|item| call(item, report)).collect();
    calls.into_iter().collect()
}

fn call(place: &Place<'_>, report: &mut Report) -> Option<CallRule> {
    let mut fields = Fields::of(place, report)?;
    let tool = fields.required("tool", "the tool to call", report);
    let tool = tool.and_then(|at| at.words(report).map(str::to_owned));
    let arguments = match fields.get("arguments") {
        Some(at) => Fields::of(&at, report).and_then(|_| shapes(&at, report)),
        None => Some(Vec::new()),
    };
    fields.close(report);
    Some(CallRule { tool: tool?, arguments: arguments? })
}

fn shapes(place: &Place<'_>, report: &mut Report) -> Option<Vec<(String, Shape)>> {
    let entries = place.node().entries().iter();
    let shapes: Vec<Option<(String, Shape)>> = entries
        .map(|entry| {
            let at = place.child(&entry.name, &entry.node);
            Some((entry.name.clone(), shape(&at, report)?))
        })
        .collect();
    shapes.into_iter().collect()
}

fn shape(place: &Place<'_>, report: &mut Report) -> Option<Shape> {
    match &place.node().kind {
        Kind::Text(_) => template(place, report).map(Shape::Text),
        Kind::Map(_) => shapes(place, report).map(Shape::Map),
        Kind::List(_) => {
            let items = place.list(report)?;
            let shapes: Vec<Option<Shape>> = items.iter().map(|item| shape(item, report)).collect();
            shapes.into_iter().collect::<Option<_>>().map(Shape::List)
        }
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => Some(Shape::Plain(place.node().to_json())),
    }
}

pub(crate) fn pace(place: &Place<'_>, report: &mut Report) -> Option<Pace> {
    let mut fields = Fields::of(place, report)?;
    let tokens = optional(fields.get("tokens_per_second"), report, |at, report| {
        at.number(0.1, 100_000.0, report)
    });
    let first = fields.get("first_token_ms").map_or(Some(0), |at| at.whole(0, HOUR_MS, report));
    fields.close(report);
    Some(Pace { tokens_per_second: tokens?, first_token_ms: first? })
}

/// The failure, and how often it happens.
fn fail(place: &Place<'_>, report: &mut Report) -> Option<(Fail, Option<u64>)> {
    let mut fields = Fields::of(place, report)?;
    let status = optional(fields.get("status"), report, |at, report| at.whole(400, 599, report));
    let wait = optional(fields.get("retry_after"), report, |at, report| at.whole(0, 3600, report));
    let cut =
        optional(fields.get("cut_after"), report, |at, report| at.whole(0, 1_000_000, report));
    let times = optional(fields.get("times"), report, |at, report| at.whole(1, 1000, report));
    fields.close(report);
    let fail = match (status?, cut?) {
        (Some(status), None) => {
            Fail::Status { status: u16::try_from(status).ok()?, retry_after: wait? }
        }
        (None, Some(cut)) => Fail::CutAfter(usize::try_from(cut).ok()?),
        (Some(_), Some(_)) | (None, None) => {
            report.wrong(place, "either `status` or `cut_after`", "write one of the two");
            return None;
        }
    };
    Some((fail, times?))
}

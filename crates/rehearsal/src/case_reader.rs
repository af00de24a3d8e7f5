//! Reads the cases of a rehearsal file.

use std::collections::BTreeSet;

use definitions::fields::Fields;
use definitions::problem::Report;
use definitions::yaml::{Kind, Node, Place};

use crate::case::{Case, Expect, ExpectedCall, Input, Says, Sheet, StandIn, Steer};
use crate::matcher::text_of;
use crate::mentions;
use crate::reader::{by_name, matchers, optional, pace, rules};
use crate::script::Script;

/// The last turn that a word can come in.
const MOST_TURNS: u64 = 1000;

const OUTCOMES: [(&str, &str); 3] =
    [("answered", "answered"), ("failed", "failed"), ("stopped", "stopped")];

pub(crate) fn sheet(file: &str, root: &Node, report: &mut Report) -> Option<Sheet> {
    let whole = Place::root(root);
    let mut fields = Fields::of(&whole, report)?;
    let speed = optional(fields.get("pace"), report, pace);
    let has_cases = root.get("cases").is_some();
    let listed = if has_cases {
        fields.get("rules")
    } else {
        fields.required("rules", "a list of rules, or `cases`", report)
    };
    let mentions = listed.as_ref().map(mentions::of).unwrap_or_default();
    let script = optional(listed, report, |at, report| rules(at, report));
    let cases = fields.get("cases").map_or(Some(Vec::new()), |at| cases(&at, report));
    fields.close(report);
    let pace = speed?.unwrap_or_default();
    let script = script?.map(|rules| Script { file: file.to_owned(), rules, pace, mentions });
    Some(Sheet { script, cases: cases? })
}

/// The cases of a file; names are told apart.
pub(crate) fn cases(place: &Place<'_>, report: &mut Report) -> Option<Vec<Case>> {
    let places = place.list(report)?;
    let read: Vec<Option<Case>> = places.iter().map(|place| case(place, report)).collect();
    let mut names = BTreeSet::new();
    for (place, case) in places.iter().zip(&read) {
        if let Some(case) = case
            && !names.insert(case.name.clone())
        {
            report.broken(place, "a name of its own", case.name.clone(), "rename one of the two");
        }
    }
    read.into_iter().collect()
}

fn case(place: &Place<'_>, report: &mut Report) -> Option<Case> {
    let mut fields = Fields::of(place, report)?;
    let name = fields.required("name", "a name", report);
    let name = name.and_then(|at| at.words(report).map(str::to_owned));
    let input = input(&mut fields, report);
    let steer = fields.get("steer").map_or(Some(Vec::new()), |at| steers(&at, report));
    let approve = fields.get("approve").map_or(Some(Vec::new()), |at| at.texts(report));
    let copies = fields.get("copies").map_or(Some(Vec::new()), |at| texts_by_name(&at, report));
    let real = fields.get("real").map_or(Some(Vec::new()), |at| at.texts(report));
    let tools = fields.get("tools").map_or(Some(Vec::new()), |at| tools(&at, report));
    let expect =
        fields.get("expect").map_or_else(|| Some(Expect::default()), |at| expect(&at, report));
    fields.close(report);
    Some(Case {
        name: name?,
        line: place.node().line,
        input: input?,
        steer: steer?,
        approve: approve?,
        copies: copies?,
        real: real?,
        tools: tools?,
        expect: expect?,
    })
}

/// Words, or data that are sent as JSON, or the name of a file with either.
fn input(fields: &mut Fields<'_>, report: &mut Report) -> Option<Input> {
    let named = fields.either(&[("input", false), ("input_file", true)], report);
    match named {
        Some((true, at)) => Some(Input::File(at.words(report)?.to_owned())),
        Some((false, at)) => Some(Input::Text(text_of(&at.node().to_json()))),
        None => {
            let place = fields.place().clone();
            report.missing(&place, "input", "what the agent is asked", "add `input: …`");
            None
        }
    }
}

fn steers(place: &Place<'_>, report: &mut Report) -> Option<Vec<Steer>> {
    let items = place.list(report)?;
    let read: Vec<Option<Steer>> = items.iter().map(|item| steer(item, report)).collect();
    read.into_iter().collect()
}

fn steer(place: &Place<'_>, report: &mut Report) -> Option<Steer> {
    let mut fields = Fields::of(place, report)?;
    let during = fields.required("during", "the turn during which it comes", report);
    let during = during.and_then(|at| at.whole(0, MOST_TURNS, report));
    let text = fields.required("text", "what the user says", report);
    let text = text.and_then(|at| at.words(report).map(str::to_owned));
    fields.close(report);
    Some(Steer { during: during?.try_into().ok()?, text: text? })
}

fn texts_by_name(place: &Place<'_>, report: &mut Report) -> Option<Vec<(String, String)>> {
    Fields::of(place, report)?;
    let entries = place.node().entries().iter().map(|entry| {
        let text = place.child(&entry.name, &entry.node).words(report)?.to_owned();
        Some((entry.name.clone(), text))
    });
    let read: Vec<Option<(String, String)>> = entries.collect();
    read.into_iter().collect()
}

fn tools(place: &Place<'_>, report: &mut Report) -> Option<Vec<(String, Vec<StandIn>)>> {
    Fields::of(place, report)?;
    let entries = place.node().entries().iter().map(|entry| {
        let at = place.child(&entry.name, &entry.node);
        let read = match &at.node().kind {
            Kind::List(_) => {
                let items = at.list(report)?;
                let read: Vec<Option<StandIn>> =
                    items.iter().map(|item| stand_in(item, report)).collect();
                read.into_iter().collect::<Option<Vec<StandIn>>>()?
            }
            Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Map(_) => {
                vec![stand_in(&at, report)?]
            }
        };
        if read.is_empty() {
            report.wrong(&at, "at least one answer", "add `- says: …`");
        }
        Some((entry.name.clone(), read))
    });
    let read: Vec<Option<(String, Vec<StandIn>)>> = entries.collect();
    read.into_iter().collect()
}

/// `says` or `fails`, for calls with such `arguments`; a plain value is what the tool says.
fn stand_in(place: &Place<'_>, report: &mut Report) -> Option<StandIn> {
    let Kind::Map(_) = &place.node().kind else {
        let says = Says::Result(text_of(&place.node().to_json()));
        return Some(StandIn { arguments: Vec::new(), says });
    };
    let mut fields = Fields::of(place, report)?;
    let arguments = fields.get("arguments").map_or(Some(Vec::new()), |at| by_name(&at, report));
    let said = fields.either(&[("says", true), ("fails", false)], report);
    fields.close(report);
    let Some((works, at)) = said else {
        report.wrong(place, "`says: …` or `fails: …`", "write what the tool answers");
        return None;
    };
    let text = text_of(&at.node().to_json());
    let says = if works { Says::Result(text) } else { Says::Failure(text) };
    Some(StandIn { arguments: arguments?, says })
}

fn expect(place: &Place<'_>, report: &mut Report) -> Option<Expect> {
    let mut fields = Fields::of(place, report)?;
    let outcome =
        optional(fields.get("outcome"), report, |at, report| at.choice(&OUTCOMES, report));
    let code =
        optional(fields.get("code"), report, |at, report| at.words(report).map(str::to_owned));
    let turns = fields.get("turns").map_or(Some(Vec::new()), |at| matchers(&at, report));
    let calls = optional(fields.get("calls"), report, calls);
    let answer = fields.get("answer").map_or(Some(Vec::new()), |at| matchers(&at, report));
    fields.close(report);
    Some(Expect {
        outcome: outcome?.unwrap_or("answered"),
        code: code?,
        turns: turns?,
        calls: calls?,
        answer: answer?,
    })
}

fn calls(place: &Place<'_>, report: &mut Report) -> Option<Vec<ExpectedCall>> {
    let items = place.list(report)?;
    let read: Vec<Option<ExpectedCall>> = items.iter().map(|item| call(item, report)).collect();
    read.into_iter().collect()
}

fn call(place: &Place<'_>, report: &mut Report) -> Option<ExpectedCall> {
    if let Kind::Text(tool) = &place.node().kind {
        return Some(ExpectedCall { tool: tool.clone(), arguments: Vec::new(), code: None });
    }
    let mut fields = Fields::of(place, report)?;
    let tool = fields.required("tool", "the tool that is called", report);
    let tool = tool.and_then(|at| at.words(report).map(str::to_owned));
    let arguments = fields.get("arguments").map_or(Some(Vec::new()), |at| by_name(&at, report));
    let code =
        optional(fields.get("code"), report, |at, report| at.words(report).map(str::to_owned));
    fields.close(report);
    Some(ExpectedCall { tool: tool?, arguments: arguments?, code: code? })
}

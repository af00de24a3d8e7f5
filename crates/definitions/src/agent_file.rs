//! An agent file.

use std::collections::{BTreeMap, BTreeSet};

use proto::agent::{
    Agent, EarlyDispatch, Limits, MemoryUse, Price, Profile, Protocol, Verify, turns_for_complexity,
};
use proto::hash;
use proto::ids::{AgentName, ToolName};
use proto::tool::ToolContract;
use serde_json::Value;

use crate::agent_memory::memory;
use crate::fields::Fields;
use crate::parameters;
use crate::problem::{Problem, Report};
use crate::yaml::{self, Kind, Node, Place};

/// Models that may stand behind the first.
const MOST_FALLBACKS: usize = 8;

/// What an agent file says.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentFile {
    /// The file as the user named it.
    pub file: String,
    /// The agent.
    pub agent: Agent,
    /// Manifests with its tools, as paths relative to the file; never empty.
    pub manifests: Vec<String>,
    /// The rehearsal, as a path relative to the file; when absent, `rehearsal.yaml` beside the
    /// file is meant, if there is one.
    pub rehearsal: Option<String>,
    /// Where each tool is named, for problems found later.
    tools_at: Vec<Node>,
    /// Where each manifest and the rehearsal are named; the whole file where they are not.
    manifests_at: Vec<(Node, String)>,
    rehearsal_at: (Node, String),
}

const PROTOCOLS: [(&str, Protocol); 2] =
    [("native", Protocol::Native), ("contract", Protocol::Contract)];

const DISPATCHES: [(&str, EarlyDispatch); 3] =
    [("safe", EarlyDispatch::Safe), ("all", EarlyDispatch::All), ("off", EarlyDispatch::Off)];

const VERIFIES: [(&str, Verify); 2] = [("off", Verify::Off), ("chain", Verify::Chain)];

const SWITCH: [(&str, bool); 2] = [("on", true), ("off", false)];

const CONTEXT_WINDOW: u64 = 128_000;
const APPROVAL_TIMEOUT_S: u64 = 900;
const MILLION: f64 = 1_000_000.0;

impl AgentFile {
    /// Reads an agent file; everything that is wrong with it is told at once.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Problem>> {
        let root = yaml::read(file, text)?;
        let mut report = Report::new(file);
        let read = read(file, &root, &mut report);
        report.finish(read)
    }

    /// The problem that one of its manifests is not there; `near` is a file beside it that may be
    /// meant.
    pub fn missing_manifest(&self, name: &str, near: Option<&str>) -> Vec<Problem> {
        let index = self.manifests.iter().position(|manifest| manifest == name);
        let at = index.and_then(|index| self.manifests_at.get(index));
        self.missing(at, name, "a tool file", near)
    }

    /// The same for its rehearsal.
    pub fn missing_rehearsal(&self, name: &str, near: Option<&str>) -> Vec<Problem> {
        self.missing(Some(&self.rehearsal_at), name, "a rehearsal", near)
    }

    fn missing(
        &self,
        at: Option<&(Node, String)>,
        name: &str,
        what: &str,
        near: Option<&str>,
    ) -> Vec<Problem> {
        let mut report = Report::new(&*self.file);
        if let Some((node, field)) = at {
            let said = node.as_text() == Some(name) || field.contains('[');
            let fix = match near {
                Some(near) if said => format!("write `{near}`"),
                Some(near) => format!("write `{field}: {near}`"),
                None if said => "write its path, relative to this file, or make it".to_owned(),
                None => format!("make {name}, or write `{field}:` with the path of another"),
            };
            let expected = format!("{what} that is there");
            report.at(node, field, expected, format!("no file `{name}`"), fix);
        }
        report.finish::<()>(None).err().unwrap_or_default()
    }

    /// The tools it names and may not call: it holds none of the permissions that they need.
    pub fn not_permitted<'t>(
        &self,
        tools: impl IntoIterator<Item = &'t ToolContract>,
    ) -> Vec<Problem> {
        let mut report = Report::new(&*self.file);
        for tool in tools {
            let needed = &tool.permissions;
            let holds =
                needed.is_empty() || needed.iter().any(|one| self.agent.permissions.contains(one));
            let index = self.agent.tools.iter().position(|name| *name == tool.name);
            let place = index.and_then(|index| Some((index, self.tools_at.get(index)?)));
            let Some((index, node)) = place.filter(|_| !holds) else { continue };
            let found = format!("`{}`, which needs one of {}", tool.name, needed.join(", "));
            let fix = format!("add `permissions: [{}]`", needed.first().map_or("", String::as_str));
            report.at(
                node,
                &format!("tools[{index}]"),
                "a tool that the agent may call",
                found,
                fix,
            );
        }
        report.finish::<()>(None).err().unwrap_or_default()
    }

    /// The tools it names that are in none of its manifests.
    pub fn unknown_tools(&self, known: &BTreeSet<ToolName>) -> Vec<Problem> {
        let mut report = Report::new(&*self.file);
        let all: Vec<&str> = known.iter().map(ToolName::as_str).collect();
        for (index, (tool, node)) in self.agent.tools.iter().zip(&self.tools_at).enumerate() {
            if known.contains(tool) {
                continue;
            }
            let meant = argument_check::nearest(tool.as_str(), all.iter().copied());
            let fix = meant.map_or_else(
                || format!("add it to {} or take it out here", self.manifests.join(" or ")),
                |meant| format!("write `{meant}`"),
            );
            let expected = format!("a tool of the manifests: {}", all.join(", "));
            report.at(node, &format!("tools[{index}]"), expected, format!("`{tool}`"), fix);
        }
        report.finish::<()>(None).err().unwrap_or_default()
    }
}

fn read(file: &str, root: &Node, report: &mut Report) -> Option<AgentFile> {
    let place = Place::root(root);
    let mut fields = Fields::of(&place, report)?;
    let who = Who::read(&mut fields, report);
    let tools = tools(&mut fields, report);
    let limits = limits(&mut fields, report);
    let (manifests, manifests_at) = match fields.get("manifest") {
        Some(at) => (at.texts(report), places_of(&at)),
        None => (Some(vec!["tools.yaml".to_owned()]), vec![unsaid(&place, "manifest")]),
    };
    let (rehearsal, rehearsal_at) = match fields.get("rehearsal") {
        Some(at) => (at.words(report).map(|text| Some(text.to_owned())), place_of(&at)),
        None => (Some(None), unsaid(&place, "rehearsal")),
    };
    let policy = Policy::read(&mut fields, report);
    fields.close(report);
    let (tools, tools_at) = tools?;
    let agent = agent(who?, tools, limits?, policy?);
    let file = file.to_owned();
    let (manifests, rehearsal) = (manifests?, rehearsal?);
    Some(AgentFile { file, agent, manifests, rehearsal, tools_at, manifests_at, rehearsal_at })
}

fn place_of(at: &Place<'_>) -> (Node, String) {
    (at.node().clone(), at.field().to_owned())
}

fn places_of(at: &Place<'_>) -> Vec<(Node, String)> {
    match &at.node().kind {
        Kind::List(items) => {
            items.iter().enumerate().map(|(i, node)| place_of(&at.item(i, node))).collect()
        }
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::Map(_) => {
            vec![place_of(at)]
        }
    }
}

/// The place of a field that is not there: where the tools are named, which it would serve.
fn unsaid(place: &Place<'_>, name: &str) -> (Node, String) {
    let node = place.node().get("tools").unwrap_or_else(|| place.node());
    (node.clone(), name.to_owned())
}

fn agent(who: Who, tools: Vec<ToolName>, limits: Limits, policy: Policy) -> Agent {
    let mut agent = Agent {
        name: who.name,
        role: who.role,
        instructions: who.instructions,
        model: who.model,
        fallbacks: who.fallbacks,
        temperature: policy.temperature,
        context_window: policy.context_window,
        context_window_ratio: policy.context_window_ratio,
        protocol: policy.protocol,
        profile: policy.profile,
        early_dispatch: policy.early_dispatch,
        tools,
        permissions: who.permissions,
        limits,
        end_intent: policy.end_intent,
        output_schema: policy.output_schema,
        verify: policy.verify,
        memory: policy.memory,
        price: policy.price,
        prices: policy.prices,
        approval_ms: policy.approval_ms,
        fingerprint: hash::fingerprint(""),
    };
    let mut value = serde_json::to_value(&agent).unwrap_or(Value::Null);
    if let Some(object) = value.as_object_mut() {
        object.remove("fingerprint");
    }
    agent.fingerprint = hash::fingerprint(&hash::canonical(&value));
    agent
}

/// Who the agent is.
struct Who {
    name: AgentName,
    role: String,
    instructions: Vec<String>,
    model: String,
    fallbacks: Vec<String>,
    permissions: Vec<String>,
}

impl Who {
    fn read(fields: &mut Fields<'_>, report: &mut Report) -> Option<Self> {
        let name = name(fields, report);
        let role = fields.required("role", "who the agent is and what it does", report);
        let role = role.and_then(|at| at.words(report).map(str::to_owned));
        let models = fields.required("model", "the model to ask for", report);
        let models = models.and_then(|at| models_of(&at, report));
        let instructions =
            fields.get("instructions").map_or(Some(Vec::new()), |at| at.texts(report));
        let permissions = fields.get("permissions").map_or(Some(Vec::new()), |at| at.texts(report));
        let (model, fallbacks) = models?;
        Some(Self {
            name: name?,
            role: role?,
            instructions: instructions?,
            model,
            fallbacks,
            permissions: permissions?,
        })
    }
}

/// The model, and those that are asked when it fails.
fn models_of(at: &Place<'_>, report: &mut Report) -> Option<(String, Vec<String>)> {
    if !matches!(at.node().kind, Kind::List(_)) {
        return Some((at.words(report)?.to_owned(), Vec::new()));
    }
    let items = at.list(report)?;
    let models: Option<Vec<&str>> = items.iter().map(|item| item.words(report)).collect();
    let mut models = models?.into_iter().map(str::to_owned);
    let Some(first) = models.next() else {
        report.wrong(at, "at least one model", "name the model to ask for");
        return None;
    };
    let fallbacks: Vec<String> = models.collect();
    if fallbacks.len() > MOST_FALLBACKS {
        let expected = format!("at most {} models", MOST_FALLBACKS + 1);
        report.wrong(at, expected, "leave the last ones out");
        return None;
    }
    Some((first, fallbacks))
}

fn name(fields: &mut Fields<'_>, report: &mut Report) -> Option<AgentName> {
    let at = fields.required("name", "the agent's name", report)?;
    match AgentName::new(at.text(report)?) {
        Ok(name) => Some(name),
        Err(bad) => {
            report.wrong(&at, bad.rule, "choose such a name");
            None
        }
    }
}

fn tools(fields: &mut Fields<'_>, report: &mut Report) -> Option<(Vec<ToolName>, Vec<Node>)> {
    let at = fields.required("tools", "the names of its tools, `[]` for none", report)?;
    let items = at.list(report)?;
    let mut names = Vec::new();
    let mut places = Vec::new();
    for item in &items {
        let Some(text) = item.text(report) else { continue };
        match ToolName::new(text) {
            Ok(name) if names.contains(&name) => {
                report.wrong(item, "each tool once", "leave the second one out");
            }
            Ok(name) => {
                names.push(name);
                places.push(item.node().clone());
            }
            Err(bad) => report.wrong(item, bad.rule, "write the name that the manifest has"),
        }
    }
    Some((names, places))
}

/// Where a run stops; `complexity` stands for a turn limit.
fn limits(fields: &mut Fields<'_>, report: &mut Report) -> Option<Limits> {
    let complexity = fields.get("complexity");
    let has_complexity = complexity.is_some();
    let turns = match complexity {
        Some(at) => at.whole(1, 5, report).map(Some),
        None => Some(None),
    };
    let mut limits = match fields.get("limits") {
        Some(at) => stated_limits(&at, has_complexity, report)?,
        None => Limits::default(),
    };
    if let Some(complexity) = turns? {
        limits.max_turns = turns_for_complexity(u32::try_from(complexity).ok()?);
    }
    Some(limits)
}

fn stated_limits(at: &Place<'_>, has_complexity: bool, report: &mut Report) -> Option<Limits> {
    let mut fields = Fields::of(at, report)?;
    let usual = Limits::default();
    let mut whole = |name, most: u64, otherwise: u64, report: &mut Report| {
        let field = fields.get(name);
        if let Some(field) = field.as_ref().filter(|_| has_complexity && name == "max_turns") {
            let fix = "leave one of the two out";
            report.wrong(field, "no turn limit beside `complexity`, which sets it", fix);
        }
        field.map_or(Some(otherwise), |at| at.whole(1, most, report))
    };
    let max_turns = whole("max_turns", 1000, usual.max_turns.into(), report);
    let max_tokens = whole("max_tokens", 1_000_000_000, usual.max_tokens, report);
    let max_wall_s = whole("max_wall_s", 30 * 24 * 3600, usual.max_wall_ms / 1000, report);
    let max_tool_calls = whole("max_tool_calls", 100_000, usual.max_tool_calls.into(), report);
    let max_repeats = whole("max_repeats", 1000, usual.max_repeats.into(), report);
    let max_micro_usd = match fields.get("max_usd") {
        Some(at) => at.number(0.0, 1_000_000.0, report).and_then(micro),
        None => Some(usual.max_micro_usd),
    };
    fields.close(report);
    Some(Limits {
        max_turns: u32::try_from(max_turns?).ok()?,
        max_tokens: max_tokens?,
        max_micro_usd: max_micro_usd?,
        max_wall_ms: max_wall_s?.saturating_mul(1000),
        max_tool_calls: u32::try_from(max_tool_calls?).ok()?,
        max_repeats: u32::try_from(max_repeats?).ok()?,
    })
}

/// Millionths of a dollar, rounded.
fn micro(dollars: f64) -> Option<u64> {
    format!("{:.0}", dollars * MILLION).parse().ok()
}

/// How it works.
struct Policy {
    temperature: Option<f64>,
    context_window: u32,
    context_window_ratio: f64,
    protocol: Protocol,
    profile: Option<Profile>,
    early_dispatch: EarlyDispatch,
    end_intent: bool,
    output_schema: Option<Value>,
    verify: Verify,
    memory: MemoryUse,
    price: Option<Price>,
    prices: BTreeMap<String, Price>,
    approval_ms: u64,
}

impl Policy {
    fn read(fields: &mut Fields<'_>, report: &mut Report) -> Option<Self> {
        let temperature = match fields.get("temperature") {
            Some(at) => at.number(0.0, 2.0, report).map(Some),
            None => Some(None),
        };
        let window = match fields.get("context_window") {
            Some(at) => at.whole(1000, 100_000_000, report),
            None => Some(CONTEXT_WINDOW),
        };
        let ratio = fields.get("context_window_ratio");
        let ratio = ratio.map_or(Some(0.7), |at| at.number(0.05, 1.0, report));
        let protocol = fields.get("protocol");
        let protocol = protocol.map_or(Some(Protocol::Native), |at| at.choice(&PROTOCOLS, report));
        let profile = match fields.get("profile") {
            Some(at) => at.choice(&Profile::NAMES, report).map(Some),
            None => Some(None),
        };
        let early = fields.get("early_dispatch");
        let early = early.map_or(Some(EarlyDispatch::Safe), |at| at.choice(&DISPATCHES, report));
        let end_intent = fields.get("end_intent").map_or(Some(true), |at| switch(&at, report));
        let output_schema = match fields.get("output_schema") {
            Some(at) => parameters::read_any(&at, report).map(Some),
            None => Some(None),
        };
        let verify = fields.get("verify");
        let verify = verify.map_or(Some(Verify::Off), |at| at.choice(&VERIFIES, report));
        let memory = match fields.get("memory") {
            Some(at) => memory(&at, report),
            None => Some(MemoryUse::default()),
        };
        let price = match fields.get("price") {
            Some(at) => price(&at, report).map(Some),
            None => Some(None),
        };
        let prices = fields.get("prices").map_or(Some(BTreeMap::new()), |at| prices(&at, report));
        let approval_s = match fields.get("approval_timeout_s") {
            Some(at) => at.whole(1, 30 * 24 * 3600, report),
            None => Some(APPROVAL_TIMEOUT_S),
        };
        Some(Self {
            temperature: temperature?,
            context_window: u32::try_from(window?).ok()?,
            context_window_ratio: ratio?,
            protocol: protocol?,
            profile: profile?,
            early_dispatch: early?,
            end_intent: end_intent?,
            output_schema: output_schema?,
            verify: verify?,
            memory: memory?,
            price: price?,
            prices: prices?,
            approval_ms: approval_s?.saturating_mul(1000),
        })
    }
}

/// A file with what models cost, by their names.
pub fn price_table(file: &str, text: &str) -> Result<BTreeMap<String, Price>, Vec<Problem>> {
    let root = yaml::read(file, text)?;
    let mut report = Report::new(file);
    let table = prices(&Place::root(&root), &mut report);
    report.finish(table)
}

/// Prices by model.
fn prices(at: &Place<'_>, report: &mut Report) -> Option<BTreeMap<String, Price>> {
    if !matches!(at.node().kind, Kind::Map(_)) {
        report.wrong(at, "prices by model", "write `model: { input: 0.15, output: 0.60 }`");
        return None;
    }
    let entries = at.node().entries().iter();
    let all: Vec<Option<(String, Price)>> = entries
        .map(|entry| {
            let read = price(&at.child(&entry.name, &entry.node), report)?;
            Some((entry.name.clone(), read))
        })
        .collect();
    all.into_iter().collect()
}

/// US dollars per million tokens.
fn price(at: &Place<'_>, report: &mut Report) -> Option<Price> {
    let mut fields = Fields::of(at, report)?;
    let mut part = |name, report: &mut Report| {
        let dollars = fields.required(name, "US dollars per million tokens", report)?;
        // A dollar for a million tokens is a thousand billionths for one.
        format!("{:.0}", dollars.number(0.0, 1_000_000.0, report)? * 1000.0).parse().ok()
    };
    let (input, output) = (part("input", report), part("output", report));
    fields.close(report);
    Some(Price { input_nano_usd: input?, output_nano_usd: output? })
}

/// `true`, `false`, `on` or `off`.
pub(crate) fn switch(at: &Place<'_>, report: &mut Report) -> Option<bool> {
    if at.node().as_text().is_some() { at.choice(&SWITCH, report) } else { at.truth(report) }
}

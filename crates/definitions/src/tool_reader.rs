//! Reads one tool of a manifest.

use proto::hash;
use proto::ids::ToolName;
use proto::tool::{Approval, Deadlines, Effect, Retry, ToolContract};
use serde_json::{Value, json};

use crate::builtins;
use crate::fields::Fields;
use crate::http::Method;
use crate::manifest::{ProgramPlace, Stated, ToolDefinition, fingerprint};
use crate::mcp::McpStated;
use crate::parameters;
use crate::policy_reader::{self, ReadPolicy};
use crate::problem::Report;
use crate::run::{Builtin, Run, Surroundings};
use crate::run_reader::{self, Written};
use crate::template::Template;
use crate::times;
use crate::yaml::Place;

const TIMEOUT_MS: u64 = 3000;
/// Until the server of an MCP tool has told what it does.
const UNKNOWN_YET: &str = "A tool of an MCP server that describes it when the worker starts.";
/// Servers of one's own, and those of others.
const SERVER_TIMEOUT_MS: (u64, u64) = (15_000, 30_000);
/// The names that parameters go by.
const PARAMETERS: [&str; 4] = ["parameters", "parameters_schema", "input_schema", "inputSchema"];
const RESULT_TOKENS: u64 = 300;

const EFFECTS: [(&str, Effect); 4] = [
    ("read_only", Effect::ReadOnly),
    ("idempotent", Effect::Idempotent),
    ("checkable", Effect::Checkable),
    ("irreversible", Effect::Irreversible),
];

/// Reads a tool; `None` when something about it is wrong.
pub(crate) fn read(
    place: &Place<'_>,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<ToolDefinition> {
    let mut fields = Fields::of(place, report)?;
    let runs = Runs::read(&mut fields, around, report);
    let policy = policy_reader::read(&mut fields, method(place), around, report);
    let promise = Promise::read(&mut fields, runs.run.as_ref(), report);
    let limits = Limits::read(&mut fields, runs.run.as_ref(), report);
    fields.close(report);
    if let Some(promise) = &promise {
        check_templates(&runs, policy.as_ref(), promise, report);
        check_effect(place, &runs, promise.effect.0, policy.as_ref(), report);
    }
    let ways = policy.iter().flat_map(|policy| &policy.fallbacks);
    let both = runs.run.iter().chain(&runs.probe).chain(ways);
    let programs = both.flat_map(|written| written.programs(around.folder)).collect();
    assemble((place, programs), runs, promise?, &limits?, policy?)
}

fn assemble(
    (place, programs): (&Place<'_>, Vec<ProgramPlace>),
    runs: Runs<'_>,
    promise: Promise,
    limits: &Limits,
    policy: ReadPolicy<'_>,
) -> Option<ToolDefinition> {
    let run = runs.run?;
    let mut contract = ToolContract {
        name: promise.name,
        description: promise.description,
        parameters: promise.parameters,
        effect: promise.effect.0,
        timeout_ms: limits.timeout.0,
        retry: limits.retry,
        deadlines: limits.deadlines,
        approval: promise.approval,
        permissions: promise.permissions,
        result_tokens: limits.result_tokens,
        result_schema: promise.result_schema,
        fingerprint: hash::fingerprint(""),
    };
    let written: Vec<&Value> = std::iter::once(&run)
        .chain(&runs.probe)
        .chain(&policy.fallbacks)
        .map(|written| &written.as_written)
        .collect();
    contract.fingerprint = fingerprint(&contract, &written, &policy.policy.as_json());
    let line = place.node().line;
    let stated = Stated { line, effect: promise.effect.1, timeout: limits.timeout.1, programs };
    let probe = runs.probe.map(|probe| probe.run);
    let run = with_stated(run.run, place, stated.effect);
    let policy = policy.policy;
    Some(ToolDefinition { contract, run, probe, policy, stated })
}

/// A run of an MCP tool knows what the file says of it.
fn with_stated(mut run: Run, place: &Place<'_>, effect: bool) -> Run {
    if let Run::Mcp(mcp) = &mut run {
        let has = |name: &str| place.node().get(name).is_some_and(|node| !node.is_null());
        mcp.stated = McpStated {
            description: has("description"),
            parameters: PARAMETERS.iter().any(|name| has(name)),
            effect,
            result_schema: has("result_schema"),
        };
    }
    run
}

/// What a worker does.
struct Runs<'n> {
    run: Option<Written<'n>>,
    probe: Option<Written<'n>>,
}

impl<'n> Runs<'n> {
    fn read(fields: &mut Fields<'n>, around: &Surroundings<'_>, report: &mut Report) -> Self {
        let run = fields.either(&[("run", ()), ("command", ())], report);
        if run.is_none() {
            fields.required("run", run_reader::HOW, report);
        }
        let method = method(fields.place());
        let run = run.and_then(|((), at)| run_reader::read(&at, method, around, report));
        let probe = fields.get("probe").and_then(|at| probe(&at, around, report));
        Self { run, probe }
    }

    /// Every template with its place.
    fn templates(&self) -> impl Iterator<Item = (&Template, &Place<'n>)> {
        let written = self.run.iter().chain(&self.probe);
        let argv = written.flat_map(|written| written.templates.iter());
        argv.map(|(template, place)| (template, place))
    }
}

fn probe<'n>(
    at: &Place<'n>,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Written<'n>> {
    let mut written = run_reader::read(at, Method::Get, around, report)?;
    if let Run::Http(http) = &mut written.run {
        http.is_probe = true;
    }
    Some(written)
}

/// How a request asks when it does not say so: only a tool that changes nothing may `GET`.
fn method(place: &Place<'_>) -> Method {
    let effect = place.node().get("effect");
    let only_reads = effect.is_some_and(|effect| effect.as_text() == Some("read_only"));
    if only_reads { Method::Get } else { Method::Post }
}

/// What planners and models see.
struct Promise {
    name: ToolName,
    description: String,
    parameters: Value,
    /// With whether the file says so.
    effect: (Effect, bool),
    approval: Approval,
    permissions: Vec<String>,
    result_schema: Option<Value>,
}

impl Promise {
    fn read(
        fields: &mut Fields<'_>,
        run: Option<&Written<'_>>,
        report: &mut Report,
    ) -> Option<Self> {
        let builtin = run.and_then(Written::builtin);
        let name = name(fields, report);
        let description = match (fields.get("description"), builtin) {
            (Some(at), _) => at.words(report).map(str::to_owned),
            (None, Some(builtin)) => Some(builtin.description().to_owned()),
            (None, None) if run.is_some_and(Written::is_mcp) => Some(UNKNOWN_YET.to_owned()),
            (None, None) => {
                fields.required("description", "what the tool does, for the model", report);
                None
            }
        };
        let parameters = parameters_of(fields, run, report);
        let effect = match fields.get("effect") {
            Some(at) => at.choice(&EFFECTS, report).map(|effect| (effect, true)),
            // Nobody said that repeating is harmless.
            None => {
                Some((builtin.map_or(Effect::Irreversible, Builtin::effect), builtin.is_some()))
            }
        };
        let approval = fields.get("approval").map_or(Some(Approval::Never), |at| {
            let names = parameters.iter().flat_map(property_names);
            policy_reader::approval(&at, names, report)
        });
        let permissions = fields.get("permissions").map_or(Some(Vec::new()), |at| at.texts(report));
        let result_schema = match fields.get("result_schema") {
            Some(at) => Some(parameters::read_any(&at, report)?),
            None => None,
        };
        Some(Self {
            name: name?,
            description: description?,
            parameters: parameters?,
            effect: effect?,
            approval: approval?,
            permissions: permissions?,
            result_schema,
        })
    }
}

fn name(fields: &mut Fields<'_>, report: &mut Report) -> Option<ToolName> {
    let at = fields.required("name", "the name that models call the tool by", report)?;
    match ToolName::new(at.text(report)?) {
        Ok(name) => Some(name),
        Err(bad) => {
            report.wrong(&at, bad.rule, "models can send only such a name");
            None
        }
    }
}

fn parameters_of(
    fields: &mut Fields<'_>,
    run: Option<&Written<'_>>,
    report: &mut Report,
) -> Option<Value> {
    let names = PARAMETERS.map(|name| (name, ()));
    let builtin = run.and_then(Written::builtin);
    let Some(((), at)) = fields.either(&names, report) else {
        if run.is_some_and(Written::is_mcp) {
            return Some(json!({ "type": "object" }));
        }
        let none = || json!({ "type": "object", "properties": {}, "additionalProperties": false });
        return Some(builtin.map_or_else(none, Builtin::parameters));
    };
    let schema = parameters::read(&at, report)?;
    if let Some(builtin) = builtin {
        let known = builtin.parameters();
        for name in property_names(&schema) {
            if !property_names(&known).any(|known| known == name) {
                let known: Vec<&str> = property_names(&known).collect();
                let expected = format!("parameters that the builtin has: {}", known.join(", "));
                report.broken(&at, expected, format!("`{name}`"), "leave the parameters out");
            }
        }
    }
    Some(schema)
}

fn property_names(schema: &Value) -> impl Iterator<Item = &str> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(|all| all.keys().map(String::as_str))
}

/// Where attempts and results end.
struct Limits {
    /// With whether the file says so.
    timeout: (u64, bool),
    retry: Retry,
    deadlines: Deadlines,
    result_tokens: u32,
}

impl Limits {
    fn read(
        fields: &mut Fields<'_>,
        run: Option<&Written<'_>>,
        report: &mut Report,
    ) -> Option<Self> {
        let external = external(fields, run, report);
        let timeout = match times::timeout(fields, report) {
            Some(stated) => stated.map(|ms| (ms, true)),
            None => Some((default_timeout(run, external?), false)),
        };
        let retry = times::retry(fields, report);
        let result_tokens = match fields.get("result_tokens") {
            Some(at) => at.whole(1, 100_000, report),
            None => Some(default_tokens(run)),
        };
        let deadlines = policy_reader::deadlines(fields, report);
        Some(Self {
            timeout: timeout?,
            retry: retry?,
            deadlines: deadlines?,
            result_tokens: u32::try_from(result_tokens?).ok()?,
        })
    }
}

/// Whether the server belongs to somebody else, which gives it more time.
fn external(
    fields: &mut Fields<'_>,
    run: Option<&Written<'_>>,
    report: &mut Report,
) -> Option<bool> {
    let Some(at) = fields.get("external") else { return Some(false) };
    if run.is_some_and(|run| !run.asks_a_server()) {
        let fix = "leave it out, or say `timeout_ms`";
        report.wrong(&at, "no such field: only http, mcp and fetch_url ask servers", fix);
        return None;
    }
    at.truth(report)
}

fn default_tokens(run: Option<&Written<'_>>) -> u64 {
    let is_expand = run.and_then(Written::builtin) == Some(Builtin::Expand);
    if is_expand { builtins::EXPAND_TOKENS } else { RESULT_TOKENS }
}

fn default_timeout(run: Option<&Written<'_>>, external: bool) -> u64 {
    if run.is_some_and(Written::asks_a_server) {
        let (own, others) = SERVER_TIMEOUT_MS;
        return if external { others } else { own };
    }
    let builtin = run.and_then(Written::builtin);
    if builtin.is_some_and(Builtin::has_root) { builtins::TIMEOUT_MS } else { TIMEOUT_MS }
}

/// Every `{name}` has to be a parameter.
fn check_templates(
    runs: &Runs<'_>,
    policy: Option<&ReadPolicy<'_>>,
    promise: &Promise,
    report: &mut Report,
) {
    let known: Vec<&str> = property_names(&promise.parameters).collect();
    let more = policy.into_iter().flat_map(|policy| {
        let ways = policy.fallbacks.iter().flat_map(|written| &written.templates);
        policy.resource.iter().chain(ways).map(|(template, place)| (template, place))
    });
    for (template, place) in runs.templates().chain(more) {
        for name in template.names().filter(|name| !known.contains(name)) {
            let expected = format!("the name of a parameter ({})", known.join(", "));
            let fix = argument_check::nearest(name, known.iter().copied()).map_or_else(
                || "add it to the parameters".to_owned(),
                |meant| format!("write `{{{meant}}}`"),
            );
            report.broken(place, expected, format!("`{{{name}}}`"), fix);
        }
    }
}

fn check_effect(
    place: &Place<'_>,
    runs: &Runs<'_>,
    effect: Effect,
    policy: Option<&ReadPolicy<'_>>,
    report: &mut Report,
) {
    let child =
        |name: &str| place.child(name, place.node().get(name).unwrap_or_else(|| place.node()));
    let has_probe = place.node().get("probe").is_some();
    if effect == Effect::Checkable && !has_probe {
        let fix = "add `probe: { command: […] }` that tells whether the effect happened, or write `irreversible`";
        report.missing(place, "probe", "a probe, because the effect is checkable", fix);
    }
    if effect != Effect::Checkable && runs.probe.is_some() {
        let fix = "write `effect: checkable` or leave the probe out";
        let found = format!("one for a tool that is {}", effect.as_str());
        report.broken(&child("probe"), "a probe only for a checkable tool", found, fix);
    }
    let Some(policy) = policy.map(|read| &read.policy) else { return };
    let spans = [("cache_ttl_ms", policy.cache_ttl_ms), ("stale_ms", policy.stale_ms)];
    for (name, _) in spans.into_iter().filter(|(_, ms)| effect != Effect::ReadOnly && *ms > 0) {
        let fix = "leave it out: the result of an effect is not used again";
        report.wrong(&child(name), "0 unless the tool is read_only", fix);
    }
    if effect == Effect::Checkable && !policy.fallbacks.is_empty() {
        let fix = "leave it out: a probe tells of one way to run only";
        report.wrong(&child("fallback"), "none for a checkable tool", fix);
    }
}

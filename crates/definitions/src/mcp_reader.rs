//! Reads `mcp:`.

use serde_json::{Value, json};

use crate::fields::Fields;
use crate::http::{Header, SecretPlace};
use crate::http_reader;
use crate::http_url;
use crate::mcp::{EnvValue, McpHttp, McpPlace, McpProcess, McpRun, McpServer, McpStated};
use crate::problem::Report;
use crate::run::{Run, Surroundings};
use crate::run_reader::{self, MAX_OUTPUT_BYTES, MOST_OUTPUT_BYTES, URL, Written, variables};
use crate::template::Template;
use crate::yaml::{Kind, Place};

/// The most processes of one server.
const MOST_INSTANCES: u64 = 64;
/// A server that a package manager fetches first takes its time.
const START_TIMEOUT_MS: u64 = 30_000;
const HOUR_MS: u64 = 60 * 60 * 1000;

#[derive(Clone, Copy)]
enum Reach {
    Process,
    Http,
}

/// Reads the map under `mcp`.
pub(crate) fn read<'n>(
    at: &Place<'n>,
    whole: &Place<'n>,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Written<'n>> {
    let mut fields = Fields::of(at, report)?;
    let tool = fields.required("tool", "the tool's name at the server", report);
    let tool = tool.and_then(|at| at.words(report)).map(str::to_owned);
    let mut templates = Vec::new();
    let place = place(&mut fields, around, &mut templates, report);
    let server = server(&mut fields, report);
    fields.close(report);
    let run = McpRun {
        server: McpServer { place: place?, ..server? },
        tool: tool?,
        stated: McpStated::default(),
    };
    let mut as_written: Value = whole.node().to_json();
    // How a server is kept is nothing that a tool promises.
    if let Some(mcp) = as_written.get_mut("mcp").and_then(Value::as_object_mut) {
        mcp.remove("instances");
        mcp.remove("start_timeout_ms");
    }
    Some(Written { run: Run::Mcp(run), as_written: json!(as_written), templates })
}

fn place<'n>(
    fields: &mut Fields<'n>,
    around: &Surroundings<'_>,
    templates: &mut Vec<(Template, Place<'n>)>,
    report: &mut Report,
) -> Option<McpPlace> {
    let reach = fields.either(&[("command", Reach::Process), ("url", Reach::Http)], report);
    match reach {
        Some((Reach::Process, at)) => {
            process(&at, fields, around, templates, report).map(McpPlace::Process)
        }
        Some((Reach::Http, at)) => http(&at, fields, around, report).map(McpPlace::Http),
        None => {
            let fix = "write `command: [program, argument]`, or `url: https://…`";
            report.missing(fields.place(), "command", "how the server is reached", fix);
            None
        }
    }
}

/// How a server is kept; its place is filled in by the caller.
fn server(fields: &mut Fields<'_>, report: &mut Report) -> Option<McpServer> {
    let mut number = |name, least, most, otherwise, report: &mut Report| match fields.get(name) {
        Some(at) => at.whole(least, most, report),
        None => Some(otherwise),
    };
    let instances = number("instances", 1, MOST_INSTANCES, 1, report);
    let start = number("start_timeout_ms", 100, HOUR_MS, START_TIMEOUT_MS, report);
    let most = number("max_output_bytes", 1, MOST_OUTPUT_BYTES, MAX_OUTPUT_BYTES, report);
    let trusts = fields.get("trust_annotations").map_or(Some(false), |at| at.truth(report));
    let nowhere = McpHttp { url: String::new(), headers: Vec::new(), private: false };
    Some(McpServer {
        place: McpPlace::Http(nowhere),
        instances: u32::try_from(instances?).ok()?,
        trust_annotations: trusts?,
        start_timeout_ms: start?,
        max_output_bytes: most?,
    })
}

fn process<'n>(
    at: &Place<'n>,
    fields: &mut Fields<'n>,
    around: &Surroundings<'_>,
    templates: &mut Vec<(Template, Place<'n>)>,
    report: &mut Report,
) -> Option<McpProcess> {
    let argv = run_reader::argv(at, around, report);
    let folder = match fields.get("folder") {
        Some(folder) => run_reader::path(&folder, around, report),
        None => Some(around.folder.to_owned()),
    };
    let env = fields.get("env").map_or(Some(Vec::new()), |env| variables_of(&env, around, report));
    let (argv, found) = argv?;
    for (template, place) in &found {
        if template.names().next().is_some() {
            let fix = "write it out: the server is started before anybody calls a tool";
            report.wrong(place, "fixed text", fix);
        }
    }
    templates.extend(found);
    Some(McpProcess { argv, folder: folder?, env: env? })
}

/// Names of variables that are handed over, or a map of variables.
fn variables_of(
    at: &Place<'_>,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Vec<(String, EnvValue)>> {
    if let Kind::Map(entries) = &at.node().kind {
        let one = |name: &str, place: &Place<'_>, report: &mut Report| match &place.node().kind {
            Kind::Map(_) => match http_reader::secret(place, around, report)? {
                Header::Secret { from, prefix } if prefix.is_empty() => {
                    Some(EnvValue::Secret(from))
                }
                Header::Secret { .. } | Header::Template(_) => {
                    report.wrong(place, "a variable without a prefix", "leave the prefix out");
                    None
                }
            },
            Kind::Null => Some(EnvValue::Secret(SecretPlace::Env(name.to_owned()))),
            Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) | Kind::List(_) => {
                run_reader::scalar(place, report).map(EnvValue::Text)
            }
        };
        let read: Vec<Option<(String, EnvValue)>> = entries
            .iter()
            .map(|entry| {
                let place = at.child(&entry.name, &entry.node);
                one(&entry.name, &place, report).map(|value| (entry.name.clone(), value))
            })
            .collect();
        return read.into_iter().collect();
    }
    let names = at.texts(report)?;
    let own = |name: String| (name.clone(), EnvValue::Secret(SecretPlace::Env(name)));
    Some(names.into_iter().map(own).collect())
}

fn http(
    at: &Place<'_>,
    fields: &mut Fields<'_>,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<McpHttp> {
    let url = url(at, around, report);
    let mut templates = Vec::new();
    let headers = match fields.get("headers") {
        Some(at) => http_reader::headers(&at, around, &mut templates, report),
        None => Some(Vec::new()),
    };
    for (template, place) in &templates {
        if template.names().next().is_some() {
            let fix = "write it out: a model must not choose a header of the connection";
            report.wrong(place, "fixed text", fix);
        }
    }
    let private = fields.get("private").map_or(Some(false), |at| at.truth(report));
    Some(McpHttp { url: url?, headers: headers?, private: private? })
}

fn url(at: &Place<'_>, around: &Surroundings<'_>, report: &mut Report) -> Option<String> {
    let text = variables(at, at.words(report)?, &URL, around, report)?;
    match http_url::split(&text) {
        Ok(_) if Template::parse(&text).names().next().is_some() => {
            report.wrong(at, "a fixed URL", "write it out: a model must not choose the server");
            None
        }
        Ok(_) => Some(text),
        Err(bad) => {
            report.broken(at, bad.expected, bad.found, bad.fix);
            None
        }
    }
}

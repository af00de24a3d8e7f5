//! Reads `sources:`: servers and documents that bring several tools at once.
//!
//! A source only writes tools as if they stood in the file: what it makes is read like any other tool,
//! with the place of the source. Which of its tools there are is always the file's choice.

use serde_json::{Map, Value};

use crate::fields::Fields;
use crate::openapi::{self, Chosen, Options};
use crate::problem::Report;
use crate::run::Surroundings;
use crate::run_reader::{FILE, URL, joined, variables};
use crate::yaml::{self, Entry, Kind, Node, Place};

/// Largest document, in bytes.
const LARGEST: usize = 64 * 1024 * 1024;

/// Takes a tool that a source made.
type Take<'t> = &'t mut dyn FnMut(&Place<'_>, &mut Report);

#[derive(Clone, Copy)]
enum Form {
    Mcp,
    Openapi,
}

/// Reads every source and hands its tools to `take`.
pub(crate) fn read(at: &Place<'_>, around: &Surroundings<'_>, report: &mut Report, take: Take<'_>) {
    for place in at.list(report).unwrap_or_default() {
        source(&place, around, report, take);
    }
}

fn source(
    place: &Place<'_>,
    around: &Surroundings<'_>,
    report: &mut Report,
    take: Take<'_>,
) -> Option<()> {
    let mut fields = Fields::of(place, report)?;
    let form = fields.either(&[("mcp", Form::Mcp), ("openapi", Form::Openapi)], report);
    let Some((form, at)) = form else {
        let fix = "write `- mcp: { command: […] }` or `- openapi: file.yaml`";
        report.wrong(place, "where tools come from: mcp or openapi", fix);
        return None;
    };
    let prefix = fields.get("prefix").map_or(Some(""), |at| at.text(report));
    let defaults = fields.get("defaults");
    let made = match form {
        Form::Mcp => mcp(&at, &mut fields, report),
        Form::Openapi => document(&at, &mut fields, around, report),
    };
    fields.close(report);
    let (made, prefix) = (made?, prefix?);
    for tool in made {
        let node = tool.node(prefix, defaults.as_ref().map(Place::node));
        if tool.overrides.is_some_and(|node| node.get("run").is_some()) {
            let fix = "leave it out: the source says how its tools run";
            report.wrong(&tool.place, "a tool without `run`", fix);
        }
        take(&Place::root(&node).renamed(tool.place.field()), report);
    }
    Some(())
}

/// A tool before it is read.
struct Made<'n> {
    place: Place<'n>,
    fields: Map<String, Value>,
    /// What the file says of it.
    overrides: Option<&'n Node>,
    /// The run, when it keeps the places of the file.
    run: Option<Node>,
}

impl Made<'_> {
    /// The tool as a node: what the file says wins over defaults, and those over what was made.
    fn node(&self, prefix: &str, defaults: Option<&Node>) -> Node {
        let node = self.place.node();
        let at = (node.line, node.column);
        let mut entries: Vec<Entry> = Vec::new();
        let made = Node::of_json(&Value::Object(self.fields.clone()), at);
        let layers = [self.overrides, defaults, Some(&made)];
        for entry in layers.into_iter().flatten().flat_map(Node::entries) {
            if !entries.iter().any(|known| known.name == entry.name) {
                entries.push(entry.clone());
            }
        }
        let named = self.overrides.is_some_and(|node| node.get("name").is_some());
        for entry in entries.iter_mut().filter(|entry| entry.name == "name" && !named) {
            if let Kind::Text(name) = &mut entry.node.kind {
                *name = format!("{prefix}{name}");
            }
        }
        if let Some(run) = &self.run {
            entries.retain(|entry| entry.name != "run");
            entries.push(Entry { name: "run".to_owned(), node: run.clone(), name_at: at });
        }
        Node { line: at.0, column: at.1, kind: Kind::Map(entries) }
    }
}

/// Names in a list, or as a map with what the file says of each.
fn chosen<'n>(at: &Place<'n>, report: &mut Report) -> Option<Vec<(String, Place<'n>)>> {
    if let Kind::Map(entries) = &at.node().kind {
        let one = |entry: &'n Entry| (entry.name.clone(), at.child(&entry.name, &entry.node));
        return Some(entries.iter().map(one).collect());
    }
    let items = at.list(report)?;
    let named = items.into_iter().map(|item| Some((item.text(report)?.to_owned(), item)));
    named.collect()
}

/// What the file says of a tool, when it says anything.
fn overrides<'n>(place: &Place<'n>) -> Option<&'n Node> {
    matches!(place.node().kind, Kind::Map(_)).then(|| place.node())
}

fn mcp<'n>(at: &Place<'n>, fields: &mut Fields<'n>, report: &mut Report) -> Option<Vec<Made<'n>>> {
    let expected = "which of the server's tools may be called";
    let tools = fields.required("tools", expected, report)?;
    let Kind::Map(server) = &at.node().kind else {
        let fix = "write `mcp: { command: [program, argument] }` or `mcp: { url: https://… }`";
        report.wrong(at, "how the server is reached", fix);
        return None;
    };
    let made = chosen(&tools, report)?.into_iter().map(|(name, place)| {
        let here = (place.node().line, place.node().column);
        let text =
            |text: &str| Node { line: here.0, column: here.1, kind: Kind::Text(text.to_owned()) };
        let mut entries = server.clone();
        entries.push(Entry { name: "tool".to_owned(), node: text(&name), name_at: here });
        let mcp = Node { kind: Kind::Map(entries), ..at.node().clone() };
        let run = vec![Entry { name: "mcp".to_owned(), node: mcp, name_at: here }];
        let own = openapi::tool_name(&name);
        Made {
            fields: Map::from_iter([("name".to_owned(), Value::from(own))]),
            overrides: overrides(&place),
            run: Some(Node { line: here.0, column: here.1, kind: Kind::Map(run) }),
            place,
        }
    });
    Some(made.collect())
}

fn document<'n>(
    at: &Place<'n>,
    fields: &mut Fields<'n>,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Vec<Made<'n>>> {
    let options = options(fields, around, report);
    let operations = fields.get("operations");
    let tags = fields.get("tags").map_or(Some(Vec::new()), |at| at.texts(report));
    let is_all = operations.as_ref().is_some_and(|at| at.node().as_text() == Some("all"));
    let named = match &operations {
        Some(at) if !is_all => chosen(at, report),
        Some(_) | None => Some(Vec::new()),
    };
    let (options, tags, named) = (options?, tags?, named?);
    if operations.is_none() && tags.is_empty() {
        let fix = "write `operations: [name, …]`, `tags: [name]` or `operations: all`";
        report.missing(fields.place(), "operations", "which operations become tools", fix);
        return None;
    }
    let document = load(at, around, report)?;
    let choice = match (is_all, named.is_empty() && !tags.is_empty()) {
        (true, _) => Chosen::All,
        (false, true) => Chosen::Tagged(&tags),
        (false, false) => Chosen::Named(named.iter().map(|(name, _)| name.as_str()).collect()),
    };
    let made = match openapi::tools(&document, &choice, &options) {
        Ok(made) => made,
        Err(why) => {
            report.broken(
                at,
                "an OpenAPI description of version 3.0 or 3.1",
                why,
                "correct the file",
            );
            return None;
        }
    };
    for (name, why) in &made.left_out {
        // Of many, those that cannot be tools are left out; one that is named has to be one.
        if let Some((_, place)) = named.iter().find(|(known, _)| known == name) {
            report.broken(place, "an operation that can be a tool", why.clone(), "leave it out");
        }
    }
    let place_of = |operation: &str| {
        let named = named.iter().find(|(name, _)| name == operation);
        named.map_or_else(|| at.clone(), |(_, place)| place.clone())
    };
    let made = made.tools.into_iter().map(|tool| {
        let place = place_of(&tool.operation);
        Made { overrides: overrides(&place), place, fields: tool.fields, run: None }
    });
    Some(made.collect())
}

fn options(
    fields: &mut Fields<'_>,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Options> {
    let server = match fields.get("server") {
        Some(at) => Some(variables(&at, at.words(report)?, &URL, around, report)?),
        None => None,
    };
    let map = |at: Option<Place<'_>>| {
        at.and_then(|at| at.node().to_json().as_object().cloned()).unwrap_or_default()
    };
    let auth = fields.get("auth");
    let auth = auth.as_ref().map(|at| at.node().to_json());
    let headers = map(fields.get("headers"));
    let private = fields.get("private").map_or(Some(false), |at| at.truth(report))?;
    let model_headers =
        fields.get("model_headers").map_or(Some(Vec::new()), |at| at.texts(report))?;
    Some(Options { server, auth, headers, private, model_headers })
}

fn load(at: &Place<'_>, around: &Surroundings<'_>, report: &mut Report) -> Option<Value> {
    let name = variables(at, at.words(report)?, &FILE, around, report)?;
    if name.contains("://") {
        let fix = "run `systole tools import openapi URL`, which keeps a copy that can be reviewed";
        report.wrong(at, "a file", fix);
        return None;
    }
    let text = match (around.document)(&joined(around.folder, &name)) {
        Ok(text) => text,
        Err(why) => {
            report.broken(
                at,
                "an OpenAPI file",
                format!("`{name}`: {why}"),
                "name a file that is there",
            );
            return None;
        }
    };
    match parse(&name, &text) {
        Ok(document) => Some(document),
        Err(why) => {
            report.broken(at, "an OpenAPI file in JSON or YAML", why, "correct the file");
            None
        }
    }
}

/// A document in JSON or YAML.
pub(crate) fn parse(name: &str, text: &str) -> Result<Value, String> {
    if text.len() > LARGEST {
        return Err(format!("{} bytes, more than {LARGEST}", text.len()));
    }
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text).map_err(|error| error.to_string());
    }
    let node = yaml::read(name, text);
    node.map(|node| node.to_json())
        .map_err(|problems| problems.first().map_or_else(String::new, ToString::to_string))
}

//! Reads `run:` and `probe:`.

use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use crate::fields::Fields;
use crate::http::Method;
use crate::http_reader;
use crate::manifest::ProgramPlace;
use crate::mcp::{McpPlace, McpRun, McpServer};
use crate::mcp_reader;
use crate::problem::Report;
use crate::run::{Builtin, BuiltinRun, CommandRun, Run, Surroundings, Unset};
use crate::template::Template;
use crate::yaml::{Kind, Place};

pub(crate) const MAX_OUTPUT_BYTES: u64 = 1024 * 1024;
pub(crate) const MOST_OUTPUT_BYTES: u64 = 64 * 1024 * 1024;

/// A run with the text it was made from, which is the same on every machine.
#[derive(Clone, Debug)]
pub(crate) struct Written<'n> {
    pub(crate) run: Run,
    pub(crate) as_written: Value,
    /// Templates with their places, to be compared with the parameters.
    pub(crate) templates: Vec<(Template, Place<'n>)>,
}

impl Written<'_> {
    /// The builtin, if it is one.
    pub(crate) fn builtin(&self) -> Option<Builtin> {
        match &self.run {
            Run::Builtin(run) => Some(run.builtin),
            Run::Command(_) | Run::Http(_) | Run::Mcp(_) => None,
        }
    }

    /// The program that it starts, and the script that this program is told to read.
    pub(crate) fn programs(&self, folder: &Path) -> Vec<ProgramPlace> {
        let argv = match &self.run {
            Run::Command(run) => &run.argv,
            Run::Mcp(McpRun {
                server: McpServer { place: McpPlace::Process(run), .. }, ..
            }) => &run.argv,
            Run::Mcp(_) | Run::Http(_) | Run::Builtin(_) => return Vec::new(),
        };
        let started = argv.first().cloned();
        let script = started.as_ref().filter(|program| is_reader(program)).and_then(|_| {
            let (template, _) = self.templates.get(1)?;
            template.fill(&serde_json::Map::new()).filter(|word| is_script(word))
        });
        let script = script.map(|word| joined(folder, &word).display().to_string());
        let places = [(started, false), (script, true)].into_iter().zip(&self.templates);
        let place =
            |((program, is_script), (_, place)): ((Option<String>, bool), &(_, Place<'_>))| {
                Some(ProgramPlace {
                    program: program?,
                    written: place.node().as_text().unwrap_or_default().to_owned(),
                    line: place.node().line,
                    column: place.node().column,
                    field: place.field().to_owned(),
                    is_script,
                })
            };
        places.filter_map(place).collect()
    }

    /// Whether a server describes it.
    pub(crate) fn is_mcp(&self) -> bool {
        matches!(self.run, Run::Mcp(_))
    }

    /// Whether it waits for a server somewhere.
    pub(crate) fn asks_a_server(&self) -> bool {
        match &self.run {
            Run::Http(_) | Run::Mcp(_) => true,
            Run::Builtin(run) => run.builtin == Builtin::FetchUrl,
            Run::Command(_) => false,
        }
    }
}

/// Programs that read a script, without the number of their version.
const READERS: [&str; 11] =
    ["bash", "dash", "ksh", "lua", "node", "perl", "php", "python", "ruby", "sh", "zsh"];
/// How scripts' names end.
const SCRIPTS: [&str; 10] = ["bash", "cjs", "js", "lua", "mjs", "php", "pl", "py", "rb", "sh"];

#[derive(Clone, Copy)]
enum Form {
    Command,
    Builtin,
    Http,
    Mcp,
    Openapi,
}

const FORMS: [(&str, Form); 5] = [
    ("command", Form::Command),
    ("builtin", Form::Builtin),
    ("http", Form::Http),
    ("mcp", Form::Mcp),
    ("openapi", Form::Openapi),
];

/// What is asked for.
pub(crate) const HOW: &str = "how the tool runs: command, http, mcp or builtin";
const FORM: &str = "write `{ command: [program, \"{argument}\"] }`, `{ http: { url: … } }` or `{ builtin: read_file }`";

/// Reads a run: a map with one of the forms, or a list, which is a command. `method` is how a
/// request asks unless it says so.
pub(crate) fn read<'n>(
    place: &Place<'n>,
    method: Method,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Written<'n>> {
    let as_written = place.node().to_json();
    match &place.node().kind {
        Kind::List(_) => {
            let (argv, templates) = argv(place, around, report)?;
            let folder = Some(around.folder.to_owned());
            let run =
                CommandRun { argv, folder, env: Vec::new(), max_output_bytes: MAX_OUTPUT_BYTES };
            let as_written = json!({ "command": as_written });
            Some(Written { run: Run::Command(run), as_written, templates })
        }
        Kind::Map(_) => form(place, method, around, report),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {
            report.wrong(place, HOW, FORM);
            None
        }
    }
}

fn form<'n>(
    place: &Place<'n>,
    method: Method,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Written<'n>> {
    let mut fields = Fields::of(place, report)?;
    let Some((form, at)) = fields.either(&FORMS, report) else {
        report.wrong(place, HOW, FORM);
        return None;
    };
    let written = match form {
        Form::Command => command(&at, &mut fields, around, report),
        Form::Builtin => builtin(&at, &mut fields, around, report),
        Form::Http => http(&at, method, fields.place(), around, report),
        Form::Mcp => mcp_reader::read(&at, fields.place(), around, report),
        Form::Openapi => {
            let fix =
                "write `sources: [{ openapi: file.yaml, operations: [name] }]` beside `tools:`";
            report.broken(&at, HOW, "openapi, which makes tools of its own", fix);
            return None;
        }
    };
    fields.close(report);
    written
}

fn command<'n>(
    at: &Place<'n>,
    fields: &mut Fields<'n>,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Written<'n>> {
    let argv = argv(at, around, report);
    let folder = match fields.get("folder") {
        Some(folder) => path(&folder, around, report),
        None => Some(around.folder.to_owned()),
    };
    let env = fields.get("env").map_or(Some(Vec::new()), |env| env.texts(report));
    let most = match fields.get("max_output_bytes") {
        Some(most) => most.whole(1, MOST_OUTPUT_BYTES, report),
        None => Some(MAX_OUTPUT_BYTES),
    };
    let (argv, templates) = argv?;
    let run = CommandRun { argv, folder: Some(folder?), env: env?, max_output_bytes: most? };
    let as_written = fields.place().node().to_json();
    Some(Written { run: Run::Command(run), as_written, templates })
}

fn http<'n>(
    at: &Place<'n>,
    method: Method,
    whole: &Place<'n>,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Written<'n>> {
    let (run, templates) = http_reader::read(at, method, around, report)?;
    Some(Written { run: Run::Http(run), as_written: whole.node().to_json(), templates })
}

pub(crate) type Argv<'n> = (Vec<String>, Vec<(Template, Place<'n>)>);

pub(crate) fn argv<'n>(
    place: &Place<'n>,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Argv<'n>> {
    if let Some(text) = place.node().as_text() {
        // In quotes, so that braces are no map and a number is no number.
        let item = |word: &str| Value::from(word).to_string();
        let list: Vec<String> = text.split_whitespace().map(item).collect();
        let fix = format!("write [{}]: no shell splits it", list.join(", "));
        report.wrong(place, "a list of program and arguments", fix);
        return None;
    }
    let items = place.list(report)?;
    if items.is_empty() {
        report.wrong(place, "a program and its arguments", "name the program first");
        return None;
    }
    let mut argv = Vec::new();
    let mut templates = Vec::new();
    for (index, item) in items.into_iter().enumerate() {
        let (text, template) = element(&item, report)?;
        if index == 0 && template.names().next().is_some() {
            report.wrong(&item, "a fixed program", "a model must not choose the program: name it");
        }
        argv.push(if index == 0 { program(&text, around.folder) } else { text });
        templates.push((template, item));
    }
    Some((argv, templates))
}

/// One element; numbers and truth values are text for a process.
fn element(item: &Place<'_>, report: &mut Report) -> Option<(String, Template)> {
    let text = scalar(item, report)?;
    let template = Template::parse(&text);
    Some((text, template))
}

/// Text; numbers and truth values are taken for it.
pub(crate) fn scalar(item: &Place<'_>, report: &mut Report) -> Option<String> {
    match &item.node().kind {
        Kind::Text(text) => Some(text.clone()),
        Kind::Number(_) | Kind::Bool(_) => Some(item.node().shown()),
        Kind::Null | Kind::List(_) => {
            report.wrong(item, "text", "write each argument in quotes");
            None
        }
        Kind::Map(_) => {
            report.wrong(item, "text", "put `{name}` in quotes, or YAML takes it for a map");
            None
        }
    }
}

/// Whether a program takes a script's file as its first word.
fn is_reader(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or(program);
    let name = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    READERS.contains(&name)
}

/// A first word that can only be a file: options and code look otherwise.
fn is_script(word: &str) -> bool {
    let extension = Path::new(word).extension().and_then(std::ffi::OsStr::to_str);
    let is_named_so = extension.is_some_and(|extension| SCRIPTS.contains(&extension));
    !word.starts_with('-') && (word.contains('/') || is_named_so)
}

fn program(text: &str, folder: &Path) -> String {
    if text.contains('/') { joined(folder, text).display().to_string() } else { text.to_owned() }
}

fn builtin<'n>(
    at: &Place<'n>,
    fields: &mut Fields<'n>,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Written<'n>> {
    let builtin = at.choice(Builtin::ALL, report);
    let root = match fields.get("root") {
        Some(root) if builtin.is_some_and(|builtin| !builtin.has_root()) => {
            report.wrong(&root, "no root, for it reads no files", "leave it out");
            None
        }
        Some(root) => Some(path(&root, around, report)?),
        None => builtin.filter(|builtin| builtin.has_root()).map(|_| around.folder.to_owned()),
    };
    let private = match fields.get("private") {
        Some(at) if builtin.is_some_and(|builtin| builtin != Builtin::FetchUrl) => {
            report.wrong(&at, "no such field, for it asks no server", "leave it out");
            None
        }
        Some(at) => at.truth(report),
        None => Some(false),
    };
    let run = Run::Builtin(BuiltinRun { builtin: builtin?, root, private: private? });
    Some(Written { run, as_written: fields.place().node().to_json(), templates: Vec::new() })
}

/// A folder, relative to the file's; `${NAME}` and `${NAME:-otherwise}` are filled.
pub(crate) fn path(
    place: &Place<'_>,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<PathBuf> {
    let text = variables(place, place.words(report)?, &FOLDER, around, report)?;
    Some(joined(around.folder, &text))
}

/// What a text with variables is, and what stands in at its beginning for one that is not set.
pub(crate) struct Filling {
    expected: &'static str,
    stand_in: &'static str,
}

pub(crate) const FOLDER: Filling = Filling { expected: "a folder", stand_in: "/stand-in" };
pub(crate) const FILE: Filling = Filling { expected: "a file", stand_in: "/stand-in" };
pub(crate) const URL: Filling = Filling { expected: "a URL", stand_in: "https://stand-in.invalid" };

/// A text with its `${NAME}` and `${NAME:-otherwise}` filled.
pub(crate) fn variables(
    place: &Place<'_>,
    text: &str,
    what: &Filling,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<String> {
    match filled(text, what, around) {
        Ok(text) => Some(text),
        Err(name) => {
            let found = format!("${{{name}}}, which is not set");
            let fix = format!("set {name}, or write `${{{name}:-otherwise}}`");
            report.broken(place, what.expected, found, fix);
            None
        }
    }
}

fn filled(text: &str, what: &Filling, around: &Surroundings<'_>) -> Result<String, String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (inner, after) = after.split_once('}').ok_or_else(|| after.to_owned())?;
        let (name, otherwise) =
            inner.split_once(":-").map_or((inner, None), |(name, other)| (name, Some(other)));
        filled.push_str(before);
        let found = (around.variable)(name).filter(|found| !found.is_empty());
        let found = found.or_else(|| otherwise.map(str::to_owned));
        let found = found.or_else(|| match around.unset {
            Unset::Problem => None,
            Unset::StandIn if filled.is_empty() => Some(what.stand_in.to_owned()),
            Unset::StandIn => Some("stand-in".to_owned()),
        });
        filled.push_str(&found.ok_or_else(|| name.to_owned())?);
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

/// `folder` with `text` under it, without `.` and with `..` taken away where it can be.
pub(crate) fn joined(folder: &Path, text: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in folder.join(text).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if path.file_name().is_some() => {
                path.pop();
            }
            Component::Prefix(_)
            | Component::RootDir
            | Component::ParentDir
            | Component::Normal(_) => {
                path.push(part);
            }
        }
    }
    path
}

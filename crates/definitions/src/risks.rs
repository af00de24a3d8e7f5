//! Advice on what a tool trusts: servers that somebody else wrote, secrets that leave, networks that
//! are open.

use crate::http::{Header, HttpRun};
use crate::lint::Notes;
use crate::manifest::ToolDefinition;
use crate::mcp::{EnvValue, McpHttp, McpPlace, McpProcess, McpRun};
use crate::run::{BuiltinRun, Run};
use crate::template::Template;

/// Programs that fetch a package and run it.
const FETCHERS: [&str; 7] = ["npx", "uvx", "bunx", "pnpx", "pipx", "dlx", "yarn"];

/// Every risk of one tool.
pub(crate) fn risks(tool: &ToolDefinition, notes: &mut Notes) {
    match &tool.run {
        Run::Mcp(run) => mcp(run, notes),
        Run::Http(run) => http(run, notes),
        Run::Builtin(BuiltinRun { private: true, .. }) => {
            let fix = "leave `private` out, unless the model may read what only this machine can";
            notes.add("run.private", "lets a model reach private networks", fix);
        }
        Run::Builtin(_) | Run::Command(_) => {}
    }
}

/// Whether a server says what repeating the tool does.
pub(crate) fn trusts(tool: &ToolDefinition) -> bool {
    matches!(&tool.run, Run::Mcp(run) if run.server.trust_annotations)
}

fn mcp(run: &McpRun, notes: &mut Notes) {
    if !run.stated.description || !run.stated.parameters {
        let fix = "let `systole tools import mcp` write description and parameters, and read them";
        let weakness =
            "are what the server says whenever it starts, so it may tell models anything";
        notes.add("description and parameters", weakness, fix);
    }
    if run.server.trust_annotations && !run.stated.effect {
        let fix = "write `effect` here once you know what the tool does";
        let weakness = "is what the server says; if it is wrong, an effect may happen twice";
        notes.add("effect", weakness, fix);
    }
    match &run.server.place {
        McpPlace::Process(process) => process_risks(process, notes),
        McpPlace::Http(http) => server_risks(http, notes),
    }
}

fn process_risks(process: &McpProcess, notes: &mut Notes) {
    let program = process.argv.first().map_or("", String::as_str);
    let program = program.rsplit('/').next().unwrap_or(program);
    if FETCHERS.contains(&program) && !process.argv.iter().skip(1).any(|word| is_pinned(word)) {
        let fix = "name a version, such as package@1.2.3, or install the server beforehand";
        let weakness = "runs whatever version the registry has when the worker starts";
        notes.add("run.mcp.command", weakness, fix);
    }
    let secrets = process.env.iter().filter(|(_, value)| matches!(value, EnvValue::Secret(_)));
    let names: Vec<&str> = secrets.map(|(name, _)| name.as_str()).collect();
    if !names.is_empty() {
        let weakness = format!("hands {} to a program that somebody else wrote", names.join(", "));
        notes.add("run.mcp.env", weakness, "give it a key of its own with few rights");
    }
}

/// A package with a version: `name@1`, `@scope/name@1`, `name==1`.
fn is_pinned(word: &str) -> bool {
    let version = word.rsplit_once("==").or_else(|| word.rsplit_once('@'));
    version.is_some_and(|(name, version)| {
        !name.is_empty() && version.starts_with(|c: char| c.is_ascii_digit())
    })
}

fn server_risks(http: &McpHttp, notes: &mut Notes) {
    if is_in_the_clear(&http.url) {
        let fix = "use https: whoever is on the way reads and changes what is said";
        notes.add("run.mcp.url", "talks in the clear", fix);
    }
    if http.private {
        notes.add("run.mcp.private", PRIVATE.0, PRIVATE.1);
    }
}

fn http(run: &HttpRun, notes: &mut Notes) {
    let secrets = run.headers.iter().filter(|(_, header)| matches!(header, Header::Secret { .. }));
    if is_in_the_clear(&run.origin) && secrets.count() > 0 {
        notes.add("run.http.url", "sends a secret in the clear", "use https");
    }
    for (name, header) in &run.headers {
        if let Header::Template(text) = header
            && Template::parse(text).names().next().is_some()
        {
            let fix = "write the value out, unless no value of it can do harm";
            notes.add("run.http.headers", format!("let a model choose `{name}`"), fix);
        }
    }
    if run.private {
        notes.add("run.http.private", PRIVATE.0, PRIVATE.1);
    }
}

const PRIVATE: (&str, &str) = (
    "lets a name lead into private networks, whoever answers for the name",
    "leave it out if the host is public, or write its address",
);

fn is_in_the_clear(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else { return false };
    let here = ["127.", "localhost", "[::1]"];
    !here.iter().any(|here| rest.starts_with(here))
}

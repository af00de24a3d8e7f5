//! `systole tools check`: what is wrong with files, and what is weak about tools.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use definitions::agent_file::AgentFile;
use definitions::lint::{Advice, lint};
use definitions::manifest::Manifest;
use definitions::problem::Problem;
use definitions::run::{Surroundings, Unset};
use proto::error_code::ErrorCode;
use proto::tool::{Approval, ToolContract};
use serde_json::{Value, json};

use super::dev::find;
use super::{Context, print};
use crate::agent_files::{
    Disk, Files, LoadedTool, beside, document, load, load_manifest, load_rehearsal,
    missing_manifests, named_manifests, required,
};
use crate::failure::{Exit, Failure};
use crate::file_kind::{KINDS, Kind, kind};
use crate::programs;
use crate::screen::call_line::span;
use crate::screen::canvas::page;
use crate::screen::style::{Palette, Tone};
use crate::screen::summary::counted;
use crate::screen::text::{columns, hanging, one_line};
use crate::settings::Environment;
use crate::wiring::rehearsals;

/// What was found in the files.
#[derive(Debug, Default)]
struct Findings {
    problems: Vec<Problem>,
    other: Vec<String>,
    advice: Vec<Advice>,
    tools: usize,
    /// Files that were checked, so that one which an agent names too is told once.
    seen: BTreeMap<PathBuf, Vec<ToolContract>>,
}

/// Checks files; `known` was found wrong before.
pub(crate) fn check(
    context: &Context,
    files: &[PathBuf],
    known: Vec<String>,
    json: bool,
) -> Result<Exit, Failure> {
    let mut findings = Findings { other: known, ..Findings::default() };
    for path in files {
        findings.check(path, &context.environment);
    }
    findings.problems.sort();
    findings.problems.dedup();
    let clean = findings.problems.is_empty() && findings.other.is_empty();
    let text = if json { as_json(&findings) } else { as_text(&findings, files, context.palette()) };
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::other("standard output", error))
        }
        Ok(()) | Err(_) if clean => Ok(Exit::Done),
        Ok(()) | Err(_) => Ok(Exit::BadInput),
    }
}

impl Findings {
    fn check(&mut self, path: &Path, environment: &Environment) {
        let text = match required(&Disk, path) {
            Ok(text) => text,
            Err(failure) => return self.other.extend(failure.lines),
        };
        let name = path.display().to_string();
        match kind(path, &text) {
            None => self.other.push(format!("{name}: {KINDS}")),
            Some(Kind::Rehearsal) => {
                self.problems.extend(rehearsals::check_rehearsal(&name, &text));
            }
            Some(Kind::Agent) => self.agent(path, &text, environment),
            Some(Kind::Manifest) => {
                self.manifest(path, environment);
            }
        }
    }

    /// Checks a tool file once; answers with its tools, none when something is wrong with it.
    fn manifest(&mut self, path: &Path, environment: &Environment) -> Vec<ToolContract> {
        let key = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if let Some(tools) = self.seen.get(&key) {
            return tools.clone();
        }
        let tools = self.fresh_manifest(path, environment);
        self.seen.insert(key, tools.clone());
        tools
    }

    fn fresh_manifest(&mut self, path: &Path, environment: &Environment) -> Vec<ToolContract> {
        let text = match required(&Disk, path) {
            Ok(text) => text,
            Err(failure) => {
                self.other.extend(failure.lines);
                return Vec::new();
            }
        };
        let name = path.display().to_string();
        let folder = match Disk.folder_of(path) {
            Ok(folder) => folder,
            Err(error) => {
                self.other.push(format!("{name}: {error}"));
                return Vec::new();
            }
        };
        let variable = |name: &str| environment.text(name);
        // The file may be used where other variables are set.
        let document = |path: &Path| document(&Disk, path);
        let around = Surroundings {
            folder: &folder,
            variable: &variable,
            unset: Unset::StandIn,
            document: &document,
        };
        match Manifest::parse(&name, &text, &around) {
            Ok(manifest) => {
                self.tools = self.tools.saturating_add(manifest.tools.len());
                self.problems.extend(programs::problems(&name, &folder, &manifest.tools));
                self.advice.extend(lint(&manifest));
                let path = environment.all().get(OsStr::new("PATH"));
                self.advice.extend(programs::advice(&manifest, path.map(OsString::as_os_str)));
                manifest.tools.into_iter().map(|tool| tool.contract).collect()
            }
            Err(problems) => {
                self.problems.extend(problems);
                Vec::new()
            }
        }
    }

    /// Checks an agent's file with all that it names, and whether they fit each other.
    fn agent(&mut self, path: &Path, text: &str, environment: &Environment) {
        let file = match AgentFile::parse(&path.display().to_string(), text) {
            Ok(file) => file,
            Err(problems) => return self.problems.extend(problems),
        };
        let missing = match missing_manifests(&Disk, path, &file) {
            Ok(missing) => missing,
            Err(failure) => return self.other.extend(failure.lines),
        };
        let mut is_whole = missing.is_empty();
        self.problems.extend(missing);
        let mut contracts = Vec::new();
        for name in named_manifests(&file) {
            let path = beside(path, name);
            if path.exists() {
                let tools = self.manifest(&path, environment);
                is_whole &= !tools.is_empty();
                contracts.extend(tools);
            }
        }
        if is_whole {
            let known = contracts.iter().map(|tool| tool.name.clone()).collect();
            self.problems.extend(file.unknown_tools(&known));
            self.problems.extend(file.not_permitted(&contracts));
        }
        self.rehearsal(path, &file, &contracts, is_whole);
    }

    fn rehearsal(
        &mut self,
        agent: &Path,
        file: &AgentFile,
        tools: &[ToolContract],
        is_whole: bool,
    ) {
        let found = match load_rehearsal(&Disk, agent, file) {
            Ok(found) => found,
            Err(failure) => return self.other.extend(failure.lines),
        };
        let Some(rehearsal) = found else { return };
        let tools: Vec<&ToolContract> =
            tools.iter().filter(|tool| file.agent.tools.contains(&tool.name)).collect();
        let tools = is_whole.then_some(tools.as_slice());
        self.problems.extend(rehearsals::check_rehearsal_of(
            &rehearsal.file,
            &rehearsal.text,
            tools,
        ));
    }
}

fn as_text(findings: &Findings, files: &[PathBuf], palette: Palette) -> String {
    let problems = findings.problems.iter().map(ToString::to_string);
    let problems = problems.chain(findings.other.iter().cloned());
    let told = |tone: Tone, word: &str, text: &str| {
        let lines = hanging(&format!("{word} {text}"), page(), 2);
        lines.join("\n").replacen(word, &palette.paint(tone, word), 1)
    };
    let mut lines: Vec<String> =
        problems.map(|problem| told(Tone::Bad, "wrong", &problem)).collect();
    let advice = findings.advice.iter();
    lines.extend(advice.map(|advice| told(Tone::Warm, "advice", &advice.to_string())));
    let wrong = findings.problems.len().saturating_add(findings.other.len());
    let count = |number: usize, what| counted(u64::try_from(number).unwrap_or(u64::MAX), what);
    let pieces = count(findings.advice.len(), "piece");
    lines.push(format!(
        "{}, {}: {wrong} wrong, {pieces} of advice\n",
        count(files.len(), "file"),
        count(findings.tools, "tool"),
    ));
    lines.join("\n")
}

fn as_json(findings: &Findings) -> String {
    let problem = |p: &Problem| {
        json!({"file": p.file, "line": p.line, "column": p.column, "field": p.field,
            "expected": p.expected, "found": p.found, "fix": p.fix})
    };
    let advice = |a: &Advice| {
        json!({"file": a.file, "line": a.line, "tool": a.tool, "field": a.field,
            "weakness": a.weakness, "fix": a.fix})
    };
    let problems: Vec<Value> = findings.problems.iter().map(problem).collect();
    let advice: Vec<Value> = findings.advice.iter().map(advice).collect();
    let value = json!({"problems": problems, "other": findings.other, "advice": advice});
    format!("{value}\n")
}

/// Lists tools, each once.
pub(crate) fn list(context: &Context, named: &[PathBuf], json: bool) -> Result<Exit, Failure> {
    let mut tools: Vec<LoadedTool> = Vec::new();
    for path in paths(named)? {
        for tool in of_file(&path, &context.environment)? {
            let is_known = tools.iter().any(|known| {
                known.folder == tool.folder
                    && known.definition.contract.name == tool.definition.contract.name
            });
            if !is_known {
                tools.push(tool);
            }
        }
    }
    print(&if json { json_list(&tools) } else { text_list(&tools, context.palette()) })?;
    Ok(Exit::Done)
}

/// A tool file that is named stays; what else is named are agents.
fn paths(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if named.is_empty() {
        return find::files(named);
    }
    let mut paths = Vec::new();
    for path in named {
        paths.extend(find::files(std::slice::from_ref(path))?);
    }
    Ok(paths)
}

fn of_file(path: &Path, environment: &Environment) -> Result<Vec<LoadedTool>, Failure> {
    let text = Disk.read(path).ok().flatten().unwrap_or_default();
    match kind(path, &text) {
        Some(Kind::Manifest) | None => load_manifest(&Disk, path, environment)?
            .map_err(|problems| Failure::files(ErrorCode::InvalidManifest, &problems)),
        Some(Kind::Agent | Kind::Rehearsal) => Ok(load(&Disk, path, environment)?.tools),
    }
}

fn approval(tool: &LoadedTool) -> &'static str {
    match &tool.definition.contract.approval {
        Approval::Never => "no approval",
        Approval::Always => "approval",
        Approval::WhenTainted => "approval when tainted",
        Approval::When(_) => "approval on a condition",
    }
}

fn text_list(tools: &[LoadedTool], palette: Palette) -> String {
    let names = tools.iter().map(|tool| columns(tool.definition.contract.name.as_str()));
    let names = names.max().unwrap_or(0);
    let line = |tool: &LoadedTool| {
        let contract = &tool.definition.contract;
        let name = contract.name.as_str();
        let first = format!(
            "{name}{}  {:<12}  {:>7}  {}",
            " ".repeat(names.saturating_sub(columns(name))),
            contract.effect.as_str(),
            span(contract.timeout()),
            approval(tool),
        );
        let first = hanging(&first, page(), 4).join("\n");
        let first = first.replacen(name, &palette.paint(Tone::Strong, name), 1);
        let rest = hanging(&format!("    {}", one_line(&contract.description)), page(), 4);
        let rest = rest.iter().map(|line| palette.paint(Tone::Faint, line) + "\n");
        format!("{first}\n{}", rest.collect::<String>())
    };
    tools.iter().map(line).collect()
}

fn json_list(tools: &[LoadedTool]) -> String {
    let line = |tool: &LoadedTool| {
        let value = json!({"folder": tool.folder, "tool": tool.definition.contract});
        format!("{value}\n")
    };
    tools.iter().map(line).collect()
}

//! `systole tools check`: what is wrong with files, and what is weak about tools.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use definitions::agent_file::AgentFile;
use definitions::lint::{Advice, lint};
use definitions::manifest::Manifest;
use definitions::problem::Problem;
use definitions::run::Surroundings;
use proto::error_code::ErrorCode;
use proto::tool::Approval;
use serde_json::{Value, json};

use super::dev::find;
use super::{Context, print};
use crate::agent_files::{Disk, Files, Kind, LoadedTool, kind, load, load_manifest};
use crate::failure::{Exit, Failure};
use crate::screen::call_line::span;
use crate::screen::style::{Palette, Tone};
use crate::screen::text::{columns, one_line};
use crate::settings::Environment;
use crate::wiring;

/// What was found in the files.
#[derive(Debug, Default)]
struct Findings {
    problems: Vec<Problem>,
    other: Vec<String>,
    advice: Vec<Advice>,
    tools: usize,
}

/// Checks files.
pub(crate) fn check(context: &Context, files: &[PathBuf], json: bool) -> Result<Exit, Failure> {
    let mut findings = Findings::default();
    for path in files {
        check_one(path, &context.environment, &mut findings);
    }
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

fn check_one(path: &Path, environment: &Environment, findings: &mut Findings) {
    let name = path.display().to_string();
    let text = match Disk.read(path) {
        Ok(Some(text)) => text,
        Ok(None) => return findings.other.push(format!("{name}: there is no such file")),
        Err(error) => return findings.other.push(format!("{name}: cannot be read: {error}")),
    };
    match kind(&text) {
        Kind::Manifest => check_manifest(path, &text, environment, findings),
        Kind::Rehearsal => findings.problems.extend(wiring::check_rehearsal(&name, &text)),
        Kind::Agent => check_agent(path, &text, environment, findings),
    }
}

fn check_manifest(path: &Path, text: &str, environment: &Environment, findings: &mut Findings) {
    let folder = match Disk.folder_of(path) {
        Ok(folder) => folder,
        Err(error) => return findings.other.push(format!("{}: {error}", path.display())),
    };
    let variable = |name: &str| environment.text(name).or_else(|| Some(format!("/{name}")));
    let around = Surroundings { folder: &folder, variable: &variable };
    match Manifest::parse(&path.display().to_string(), text, &around) {
        Ok(manifest) => {
            findings.tools = findings.tools.saturating_add(manifest.tools.len());
            findings.advice.extend(lint(&manifest));
        }
        Err(problems) => findings.problems.extend(problems),
    }
}

fn check_agent(path: &Path, text: &str, environment: &Environment, findings: &mut Findings) {
    let name = path.display().to_string();
    match AgentFile::parse(&name, text) {
        Err(problems) => findings.problems.extend(problems),
        // What the file names is read too; its problems come as lines.
        Ok(_) => match load(&Disk, path, environment) {
            Ok(loaded) => {
                let rehearsal = loaded.rehearsal.iter();
                let checked = rehearsal.flat_map(|r| wiring::check_rehearsal(&r.file, &r.text));
                findings.problems.extend(checked);
            }
            Err(failure) => findings.other.extend(failure.lines),
        },
    }
}

fn as_text(findings: &Findings, files: &[PathBuf], palette: Palette) -> String {
    let problems = findings.problems.iter().map(ToString::to_string);
    let problems = problems.chain(findings.other.iter().cloned());
    let wrong = palette.paint(Tone::Bad, "wrong");
    let weak = palette.paint(Tone::Warm, "advice");
    let mut lines: Vec<String> = problems.map(|problem| format!("{wrong} {problem}")).collect();
    lines.extend(findings.advice.iter().map(|advice| format!("{weak} {advice}")));
    let wrong = findings.problems.len().saturating_add(findings.other.len());
    lines.push(format!(
        "{} files, {} tools: {wrong} wrong, {} pieces of advice\n",
        files.len(),
        findings.tools,
        findings.advice.len()
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
    match kind(&text) {
        Kind::Manifest => load_manifest(&Disk, path, environment)?
            .map_err(|problems| Failure::files(ErrorCode::InvalidManifest, &problems)),
        Kind::Agent | Kind::Rehearsal => Ok(load(&Disk, path, environment)?.tools),
    }
}

fn approval(tool: &LoadedTool) -> &'static str {
    match tool.definition.contract.approval {
        Approval::Never => "no approval",
        Approval::Always => "approval",
        Approval::WhenTainted => "approval when tainted",
    }
}

fn text_list(tools: &[LoadedTool], palette: Palette) -> String {
    let names = tools.iter().map(|tool| columns(tool.definition.contract.name.as_str()));
    let names = names.max().unwrap_or(0);
    let line = |tool: &LoadedTool| {
        let contract = &tool.definition.contract;
        let name = contract.name.as_str();
        format!(
            "{}{}  {:<12}  {:>7}  {}\n    {}\n",
            palette.paint(Tone::Strong, name),
            " ".repeat(names.saturating_sub(columns(name))),
            contract.effect.as_str(),
            span(contract.timeout()),
            approval(tool),
            palette.paint(Tone::Faint, &one_line(&contract.description)),
        )
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

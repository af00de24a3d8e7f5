//! `systole tools check`: what is wrong with files, and what is weak about tools.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use definitions::agent_file::AgentFile;
use definitions::lint::{Advice, lint};
use definitions::manifest::Manifest;
use definitions::problem::Problem;
use definitions::run::Surroundings;
use serde_json::{Value, json};

use super::Context;
use crate::agent_files::{Disk, Files, Kind, kind, load};
use crate::failure::{Exit, Failure};
use crate::screen::style::{Palette, Tone};
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

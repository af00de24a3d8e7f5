//! An agent with its tools and its rehearsal, from files on disk or from those built in.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

use definitions::agent_file::AgentFile;
use definitions::manifest::{Manifest, ToolDefinition};
use definitions::problem::Problem;
use definitions::run::Surroundings;
use proto::agent::Agent;
use proto::error_code::ErrorCode;
use proto::hash;
use proto::ids::ToolName;

use crate::failure::Failure;
use crate::settings::Environment;

/// The name of a rehearsal beside an agent file.
const REHEARSAL: &str = "rehearsal.yaml";

/// Where files come from.
pub(crate) trait Files {
    /// The text of a file; `None` when there is none of that name.
    fn read(&self, path: &Path) -> io::Result<Option<String>>;

    /// The folder that a file's tools work in.
    fn folder_of(&self, path: &Path) -> io::Result<PathBuf>;
}

/// Files on disk.
pub(crate) struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<Option<String>> {
        match std::fs::read_to_string(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn folder_of(&self, path: &Path) -> io::Result<PathBuf> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        folder.unwrap_or_else(|| Path::new(".")).canonicalize()
    }
}

/// What a file is, by its first fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Agent,
    Manifest,
    Rehearsal,
}

/// A manifest lists tools as maps, a rehearsal has rules or cases; an agent has a role.
pub(crate) fn kind(text: &str) -> Kind {
    let has = |field: &str| text.lines().any(|line| line.starts_with(field));
    if has("rules:") || has("cases:") {
        Kind::Rehearsal
    } else if has("role:") || has("model:") {
        Kind::Agent
    } else {
        Kind::Manifest
    }
}

/// A tool and the folder its manifest stands for.
#[derive(Clone, Debug)]
pub(crate) struct LoadedTool {
    pub(crate) definition: ToolDefinition,
    pub(crate) folder: PathBuf,
}

/// A rehearsal that nobody has read yet.
#[derive(Clone, Debug)]
pub(crate) struct RehearsalText {
    pub(crate) file: String,
    pub(crate) text: String,
}

/// An agent, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct LoadedAgent {
    pub(crate) agent: Agent,
    pub(crate) tools: Vec<LoadedTool>,
    pub(crate) rehearsal: Option<RehearsalText>,
}

/// Reads an agent's file and all that it names. Every problem of every file is told at once.
pub(crate) fn load(
    files: &dyn Files,
    path: &Path,
    environment: &Environment,
) -> Result<LoadedAgent, Failure> {
    let name = path.display().to_string();
    let text = required(files, path)?;
    let file = AgentFile::parse(&name, &text)
        .map_err(|problems| Failure::files(ErrorCode::InvalidAgent, &problems))?;
    let tools = load_tools(files, path, &file, environment)?;
    let known: BTreeSet<ToolName> =
        tools.iter().map(|tool| tool.definition.contract.name.clone()).collect();
    let unknown = file.unknown_tools(&known);
    if !unknown.is_empty() {
        return Err(Failure::files(ErrorCode::InvalidAgent, &unknown));
    }
    let rehearsal = load_rehearsal(files, path, &file)?;
    Ok(LoadedAgent { agent: file.agent, tools, rehearsal })
}

fn required(files: &dyn Files, path: &Path) -> Result<String, Failure> {
    let name = path.display();
    match files.read(path) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err(Failure::not_found(format!("{name}: there is no such file"))),
        Err(error) => Err(Failure::input(format!("{name}: cannot be read: {error}"))),
    }
}

fn load_tools(
    files: &dyn Files,
    agent: &Path,
    file: &AgentFile,
    environment: &Environment,
) -> Result<Vec<LoadedTool>, Failure> {
    let mut tools: Vec<LoadedTool> = Vec::new();
    let mut problems = Vec::new();
    // An agent without tools needs no manifest.
    let manifests = if file.agent.tools.is_empty() { &[] } else { &*file.manifests };
    for manifest in manifests {
        let path = beside(agent, manifest);
        match load_manifest(files, &path, environment)? {
            Ok(loaded) => {
                problems.extend(doubles(&tools, &loaded));
                tools.extend(loaded);
            }
            Err(found) => problems.extend(found),
        }
    }
    if problems.is_empty() {
        return Ok(tools);
    }
    Err(Failure::files(ErrorCode::InvalidManifest, &problems))
}

type Checked<T> = Result<T, Vec<Problem>>;

/// Reads one manifest.
pub(crate) fn load_manifest(
    files: &dyn Files,
    path: &Path,
    environment: &Environment,
) -> Result<Checked<Vec<LoadedTool>>, Failure> {
    let text = required(files, path)?;
    let folder = files.folder_of(path).map_err(|error| {
        Failure::input(format!("{}: its folder cannot be found: {error}", path.display()))
    })?;
    let variable = |name: &str| environment.text(name);
    let around = Surroundings { folder: &folder, variable: &variable };
    let parsed = Manifest::parse(&path.display().to_string(), &text, &around);
    Ok(parsed.map(|manifest| {
        let tools = manifest.tools.into_iter();
        tools.map(|definition| LoadedTool { definition, folder: folder.clone() }).collect()
    }))
}

/// Tools whose names are taken.
pub(crate) fn doubles(known: &[LoadedTool], more: &[LoadedTool]) -> Vec<Problem> {
    let is_known = |tool: &&LoadedTool| {
        known.iter().any(|other| other.definition.contract.name == tool.definition.contract.name)
    };
    let problem = |tool: &LoadedTool| Problem {
        file: tool.folder.display().to_string(),
        line: tool.definition.stated.line,
        column: 1,
        field: tool.definition.contract.name.to_string(),
        expected: "each tool name in one manifest".to_owned(),
        found: "a second one".to_owned(),
        fix: "rename one of them".to_owned(),
    };
    more.iter().filter(is_known).map(problem).collect()
}

fn load_rehearsal(
    files: &dyn Files,
    agent: &Path,
    file: &AgentFile,
) -> Result<Option<RehearsalText>, Failure> {
    let path = beside(agent, file.rehearsal.as_deref().unwrap_or(REHEARSAL));
    let found = match &file.rehearsal {
        Some(_) => Some(required(files, &path)?),
        None => files.read(&path).map_err(|error| {
            Failure::input(format!("{}: cannot be read: {error}", path.display()))
        })?,
    };
    Ok(found.map(|text| RehearsalText { file: path.display().to_string(), text }))
}

fn beside(file: &Path, name: &str) -> PathBuf {
    file.parent().map_or_else(|| PathBuf::from(name), |folder| folder.join(name))
}

/// The agent with another model; another model is another agent.
pub(crate) fn with_model(mut agent: Agent, model: &str) -> Agent {
    if agent.model == model {
        return agent;
    }
    model.clone_into(&mut agent.model);
    let both = format!("{} {model}", agent.fingerprint);
    agent.fingerprint = hash::fingerprint(&both);
    agent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_fields() {
        assert_eq!(kind("name: a\nrole: b\nmodel: c\ntools: []\n"), Kind::Agent);
        assert_eq!(kind("tools:\n  - name: a\n"), Kind::Manifest);
        assert_eq!(kind("cases:\n  - name: a\n"), Kind::Rehearsal);
        assert_eq!(kind("# words\nrules:\n  - say: hi\n"), Kind::Rehearsal);
    }
}

//! An agent with its tools and its rehearsal, from files on disk or from those built in.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use argument_check::nearest;
use definitions::agent_file::AgentFile;
use definitions::manifest::{Manifest, ToolDefinition};
use definitions::problem::Problem;
use definitions::run::{Surroundings, Unset};
use proto::agent::{Agent, Price};
use proto::error_code::ErrorCode;
use proto::hash;
use proto::ids::ToolName;

use crate::arguments::ModelChoice;
use crate::failure::{Exit, Failure};
use crate::file_kind::{self, Kind};
use crate::programs;
use crate::settings::Environment;

/// The usual name of an agent's file.
pub(crate) const AGENT: &str = "agent.yaml";
/// The name of a rehearsal beside an agent file.
const REHEARSAL: &str = "rehearsal.yaml";

/// Where files come from.
pub(crate) trait Files {
    /// The text of a file; `None` when there is none of that name.
    fn read(&self, path: &Path) -> io::Result<Option<String>>;

    /// The folder that a file's tools work in.
    fn folder_of(&self, path: &Path) -> io::Result<PathBuf>;

    /// A file that matters, though only whether it is there and may be run.
    fn watch(&self, _path: &Path) {}

    /// The names of files in a folder, for whoever wrote one of them wrongly.
    fn names(&self, _folder: &Path) -> Vec<String> {
        Vec::new()
    }
}

/// The most names that are looked at.
const MOST_NAMES: usize = 1000;

/// The files of a folder on disk; none of one that cannot be read.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(MOST_NAMES);
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.collect()
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

    fn names(&self, folder: &Path) -> Vec<String> {
        names_in(if folder.as_os_str().is_empty() { Path::new(".") } else { folder })
    }
}

/// A tool and the folder its manifest stands for.
#[derive(Clone, Debug)]
pub(crate) struct LoadedTool {
    pub(crate) definition: ToolDefinition,
    pub(crate) folder: PathBuf,
    /// The manifest, as it was named.
    pub(crate) file: String,
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
    /// Where it was read.
    pub(crate) file: PathBuf,
    pub(crate) tools: Vec<LoadedTool>,
    pub(crate) rehearsal: Option<RehearsalText>,
    /// What is wrong although all could be read: the agent can be looked at, but not be put to work.
    faults: Vec<Problem>,
}

impl LoadedAgent {
    /// The agent, if nothing is wrong with it that `agents check` would call wrong.
    pub(crate) fn fit_for_work(self) -> Result<Self, Failure> {
        if self.faults.is_empty() {
            return Ok(self);
        }
        Err(Failure::files(ErrorCode::InvalidManifest, &self.faults))
    }
}

/// The agent's file that is meant; a folder stands for the one of the usual name in it.
pub(crate) fn agent_file(named: &Path) -> PathBuf {
    if named.is_dir() { named.join(AGENT) } else { named.to_owned() }
}

/// Reads an agent's file and all that it names. Every problem of every file is told at once.
pub(crate) fn load(
    files: &dyn Files,
    path: &Path,
    environment: &Environment,
) -> Result<LoadedAgent, Failure> {
    let name = path.display().to_string();
    let text = required(files, path)?;
    let file = AgentFile::parse(&name, &text).map_err(|problems| match file_kind::said(&text) {
        Some(kind @ (Kind::Manifest | Kind::Rehearsal)) => not_an_agent(&name, kind),
        Some(Kind::Agent) | None => Failure::files(ErrorCode::InvalidAgent, &problems),
    })?;
    let tools = load_tools(files, path, &file, environment)?;
    let known: BTreeSet<ToolName> =
        tools.iter().map(|tool| tool.definition.contract.name.clone()).collect();
    let unknown = file.unknown_tools(&known);
    if !unknown.is_empty() {
        return Err(Failure::files(ErrorCode::InvalidAgent, &unknown));
    }
    let mut faults = file.not_permitted(tools.iter().map(|tool| &tool.definition.contract));
    for tool in &tools {
        let named = tool.definition.stated.programs.iter().map(|place| &place.program);
        named.filter(|program| program.contains('/')).for_each(|at| files.watch(Path::new(at)));
        faults.extend(programs::problems(&tool.file, &tool.folder, [&tool.definition]));
    }
    let rehearsal = load_rehearsal(files, path, &file)?;
    let at = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    Ok(LoadedAgent { agent: file.agent, file: at, tools, rehearsal, faults })
}

pub(crate) fn required(files: &dyn Files, path: &Path) -> Result<String, Failure> {
    let name = path.display();
    match files.read(path) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => {
            let meant = near(files, path).map(|near| format!("; did you mean {near}?"));
            let why = format!("{name}: there is no such file{}", meant.unwrap_or_default());
            Err(Failure::not_found(why))
        }
        Err(error) => Err(Failure::input(format!("{name}: cannot be read: {error}"))),
    }
}

fn not_an_agent(name: &str, kind: Kind) -> Failure {
    let how = match kind {
        Kind::Rehearsal => "run the agent beside it; its file names this one under `rehearsal:`",
        Kind::Agent | Kind::Manifest => {
            "run an agent file: it lists tools under `tools:` and names this one under `manifest:`"
        }
    };
    let lines = vec![format!("{name} is {}, not an agent file: {how}", kind.words())];
    Failure { exit: Exit::BadInput, code: ErrorCode::InvalidAgent, lines }
}

/// A file beside one that is not there, with a name like its.
fn near(files: &dyn Files, path: &Path) -> Option<String> {
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    let names = files.names(folder);
    let name = path.file_name()?.to_str()?;
    let meant = nearest(name, names.iter().map(String::as_str))?;
    Some(folder.join(meant).display().to_string())
}

/// The same for a name that an agent file gives, as it would have to be written there.
fn near_name(files: &dyn Files, agent: &Path, name: &str) -> Option<String> {
    let near = near(files, &beside(agent, name))?;
    let near = Path::new(&near).file_name()?.to_str()?.to_owned();
    match name.rsplit_once('/') {
        Some((folder, _)) => Some(format!("{folder}/{near}")),
        None => Some(near),
    }
}

/// The manifests of an agent that are not there.
pub(crate) fn missing_manifests(
    files: &dyn Files,
    agent: &Path,
    file: &AgentFile,
) -> Result<Vec<Problem>, Failure> {
    let mut problems = Vec::new();
    for name in named_manifests(file) {
        let path = beside(agent, name);
        if read(files, &path)?.is_none() {
            let near = near_name(files, agent, name);
            problems.extend(file.missing_manifest(name, near.as_deref()));
        }
    }
    Ok(problems)
}

/// An agent without tools needs no manifest.
pub(crate) fn named_manifests(file: &AgentFile) -> &[String] {
    if file.agent.tools.is_empty() { &[] } else { &file.manifests }
}

fn read(files: &dyn Files, path: &Path) -> Result<Option<String>, Failure> {
    files
        .read(path)
        .map_err(|error| Failure::input(format!("{}: cannot be read: {error}", path.display())))
}

fn load_tools(
    files: &dyn Files,
    agent: &Path,
    file: &AgentFile,
    environment: &Environment,
) -> Result<Vec<LoadedTool>, Failure> {
    let mut tools: Vec<LoadedTool> = Vec::new();
    let mut problems = Vec::new();
    let missing = missing_manifests(files, agent, file)?;
    if !missing.is_empty() {
        return Err(Failure::files(ErrorCode::InvalidAgent, &missing));
    }
    for manifest in named_manifests(file) {
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
    let document = |path: &Path| document(files, path);
    let around = Surroundings {
        folder: &folder,
        variable: &variable,
        unset: Unset::Problem,
        document: &document,
    };
    let file = path.display().to_string();
    let parsed = Manifest::parse(&file, &text, &around);
    let loaded = |definition| LoadedTool { definition, folder: folder.clone(), file: file.clone() };
    Ok(parsed.map(|manifest| manifest.tools.into_iter().map(loaded).collect()))
}

/// A file that a manifest names.
pub(crate) fn document(files: &dyn Files, path: &Path) -> Result<String, String> {
    match files.read(path) {
        Ok(Some(text)) => Ok(text),
        Ok(None) => Err("there is no such file".to_owned()),
        Err(error) => Err(error.to_string()),
    }
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

/// An agent's rehearsal, if it has one; one that it names has to be there.
pub(crate) fn load_rehearsal(
    files: &dyn Files,
    agent: &Path,
    file: &AgentFile,
) -> Result<Option<RehearsalText>, Failure> {
    let name = file.rehearsal.as_deref().unwrap_or(REHEARSAL);
    let path = beside(agent, name);
    let found = read(files, &path)?;
    if found.is_none() && file.rehearsal.is_some() {
        let near = near_name(files, agent, name);
        let problems = file.missing_rehearsal(name, near.as_deref());
        return Err(Failure::files(ErrorCode::InvalidAgent, &problems));
    }
    Ok(found.map(|text| RehearsalText { file: path.display().to_string(), text }))
}

pub(crate) fn beside(file: &Path, name: &str) -> PathBuf {
    file.parent().map_or_else(|| PathBuf::from(name), |folder| folder.join(name))
}

/// The agent with the models and prices of the command line.
pub(crate) fn with_choice(agent: Agent, choice: &ModelChoice) -> Result<Agent, Failure> {
    let agent = match choice.model() {
        Some(model) => with_model(agent, model),
        None => agent,
    };
    match &choice.prices {
        Some(path) => Ok(with_prices(agent, &price_table(path)?)),
        None => Ok(agent),
    }
}

/// What models cost, out of a file.
pub(crate) fn price_table(path: &Path) -> Result<BTreeMap<String, Price>, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::input(format!("{name}: cannot be read: {error}")))?;
    definitions::agent_file::price_table(&name, &text)
        .map_err(|problems| Failure::files(ErrorCode::InvalidSettings, &problems))
}

/// The agent with the prices of a table, where its own file has none. Its fingerprint stays: a price
/// changes nothing of what it does.
pub(crate) fn with_prices(mut agent: Agent, table: &BTreeMap<String, Price>) -> Agent {
    for (model, price) in table {
        if agent.price_of(model).is_none() {
            agent.prices.insert(model.clone(), *price);
        }
    }
    agent
}

/// The agent with another model, or several: the next is asked when the one before fails. Another
/// model is another agent.
pub(crate) fn with_model(mut agent: Agent, model: &str) -> Agent {
    let mut names = model.split(',').map(|name| name.trim().to_owned());
    let mut names = names.by_ref().filter(|name| !name.is_empty());
    let Some(first) = names.next() else { return agent };
    let fallbacks: Vec<String> = names.collect();
    if agent.model == first && agent.fallbacks == fallbacks {
        return agent;
    }
    if let Some(price) = agent.price.filter(|_| agent.model != first) {
        // It is the price of the model that it was written for.
        agent.price = None;
        agent.prices.insert(agent.model, price);
    }
    (agent.model, agent.fallbacks) = (first, fallbacks);
    let both = format!("{} {model}", agent.fingerprint);
    agent.fingerprint = hash::fingerprint(&both);
    agent
}

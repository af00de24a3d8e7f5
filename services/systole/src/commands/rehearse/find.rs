//! The cases of an agent.

use std::path::{Path, PathBuf};

use proto::error_code::ErrorCode;
use rehearsal::case::{Case, Input, Sheet};
use rehearsal::script::Script;

use crate::agent_files::{AGENT, Disk, Files, LoadedAgent, agent_file};
use crate::arguments::Rehearse;
use crate::failure::{Exit, Failure};
use crate::file_kind::{Kind, said};

/// The folder beside an agent's file that is looked at when no file is named.
const FOLDER: &str = "rehearsals";

/// A case with all that it needs.
pub(super) struct Rehearsed {
    pub(super) file: String,
    /// What its paths start from.
    pub(super) folder: PathBuf,
    pub(super) case: Case,
    pub(super) script: Script,
    pub(super) input: String,
}

/// A file that was read.
struct Found {
    file: String,
    folder: PathBuf,
    sheet: Sheet,
}

/// The agent's file and the files with cases. A rehearsal that is named in the agent's place is
/// played by the agent beside it, or beside its folder.
pub(super) fn agent_and_files(
    named: &Path,
    files: &[PathBuf],
) -> Result<(PathBuf, Vec<PathBuf>), Failure> {
    let text = Disk.read(named).ok().flatten().unwrap_or_default();
    if said(&text) != Some(Kind::Rehearsal) {
        return Ok((agent_file(named), files.to_vec()));
    }
    let folder = named.parent().unwrap_or_else(|| Path::new(""));
    let above = folder.parent().filter(|_| folder.ends_with(FOLDER));
    let agents = std::iter::once(folder).chain(above).map(|folder| folder.join(AGENT));
    let Some(agent) = agents.into_iter().find(|path| path.is_file()) else {
        let why = format!("{} is a rehearsal, and there is no {AGENT} beside it", named.display());
        return Err(Failure::input(why)
            .and(format!("Name the agent too: systole rehearse AGENT {}", named.display())));
    };
    let files = std::iter::once(named.to_owned()).chain(files.iter().cloned());
    Ok((agent, files.collect()))
}

/// All cases, in the order of the files; everything that is wrong with any file is told at once.
pub(super) fn cases(
    asked: &Rehearse,
    files: &[PathBuf],
    (path, agent): (&Path, &LoadedAgent),
) -> Result<Vec<Rehearsed>, Failure> {
    let mut lines = Vec::new();
    let mut found = Vec::new();
    for (file, text) in texts(files, path, agent)? {
        match Sheet::parse(&file, &text) {
            Ok(sheet) => {
                let folder = Path::new(&file).parent().unwrap_or_else(|| Path::new("")).to_owned();
                found.push(Found { file, folder, sheet });
            }
            Err(problems) => lines.extend(problems.iter().map(ToString::to_string)),
        }
    }
    if !lines.is_empty() {
        return Err(Failure { exit: Exit::BadInput, code: ErrorCode::InvalidRehearsal, lines });
    }
    let own = agent.rehearsal.as_ref();
    let own = own.and_then(|own| Sheet::parse(&own.file, &own.text).ok()?.script);
    let mut cases = Vec::new();
    for found in found {
        cases.extend(of_sheet(found, own.as_ref())?);
    }
    let part = asked.case.as_deref().unwrap_or_default();
    cases.retain(|rehearsed| rehearsed.case.name.contains(part));
    if cases.is_empty() { Err(none(asked)) } else { Ok(cases) }
}

fn none(asked: &Rehearse) -> Failure {
    if let Some(part) = &asked.case {
        return Failure::not_found(format!("no case has `{part}` in its name"));
    }
    Failure::not_found("there is no case: add `cases:` to the agent's rehearsal").and(
        "`systole run … --record FILE` makes one of a real run; docs/rehearsals.md explains both.",
    )
}

/// Files with their texts: those that are named, or the agent's own and those in the folder.
fn texts(
    files: &[PathBuf],
    path: &Path,
    agent: &LoadedAgent,
) -> Result<Vec<(String, String)>, Failure> {
    if !files.is_empty() {
        return files.iter().map(|path| read(path)).collect();
    }
    let own = agent.rehearsal.iter().map(|own| (own.file.clone(), own.text.clone()));
    let mut texts: Vec<(String, String)> = own.collect();
    let folder = path.parent().unwrap_or_else(|| Path::new("")).join(FOLDER);
    for path in yaml_files(&folder)? {
        texts.push(read(&path)?);
    }
    Ok(texts)
}

fn read(path: &Path) -> Result<(String, String), Failure> {
    let name = path.display().to_string();
    match Disk.read(path) {
        Ok(Some(text)) => Ok((name, text)),
        Ok(None) => Err(Failure::not_found(format!("{name}: there is no such file"))),
        Err(error) => Err(Failure::input(format!("{name}: cannot be read: {error}"))),
    }
}

fn yaml_files(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect());
    let mut paths: Vec<PathBuf> =
        entries.map_err(|error| Failure::input(format!("{}: {error}", folder.display())))?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "yaml" || ending == "yml"));
    paths.sort();
    Ok(paths)
}

fn of_sheet(found: Found, own: Option<&Script>) -> Result<Vec<Rehearsed>, Failure> {
    let Found { file, folder, sheet } = found;
    let script = sheet.script.as_ref().or(own);
    let cases = sheet.cases.into_iter().map(|case| {
        let Some(script) = script else {
            let why =
                format!("{file} has no rules, and the agent has no rehearsal that could answer");
            return Err(Failure::input(why));
        };
        let input = match &case.input {
            Input::Text(text) => text.clone(),
            Input::File(name) => read(&folder.join(name))?.1,
        };
        let (file, folder) = (file.clone(), folder.clone());
        Ok(Rehearsed { file, folder, case, script: script.clone(), input })
    });
    cases.collect()
}

//! The agents that a `dev` runs: files, and folders that hold them.

use std::io;
use std::path::{Path, PathBuf};

use proto::error_code::ErrorCode;

use crate::agent_files::{AGENT, Disk, Files, LoadedAgent, load};
use crate::failure::{Exit, Failure};
use crate::file_kind::{Kind, said};
use crate::settings::Environment;

/// The folder that is looked at when nothing is named.
const USUAL: &str = "agents";

/// Reads these agents; everything that is wrong with any of them is told at once.
pub(super) fn agents(
    files: &dyn Files,
    paths: &[PathBuf],
    environment: &Environment,
) -> Result<Vec<LoadedAgent>, Failure> {
    let mut agents: Vec<(PathBuf, LoadedAgent)> = Vec::new();
    let mut lines = Vec::new();
    let mut code = ErrorCode::InvalidAgent;
    for path in paths {
        match load(files, path, environment).and_then(LoadedAgent::fit_for_work) {
            Ok(agent) => match double(&agents, path, &agent) {
                Some(line) => lines.push(line),
                None => agents.push((path.clone(), agent)),
            },
            Err(failure) => {
                code = failure.code;
                lines.extend(failure.lines);
            }
        }
    }
    if lines.is_empty() {
        return Ok(agents.into_iter().map(|(_, agent)| agent).collect());
    }
    Err(Failure { exit: Exit::BadInput, code, lines })
}

fn double(known: &[(PathBuf, LoadedAgent)], path: &Path, agent: &LoadedAgent) -> Option<String> {
    let name = &agent.agent.name;
    let (other, _) = known.iter().find(|(_, other)| other.agent.name == *name)?;
    Some(format!(
        "{} and {} are both agents of the name {name}: rename one",
        other.display(),
        path.display()
    ))
}

/// The agents' files, in the order in which they are named, each once.
pub(in crate::commands) fn files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let usual = PathBuf::from(USUAL);
    let found = match named {
        [] if usual.is_dir() => in_folder(&usual)?,
        [] => in_folder(Path::new("."))?,
        named => {
            let mut all = Vec::new();
            for path in named {
                all.extend(if path.is_dir() { in_named(path)? } else { vec![path.clone()] });
            }
            all
        }
    };
    if found.is_empty() {
        return Err(Failure::not_found(format!(
            "there is no agent here: name agent files or folders, put agents into `{USUAL}/`, or \
             begin one with `systole new agent NAME`"
        )));
    }
    let mut once: Vec<PathBuf> = Vec::new();
    for path in found {
        if !once.contains(&path) {
            once.push(path);
        }
    }
    Ok(once)
}

/// The folders in which an agent's file may appear.
pub(super) fn folders(named: &[PathBuf]) -> Vec<PathBuf> {
    let usual = PathBuf::from(USUAL);
    let tops: Vec<PathBuf> = match named {
        [] if usual.is_dir() => vec![usual],
        [] => vec![PathBuf::from(".")],
        named => named.iter().filter(|path| path.is_dir()).cloned().collect(),
    };
    let below = |top: &PathBuf| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(top).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    };
    tops.iter().flat_map(below).chain(tops.iter().cloned()).collect()
}

fn in_named(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let found = in_folder(folder)?;
    if found.is_empty() {
        let why = format!("{}: there is no agent file in this folder", folder.display());
        return Err(Failure::not_found(why));
    }
    Ok(found)
}

/// Agent files in a folder, then `agent.yaml` in each of its folders.
fn in_folder(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let wrong = |error: io::Error| Failure::input(format!("{}: {error}", folder.display()));
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| entry.map(|entry| entry.path())).collect())
        .map_err(wrong)?;
    entries.sort();
    let is_yaml = |path: &&PathBuf| {
        path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
    };
    let here = entries.iter().filter(is_yaml).filter(|path| is_agent(path)).map(|path| tidy(path));
    let below = entries.iter().filter(|path| path.is_dir()).map(|path| tidy(&path.join(AGENT)));
    Ok(here.chain(below.filter(|path| path.is_file())).collect())
}

/// `./a` is `a`.
fn tidy(path: &Path) -> PathBuf {
    path.strip_prefix(".").unwrap_or(path).to_owned()
}

/// A file that cannot be read is told later, with its name, if somebody named it.
fn is_agent(path: &Path) -> bool {
    let text = Disk.read(path).ok().flatten().unwrap_or_default();
    said(&text) == Some(Kind::Agent)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_gives_its_agent_files_and_those_of_its_folders() {
        let folder = tempfile::tempdir().unwrap();
        let agent = "name: a\nrole: r\nmodel: m\ntools: []\n";
        for name in ["b.yaml", "x/agent.yaml", "a/agent.yaml", "y/other.yaml"] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, agent).unwrap();
        }
        fs::write(folder.path().join("tools.yaml"), "tools: []\n").unwrap();
        fs::write(folder.path().join("rehearsal.yaml"), "rules:\n  - say: hi\n").unwrap();
        let found = files(&[folder.path().to_owned(), folder.path().join("b.yaml")]).unwrap();
        let names: Vec<_> = found.iter().map(|p| p.strip_prefix(folder.path()).unwrap()).collect();
        assert_eq!(names, ["b.yaml", "a/agent.yaml", "x/agent.yaml"].map(Path::new));
    }

    #[test]
    fn a_folder_without_agents_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let failure = files(&[folder.path().to_owned()]).unwrap_err();
        assert!(failure.to_string().contains("no agent file in this folder"), "{failure}");
    }
}

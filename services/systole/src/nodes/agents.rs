//! The agents of a folder. A planner needs what they say, not what their tools do: those are another
//! process's.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use definitions::agent_file::AgentFile;
use proto::agent::{Agent, Price};
use proto::error_code::ErrorCode;

use crate::agent_files::{Files, with_model, with_prices};
use crate::failure::Failure;

/// The name of an agent's file.
const AGENT: &str = "agent.yaml";

/// Reads every agent; what is wrong with any of them is told at once.
pub(crate) fn load_all(
    files: &dyn Files,
    place: &Path,
    model: Option<&str>,
    prices: &BTreeMap<String, Price>,
) -> Result<Vec<Agent>, Failure> {
    let mut agents = Vec::new();
    let mut problems = Vec::new();
    for path in agent_files(place)? {
        let name = path.display().to_string();
        let text = files.read(&path).map_err(|error| Failure::input(format!("{name}: {error}")))?;
        let with_table = |agent| with_prices(agent, prices);
        match AgentFile::parse(&name, &text.unwrap_or_default()) {
            Ok(file) => agents.push(match model {
                Some(model) => with_table(with_model(file.agent, model)),
                None => with_table(file.agent),
            }),
            Err(found) => problems.extend(found),
        }
    }
    if !problems.is_empty() {
        return Err(Failure::files(ErrorCode::InvalidAgent, &problems));
    }
    let names: BTreeSet<_> = agents.iter().map(|agent| &agent.name).collect();
    if names.len() < agents.len() {
        let place = place.display();
        return Err(Failure::input(format!("{place}: two agents have one name; rename one")));
    }
    Ok(agents)
}

/// The file itself, or `agent.yaml` in the folder and one level below, in the order of names.
fn agent_files(place: &Path) -> Result<Vec<PathBuf>, Failure> {
    if place.is_file() {
        return Ok(vec![place.to_owned()]);
    }
    let shown = place.display();
    let entries = std::fs::read_dir(place)
        .map_err(|error| Failure::not_found(format!("{shown}: no folder of agents: {error}")))?;
    let below = entries.filter_map(Result::ok).map(|entry| entry.path().join(AGENT));
    let mut found: Vec<PathBuf> =
        below.chain([place.join(AGENT)]).filter(|p| p.is_file()).collect();
    found.sort();
    if found.is_empty() {
        let why = format!("{shown}: there is no {AGENT} in it or one level below");
        return Err(Failure::not_found(why));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent_files::Disk;

    #[test]
    fn the_agents_of_a_folder_are_found_one_level_below() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents");
        let agents = load_all(&Disk, &folder, Some("other"), &BTreeMap::new()).unwrap();
        let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["code", "ops"]);
        assert!(agents.iter().all(|agent| agent.model == "other"));
    }

    #[test]
    fn a_folder_without_agents_says_what_was_looked_for() {
        let folder = tempfile::tempdir().unwrap();
        let failure = load_all(&Disk, folder.path(), None, &BTreeMap::new()).unwrap_err();
        assert!(failure.to_string().contains("agent.yaml"), "{failure}");
        std::fs::create_dir(folder.path().join("a")).unwrap();
        std::fs::write(folder.path().join("a/agent.yaml"), "name: 7\n").unwrap();
        let failure = load_all(&Disk, folder.path(), None, &BTreeMap::new()).unwrap_err();
        assert_eq!(failure.code, ErrorCode::InvalidAgent);
    }
}

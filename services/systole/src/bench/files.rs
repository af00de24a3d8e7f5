//! The bench's agent and its tools, read like any other files.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::agent_files::{Files, LoadedAgent, load};
use crate::failure::Failure;
use crate::settings::Environment;

/// The text of the agent's file.
pub(crate) fn agent(model: &str, early: &str, tools: &str) -> String {
    format!(
        "name: bench\nrole: You note numbers.\nmodel: {model}\nearly_dispatch: {early}\n\
         tools: [{tools}]\n"
    )
}

/// A builtin that does nothing that takes time, a command that takes 50 ms, and two that take 300 ms.
pub(crate) const MANIFEST: &str = r#"
tools:
  - name: note
    description: Note a number, and answer with the time at which it was noted.
    run: { builtin: clock }
  - name: pause
    description: Wait for 50 ms and change nothing.
    parameters: { n: { type: integer, required: true, description: "Any number." } }
    effect: read_only
    run: { command: ["sleep", "0.05"] }
  - name: wait_first
    description: Wait for 300 ms and change nothing.
    parameters: { n: { type: integer, required: true, description: "Any number." } }
    effect: read_only
    run: { command: ["sleep", "0.3"] }
  - name: wait_second
    description: Wait for 300 ms and change nothing.
    parameters: { n: { type: integer, required: true, description: "Any number." } }
    effect: idempotent
    run: { command: ["sleep", "0.3"] }
"#;

/// The tools without pauses, with a short one, and with long ones.
pub(crate) const NO_OP: &str = "note";
pub(crate) const PAUSE: &str = "pause";
pub(crate) const WAITING: &str = "wait_first, wait_second";

/// The two files, in memory.
struct InMemory {
    agent: String,
    folder: PathBuf,
}

impl Files for InMemory {
    fn read(&self, path: &Path) -> io::Result<Option<String>> {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        Ok(match name {
            "agent.yaml" => Some(self.agent.clone()),
            "tools.yaml" => Some(MANIFEST.to_owned()),
            _ => None,
        })
    }

    fn folder_of(&self, _: &Path) -> io::Result<PathBuf> {
        Ok(self.folder.clone())
    }
}

/// The agent, ready to run; its tools work in `folder`.
pub(crate) fn loaded(
    agent: String,
    folder: &Path,
    environment: &Environment,
) -> Result<LoadedAgent, Failure> {
    let files = InMemory { agent, folder: folder.to_owned() };
    let mut loaded = load(&files, Path::new("agent.yaml"), environment)?;
    // The clock takes no argument; with one the calls of a run differ, so that none counts as
    // repeated, and there is something to validate.
    for tool in &mut loaded.tools {
        let contract = &mut tool.definition.contract;
        if contract.name.as_str() == NO_OP {
            contract.parameters = json!({"type": "object", "required": ["n"],
                "properties": {"n": {"type": "integer", "minimum": 0}},
                "additionalProperties": false});
        }
    }
    Ok(loaded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_sound() {
        for (early, tools) in [("off", NO_OP), ("safe", WAITING), ("all", WAITING)] {
            let text = agent("bench-fast", early, tools);
            let loaded = loaded(text, Path::new("/tmp"), &Environment::default()).unwrap();
            assert_eq!(loaded.agent.tools.len(), tools.split(',').count());
        }
    }
}

//! `systole new`: files to begin with.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use proto::ids::AgentName;

use super::{Context, print};
use crate::failure::{Exit, Failure};
use crate::shell;

/// What stands for the agent's name in the files.
const NAME: &str = "NAME";
/// What stands for the name of its tool.
const TOOL: &str = "TOOL";
/// What the tool's name ends with.
const TOOL_END: &str = "_look_up";
/// The longest name of a tool.
const LONGEST: usize = 64;

/// The files of a new agent.
const FILES: [(&str, &str); 6] = [
    ("agent.yaml", include_str!("new/agent.yaml")),
    ("tools.yaml", include_str!("new/tools.yaml")),
    ("look_up.sh", include_str!("new/look_up.sh")),
    ("people.csv", include_str!("new/people.csv")),
    ("rehearsal.yaml", include_str!("new/rehearsal.yaml")),
    ("README.md", include_str!("new/README.md")),
];

/// Begins an agent; nothing that is there is touched.
pub(crate) fn agent(context: &Context, name: &str, dir: &Path) -> Result<Exit, Failure> {
    let name = AgentName::new(name)
        .map_err(|error| Failure::input(format!("an agent cannot be called `{name}`: {error}")))?;
    let folder = dir.join(name.as_str());
    if folder.exists() {
        let why = format!("{} is there already; choose another name or --dir", folder.display());
        return Err(Failure::input(why));
    }
    let tool = tool_of(name.as_str());
    for (file, text) in FILES {
        let path = folder.join(file);
        write(&path, &text.replace(NAME, name.as_str()).replace(TOOL, &tool))
            .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
    }
    print(&next(context, &folder))?;
    Ok(Exit::Done)
}

/// Calls are queued by the names of tools, so two agents of one process may not share one by chance.
fn tool_of(agent: &str) -> String {
    let most = LONGEST.saturating_sub(TOOL_END.len());
    let kept: String = agent.chars().take(most).collect();
    kept.replace('-', "_") + TOOL_END
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::File::create_new(path)?.write_all(text.as_bytes())
}

fn next(context: &Context, folder: &Path) -> String {
    let agent = shell::word(folder.join("agent.yaml"));
    let program = shell::word(&context.program);
    format!(
        "{} has an agent that runs without a key:\n  {program} run {agent} \"Greet Ada.\"\n  \
         {program} rehearse {agent}\n{} says what each file is\n",
        folder.display(),
        folder.join("README.md").display()
    )
}

#[cfg(test)]
mod tests {
    use proto::ids::ToolName;

    use super::*;

    #[test]
    fn a_tool_has_the_name_of_its_agent_and_one_that_is_allowed() {
        assert_eq!(tool_of("alpha"), "alpha_look_up");
        assert_eq!(tool_of("on-call"), "on_call_look_up");
        let longest = tool_of(&"a".repeat(LONGEST));
        assert!(ToolName::new(&longest).is_ok(), "{longest}");
    }
}

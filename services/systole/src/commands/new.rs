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
    for (file, text) in FILES {
        let path = folder.join(file);
        write(&path, &text.replace(NAME, name.as_str()))
            .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
    }
    print(&next(context, &folder))?;
    Ok(Exit::Done)
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

//! `systole agents`: what is wrong with agents, and which there are.

use std::path::PathBuf;

use serde_json::json;

use super::dev::find;
use super::{Context, print, tools};
use crate::agent_files::{Disk, LoadedAgent, load};
use crate::failure::{Exit, Failure};
use crate::screen::canvas::page;
use crate::screen::style::Tone;
use crate::screen::text::{columns, hanging};
use crate::staff::joined;

/// Checks agents and all that their files name, and whether one process could run them all.
pub(crate) fn check(context: &Context, named: &[PathBuf], json: bool) -> Result<Exit, Failure> {
    let files = find::files(named)?;
    // What is wrong with one of them alone is told by the check.
    let agents: Vec<LoadedAgent> =
        files.iter().filter_map(|path| load(&Disk, path, &context.environment).ok()).collect();
    let (_, clashes) = joined(&agents);
    tools::check(context, &files, clashes, json)
}

/// Lists agents. One that cannot be read is told after the others.
pub(crate) fn list(context: &Context, named: &[PathBuf], json: bool) -> Result<Exit, Failure> {
    let (mut agents, mut wrong) = (Vec::new(), Vec::new());
    for path in find::files(named)? {
        match load(&Disk, &path, &context.environment) {
            Ok(agent) => agents.push((path.display().to_string(), agent)),
            Err(failure) => wrong.extend(failure.lines),
        }
    }
    print(&if json { as_json(&agents) } else { as_text(context, &agents) })?;
    if wrong.is_empty() {
        return Ok(Exit::Done);
    }
    let code = proto::error_code::ErrorCode::InvalidAgent;
    Err(Failure { exit: Exit::BadInput, code, lines: wrong })
}

fn tools_of(agent: &LoadedAgent) -> Vec<&str> {
    agent.agent.tools.iter().map(proto::ids::ToolName::as_str).collect()
}

fn as_text(context: &Context, agents: &[(String, LoadedAgent)]) -> String {
    let widest = |of: &dyn Fn(&LoadedAgent) -> &str| {
        agents.iter().map(|(_, agent)| columns(of(agent))).max().unwrap_or(0)
    };
    let (names, models) =
        (widest(&|agent| agent.agent.name.as_str()), widest(&|agent| &agent.agent.model));
    let pad = |text: &str, to: usize| " ".repeat(to.saturating_sub(columns(text)));
    let line = |(file, agent): &(String, LoadedAgent)| {
        let (name, model) = (agent.agent.name.as_str(), agent.agent.model.as_str());
        let rehearsed = if agent.rehearsal.is_some() { "rehearsed" } else { "         " };
        let tools = tools_of(agent).join(", ");
        let rest = format!(
            "{}  {model}{}  {rehearsed}  {file}  {tools}",
            pad(name, names),
            pad(model, models),
        );
        let lines = hanging(&format!("{name}{rest}"), page(), 4);
        let strong = context.palette().paint(Tone::Strong, name);
        lines.join("\n").replacen(name, &strong, 1) + "\n"
    };
    agents.iter().map(line).collect()
}

fn as_json(agents: &[(String, LoadedAgent)]) -> String {
    let line = |(file, agent): &(String, LoadedAgent)| {
        let value = json!({
            "name": agent.agent.name,
            "model": agent.agent.model,
            "tools": tools_of(agent),
            "rehearsal": agent.rehearsal.as_ref().map(|text| &text.file),
            "file": file,
        });
        format!("{value}\n")
    };
    agents.iter().map(line).collect()
}

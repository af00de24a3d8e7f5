//! Rehearsals out of their files, and what is wrong with them.

use definitions::problem::Problem;
use proto::error_code::ErrorCode;
use proto::tool::ToolContract;
use rehearsal::against::Known;
use rehearsal::case::Sheet;
use rehearsal::script::Script;
use rehearsal::server::Rehearsal;

use crate::agent_files::{LoadedAgent, RehearsalText};
use crate::failure::Failure;

/// A rehearsal out of its file's text; `pace` 1 is as written, 0 without pauses.
pub(crate) fn read_rehearsal(file: &str, text: &str, pace: f64) -> Result<Rehearsal, Failure> {
    let script = Script::parse(file, text)
        .map_err(|problems| Failure::files(ErrorCode::InvalidRehearsal, &problems))?;
    Ok(Rehearsal::new(script).at_speed(pace.recip()))
}

/// The rehearsal of an agent, if it calls nothing that the agent does not have.
pub(super) fn of_agent(
    loaded: &LoadedAgent,
    text: &RehearsalText,
    pace: f64,
) -> Result<Rehearsal, Failure> {
    let tools = loaded.tools.iter().map(|tool| &tool.definition.contract);
    let tools: Vec<&ToolContract> =
        tools.filter(|tool| loaded.agent.tools.contains(&tool.name)).collect();
    let problems = check_rehearsal_of(&text.file, &text.text, Some(&tools));
    if !problems.is_empty() {
        return Err(Failure::files(ErrorCode::InvalidRehearsal, &problems));
    }
    read_rehearsal(&text.file, &text.text, pace)
}

/// What is wrong with a rehearsal.
pub(crate) fn check_rehearsal(file: &str, text: &str) -> Vec<Problem> {
    Sheet::parse(file, text).err().unwrap_or_default()
}

/// The same, and what it names that the agent whose model it plays does not have; without `tools`
/// they are not known.
pub(crate) fn check_rehearsal_of(
    file: &str,
    text: &str,
    tools: Option<&[&ToolContract]>,
) -> Vec<Problem> {
    let sheet = match Sheet::parse(file, text) {
        Ok(sheet) => sheet,
        Err(problems) => return problems,
    };
    let (Some(script), Some(tools)) = (sheet.script, tools) else { return Vec::new() };
    let known =
        tools.iter().map(|tool| Known { name: tool.name.as_str(), parameters: &tool.parameters });
    let known: Vec<Known<'_>> = known.collect();
    script.against(&known)
}

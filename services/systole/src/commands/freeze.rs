//! `systole freeze` and `systole thaw`: an operator's switch. It lies beside the store, so it needs no
//! running process, reaches every running one, and outlives them all.

use serde_json::json;

use super::{Context, print};
use crate::arguments::{Freeze, Targets, Thaw};
use crate::brake::{Freezes, Note, Target};
use crate::failure::{Exit, Failure};
use crate::launch::real;
use crate::screen::text::one_line;
use crate::wiring::clock;

/// Freezes; without a target it lists what is frozen.
pub(crate) fn freeze(context: &Context, asked: &Freeze) -> Result<Exit, Failure> {
    let freezes = freezes(context);
    let person = context.environment.text("USER").unwrap_or_default();
    let note = Note { reason: asked.reason.clone(), by: person, at: clock().now() };
    for target in targets(&asked.targets) {
        freezes.put(&target, &note).map_err(|error| Failure::other("the freeze", error))?;
    }
    tell(&freezes, asked.json)
}

/// Lets go.
pub(crate) fn thaw(context: &Context, asked: &Thaw) -> Result<Exit, Failure> {
    let freezes = freezes(context);
    let targets = targets(&asked.targets);
    if targets.is_empty() {
        return Err(Failure::input("say what: --all, --tool TOOL or --tenant NAME")
            .and("`systole freeze` lists what is frozen"));
    }
    for target in targets {
        let was = freezes.remove(&target).map_err(|error| Failure::other("the thaw", error))?;
        if !was {
            let why = format!("{} was not frozen", target.words());
            return Err(Failure::not_found(why).and("`systole freeze` lists what is frozen"));
        }
    }
    tell(&freezes, asked.json)
}

fn freezes(context: &Context) -> Freezes {
    Freezes::of(&real(&context.common.store))
}

fn targets(asked: &Targets) -> Vec<Target> {
    let all = asked.all.then_some(Target::All);
    let tools = asked.tool.iter().cloned().map(Target::Tool);
    all.into_iter().chain(tools).chain(asked.tenant.iter().cloned().map(Target::Tenant)).collect()
}

fn tell(freezes: &Freezes, json: bool) -> Result<Exit, Failure> {
    let frozen = freezes.list().map_err(|error| Failure::other("the freezes", error))?;
    let lines: Vec<String> = if json {
        frozen.iter().map(|(target, note)| as_json(target, note)).collect()
    } else if frozen.is_empty() {
        vec!["nothing is frozen".to_owned()]
    } else {
        frozen.iter().map(|(target, note)| words(target, note)).collect()
    };
    print(&lines.into_iter().map(|line| line + "\n").collect::<String>())?;
    Ok(Exit::Done)
}

/// One freeze in a line.
pub(crate) fn words(target: &Target, note: &Note) -> String {
    let by = if note.by.is_empty() { String::new() } else { format!(" by {}", one_line(&note.by)) };
    let why = if note.reason.is_empty() {
        String::new()
    } else {
        format!(": {}", one_line(&note.reason))
    };
    format!("frozen{by} {} {}{why}", note.at, target.words())
}

fn as_json(target: &Target, note: &Note) -> String {
    let (kind, name) = match target {
        Target::All => ("all", None),
        Target::Tool(tool) => ("tool", Some(tool.to_string())),
        Target::Tenant(tenant) => ("tenant", Some(tenant.to_string())),
    };
    json!({"frozen": kind, "name": name, "reason": note.reason, "by": note.by, "at": note.at})
        .to_string()
}

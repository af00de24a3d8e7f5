//! `systole freeze` and `systole thaw`: an operator's switch. For a store it lies beside the store,
//! for a deployment on its bus; so it needs no running process of ours, reaches every running one,
//! and outlives them all.

use std::sync::Arc;

use ports::freezes::Freezes;
use proto::freeze::{Freeze, FreezeTarget};
use serde_json::json;

use super::{Context, print};
use crate::arguments::{self, BusFlags, Targets, Thaw};
use crate::failure::{Exit, Failure};
use crate::nodes::settings::BusSettings;
use crate::nodes::sources;
use crate::screen::text::one_line;
use crate::wiring::{clock, freezes_of, servers};

/// Freezes; without a target it lists what is frozen.
pub(crate) async fn freeze(context: &Context, asked: &arguments::Freeze) -> Result<Exit, Failure> {
    let freezes = freezes(context, &asked.bus).await?;
    let by = context.environment.text("USER").unwrap_or_default();
    for target in targets(&asked.targets) {
        let (reason, by, at) = (asked.reason.clone(), by.clone(), clock().now());
        freezes.freeze(Freeze { target, reason, by, at }).await?;
    }
    tell(freezes.as_ref(), asked.json).await
}

/// Lets go.
pub(crate) async fn thaw(context: &Context, asked: &Thaw) -> Result<Exit, Failure> {
    let targets = targets(&asked.targets);
    if targets.is_empty() {
        return Err(Failure::input("say what: --all, --tool TOOL or --tenant NAME")
            .and("`systole freeze` lists what is frozen"));
    }
    let freezes = freezes(context, &asked.bus).await?;
    for target in targets {
        if !freezes.thaw(&target).await? {
            let why = format!("{} was not frozen", target.words());
            return Err(Failure::not_found(why).and("`systole freeze` lists what is frozen"));
        }
    }
    tell(freezes.as_ref(), asked.json).await
}

/// Those of the deployment that is named, else those of the store.
async fn freezes(context: &Context, flags: &BusFlags) -> Result<Arc<dyn Freezes>, Failure> {
    let names_one = flags.given().iter().any(|(_, value)| value.is_some())
        || flags.config.is_some()
        || context.environment.text("SYSTOLE_NATS").is_some_and(|value| !value.is_empty());
    if !names_one {
        return Ok(freezes_of(&context.common.store));
    }
    let found = sources::find(flags.config.as_deref(), &context.environment, &flags.given())?;
    servers::freezes(&found.read(BusSettings::read)?).await
}

fn targets(asked: &Targets) -> Vec<FreezeTarget> {
    let all = asked.all.then_some(FreezeTarget::All);
    let tools = asked.tool.iter().cloned().map(FreezeTarget::Tool);
    let tenants = asked.tenant.iter().cloned().map(FreezeTarget::Tenant);
    all.into_iter().chain(tools).chain(tenants).collect()
}

async fn tell(freezes: &dyn Freezes, json: bool) -> Result<Exit, Failure> {
    let frozen = freezes.frozen().await?;
    let lines: Vec<String> = if json {
        frozen.iter().map(as_json).collect()
    } else if frozen.is_empty() {
        vec!["nothing is frozen".to_owned()]
    } else {
        frozen.iter().map(words).collect()
    };
    print(&lines.into_iter().map(|line| line + "\n").collect::<String>())?;
    Ok(Exit::Done)
}

/// One freeze in a line.
pub(crate) fn words(freeze: &Freeze) -> String {
    let Freeze { target, reason, by, at } = freeze;
    let by = if by.is_empty() { String::new() } else { format!(" by {}", one_line(by)) };
    let why = if reason.is_empty() { String::new() } else { format!(": {}", one_line(reason)) };
    format!("frozen{by} {at} {}{why}", target.words())
}

fn as_json(freeze: &Freeze) -> String {
    let Freeze { target, reason, by, at } = freeze;
    let (kind, name) = match target {
        FreezeTarget::All => ("all", None),
        FreezeTarget::Tool(tool) => ("tool", Some(tool.to_string())),
        FreezeTarget::Tenant(tenant) => ("tenant", Some(tenant.to_string())),
    };
    json!({"frozen": kind, "name": name, "reason": reason, "by": by, "at": at}).to_string()
}

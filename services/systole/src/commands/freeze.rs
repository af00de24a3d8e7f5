//! `systole freeze` and `systole thaw`: an operator's switch. For a store it lies beside the store,
//! for a deployment on its bus; so it needs no running process of ours, reaches every running one,
//! and outlives them all.

mod known_names;

use std::io::{self, Write};
use std::sync::Arc;

use ports::freezes::Freezes;
use ports::registry::Registry;
use proto::freeze::{Freeze, FreezeTarget};
use proto::ids::{TenantId, ToolName};
use serde_json::json;

use super::{Context, print};
use crate::arguments::{self, BusFlags, Thaw};
use crate::failure::{Exit, Failure};
use crate::nodes::settings::BusSettings;
use crate::nodes::sources;
use crate::screen::text::{instant, one_line};
use crate::settings::Environment;
use crate::wiring::{clock, freezes_of, host, servers};

/// Freezes; without a target it lists what is frozen.
pub(crate) async fn freeze(context: &Context, asked: &arguments::Freeze) -> Result<Exit, Failure> {
    let place = place(context, &asked.bus).await?;
    let (by, targets) = (who(&context.environment), targets(asked.all, &asked.tool, &asked.tenant));
    for target in targets.clone() {
        let (reason, by, at) = (asked.reason.clone(), by.clone(), clock().now());
        place.freezes.freeze(Freeze { target, reason, by, at }).await?;
    }
    for warning in known_names::doubts(context, place.registry.as_deref(), &targets).await {
        // Without anybody to tell, the list has to do.
        writeln!(io::stderr(), "systole: warning: {warning}").unwrap_or_default();
    }
    tell(place.freezes.as_ref(), asked.json).await
}

/// Lets go; `--all` of everything.
pub(crate) async fn thaw(context: &Context, asked: &Thaw) -> Result<Exit, Failure> {
    let named = targets(false, &asked.tool, &asked.tenant);
    if named.is_empty() && !asked.all {
        return Err(Failure::input("say what: --all, --tool TOOL or --tenant NAME")
            .and("`systole freeze` lists what is frozen"));
    }
    let freezes = place(context, &asked.bus).await?.freezes;
    let targets = if asked.all { everything(freezes.as_ref()).await? } else { named };
    for target in targets {
        if !freezes.thaw(&target).await? {
            let why = format!("{} was not frozen", target.words());
            return Err(Failure::not_found(why).and("`systole freeze` lists what is frozen"));
        }
        print(&thawed(&target, asked.json))?;
    }
    tell(freezes.as_ref(), asked.json).await
}

/// All that is frozen.
async fn everything(freezes: &dyn Freezes) -> Result<Vec<FreezeTarget>, Failure> {
    let frozen = freezes.frozen().await?;
    if frozen.is_empty() {
        return Err(Failure::not_found("nothing is frozen"));
    }
    Ok(frozen.into_iter().map(|freeze| freeze.target).collect())
}

/// Where freezes lie, and in a deployment which tools are on offer there.
struct Place {
    freezes: Arc<dyn Freezes>,
    registry: Option<Arc<dyn Registry>>,
}

/// The deployment that is named, else the store.
async fn place(context: &Context, flags: &BusFlags) -> Result<Place, Failure> {
    if !flags.names_one(&context.environment) {
        return Ok(Place { freezes: freezes_of(&context.common.store), registry: None });
    }
    let found = sources::find(flags.config.as_deref(), &context.environment, &flags.given())?;
    let (freezes, registry) = servers::freezes(&found.read(BusSettings::read)?).await?;
    Ok(Place { freezes, registry: Some(registry) })
}

/// Whoever gives the command, for those who read the list later.
fn who(environment: &Environment) -> String {
    let named = |variable| environment.text(variable).filter(|name| !name.is_empty());
    let user = named("USER").or_else(|| named("LOGNAME"));
    let user = user.unwrap_or_else(|| format!("uid {}", rustix::process::geteuid().as_raw()));
    format!("{user}@{}", host())
}

fn targets(all: bool, tools: &[ToolName], tenants: &[TenantId]) -> Vec<FreezeTarget> {
    let all = all.then_some(FreezeTarget::All);
    let tools = tools.iter().cloned().map(FreezeTarget::Tool);
    let tenants = tenants.iter().cloned().map(FreezeTarget::Tenant);
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
    format!("frozen {}{by} at {}{why}", target.words(), instant(*at))
}

/// What was let go, in a line.
fn thawed(target: &FreezeTarget, json: bool) -> String {
    if !json {
        return format!("thawed {}\n", target.words());
    }
    let (kind, name) = kind_and_name(target);
    format!("{}\n", json!({"thawed": kind, "name": name}))
}

fn as_json(freeze: &Freeze) -> String {
    let Freeze { target, reason, by, at } = freeze;
    let (kind, name) = kind_and_name(target);
    json!({"frozen": kind, "name": name, "reason": reason, "by": by, "at": at}).to_string()
}

fn kind_and_name(target: &FreezeTarget) -> (&'static str, Option<&str>) {
    match target {
        FreezeTarget::All => ("all", None),
        FreezeTarget::Tool(tool) => ("tool", Some(tool.as_str())),
        FreezeTarget::Tenant(tenant) => ("tenant", Some(tenant.as_str())),
    }
}

#[cfg(test)]
mod tests {
    use proto::time::Timestamp;

    use super::*;

    #[test]
    fn a_freeze_is_told_with_the_time_as_people_read_it() {
        let target = FreezeTarget::All;
        let at = Timestamp(1_796_093_821_701);
        let freeze = Freeze { target, reason: "test".to_owned(), by: "ann@n1".to_owned(), at };
        assert_eq!(
            words(&freeze),
            "frozen every irreversible tool by ann@n1 at 2026-12-01T02:57:01Z: test"
        );
    }
}

//! Names that nothing here knows. Freezing one is allowed, for it may come later; but a slip of the
//! pen would leave the tool that was meant running, so it is told.

use std::collections::BTreeSet;

use argument_check::nearest;
use ports::registry::Registry;
use proto::freeze::FreezeTarget;
use proto::ids::{TenantId, ToolName};

use crate::agent_files::{Disk, load};
use crate::commands::Context;
use crate::commands::dev::find;
use crate::inputs;
use crate::remembered::Remembered;

/// What to say about targets whose names nothing knows, a line each. A deployment knows what its
/// workers offer, a store what ran on it, and the agent files of the current folder their tools.
pub(super) async fn doubts(
    context: &Context,
    registry: Option<&dyn Registry>,
    targets: &[FreezeTarget],
) -> Vec<String> {
    if !targets
        .iter()
        .any(|target| matches!(target, FreezeTarget::Tool(_) | FreezeTarget::Tenant(_)))
    {
        return Vec::new();
    }
    let mut tools = of_files(context);
    match registry {
        Some(registry) => tools.extend(offered(registry).await),
        None => tools.extend(remembered(context)),
    }
    let tenants = registry.is_none().then(|| BTreeSet::from([inputs::tenant()]));
    let doubts = targets.iter().filter_map(|target| match target {
        FreezeTarget::All => None,
        FreezeTarget::Tool(tool) => of_tool(tool, &tools, registry.is_some()),
        FreezeTarget::Tenant(tenant) => of_tenant(tenant, tenants.as_ref()?),
    });
    doubts.collect()
}

fn of_files(context: &Context) -> BTreeSet<ToolName> {
    let files = find::files(&[]).unwrap_or_default();
    let agents = files.iter().filter_map(|path| load(&Disk, path, &context.environment).ok());
    agents.flat_map(|agent| agent.tools).map(|tool| tool.definition.contract.name).collect()
}

fn remembered(context: &Context) -> impl Iterator<Item = ToolName> {
    let kept = Remembered::all(&context.common.store).into_iter();
    kept.flat_map(|agent| agent.tools).map(|tool| tool.name)
}

/// A registry that does not answer knows nothing: whoever froze is told rather too much.
async fn offered(registry: &dyn Registry) -> Vec<ToolName> {
    let offers = registry.registrations().await.unwrap_or_default().into_iter();
    offers.flat_map(|offer| offer.tools).map(|tool| tool.name).collect()
}

fn of_tool(tool: &ToolName, known: &BTreeSet<ToolName>, is_deployed: bool) -> Option<String> {
    if known.contains(tool) {
        return None;
    }
    let who = if is_deployed {
        "neither a worker that is up nor an agent file found here has it"
    } else {
        "neither an agent that ran on this store nor an agent file found here has it"
    };
    let meant = meant(tool.as_str(), known.iter().map(ToolName::as_str));
    Some(format!(
        "no tool {tool} is known: {who}.{meant} It is frozen all the same, for one that comes later; \
         thaw it if the name is a slip"
    ))
}

fn of_tenant(tenant: &TenantId, known: &BTreeSet<TenantId>) -> Option<String> {
    if known.contains(tenant) {
        return None;
    }
    let names: Vec<&str> = known.iter().map(TenantId::as_str).collect();
    let (meant, names) = (meant(tenant.as_str(), names.iter().copied()), names.join(", "));
    Some(format!(
        "no thread of this store is tenant {tenant}'s, all are of {names}, so this holds nothing \
         back.{meant} Thaw it if the name is a slip"
    ))
}

fn meant<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map(|near| format!(" Did you mean {near}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str) -> ToolName {
        ToolName::new(name).unwrap()
    }

    #[test]
    fn a_name_that_nothing_knows_is_told_with_the_one_that_was_meant() {
        let known = BTreeSet::from([tool("append_note"), tool("pay")]);
        assert_eq!(of_tool(&tool("pay"), &known, true), None);
        let told = of_tool(&tool("apend_note"), &known, false).unwrap();
        assert!(told.contains("Did you mean append_note?"), "{told}");
        let told = of_tool(&tool("launch_rocket"), &known, true).unwrap();
        assert!(told.contains("no tool launch_rocket") && !told.contains("mean"), "{told}");
    }
}

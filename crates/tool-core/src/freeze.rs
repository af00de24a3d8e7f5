//! Whether a call is held back by what operators froze.

use proto::freeze::{Freeze, FreezeTarget};
use proto::ids::{TenantId, ToolName};
use proto::tool::Effect;

/// Why a call of this tool may not begin, in words for the model and for people; nothing when it
/// may. The narrowest freeze is named.
pub fn held(
    frozen: &[Freeze],
    tenant: &TenantId,
    tool: &ToolName,
    effect: Effect,
) -> Option<String> {
    let holds = |target: &FreezeTarget| match target {
        FreezeTarget::Tool(name) => name == tool,
        FreezeTarget::Tenant(name) => effect == Effect::Irreversible && name == tenant,
        FreezeTarget::All => effect == Effect::Irreversible,
    };
    let freeze = frozen.iter().filter(|freeze| holds(&freeze.target)).max_by_key(|f| &f.target)?;
    let because = match freeze.reason.as_str() {
        "" => String::new(),
        reason => format!(": {reason}"),
    };
    Some(format!("Frozen is {}{because}.", freeze.target.words()))
}

#[cfg(test)]
mod tests {
    use proto::time::Timestamp;

    use super::*;

    fn freeze(target: FreezeTarget, reason: &str) -> Freeze {
        Freeze { target, reason: reason.to_owned(), by: String::new(), at: Timestamp(0) }
    }

    fn is_held(frozen: &[Freeze], tenant: &str, tool: &str, effect: Effect) -> bool {
        let (tenant, tool) = (TenantId::new(tenant).unwrap(), ToolName::new(tool).unwrap());
        held(frozen, &tenant, &tool, effect).is_some()
    }

    #[test]
    fn all_and_tenants_hold_what_is_irreversible_and_a_tool_holds_itself() {
        let tool = FreezeTarget::Tool(ToolName::new("look").unwrap());
        let tenant = FreezeTarget::Tenant(TenantId::new("t").unwrap());
        for (target, expected) in [
            (FreezeTarget::All, [true, true, false, false]),
            (tenant, [true, false, false, false]),
            (tool, [false, false, false, true]),
        ] {
            let frozen = [freeze(target, "")];
            let found = [
                is_held(&frozen, "t", "pay", Effect::Irreversible),
                is_held(&frozen, "u", "pay", Effect::Irreversible),
                is_held(&frozen, "t", "pay", Effect::Checkable),
                is_held(&frozen, "t", "look", Effect::ReadOnly),
            ];
            assert_eq!(found, expected, "{frozen:?}");
        }
        assert!(!is_held(&[], "t", "pay", Effect::Irreversible));
    }

    #[test]
    fn the_narrowest_freeze_is_named_with_its_reason() {
        let (tenant, tool) = (TenantId::new("t").unwrap(), ToolName::new("pay").unwrap());
        let frozen = [
            freeze(FreezeTarget::All, "night"),
            freeze(FreezeTarget::Tool(tool.clone()), "incident 7"),
        ];
        let words = held(&frozen, &tenant, &tool, Effect::Irreversible);
        assert_eq!(words.as_deref(), Some("Frozen is the tool pay: incident 7."));
        let words = held(&frozen[..1], &tenant, &tool, Effect::Irreversible);
        assert_eq!(words.as_deref(), Some("Frozen is every irreversible tool: night."));
    }
}

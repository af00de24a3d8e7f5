//! The tools on offer, and which of them a name in a reply means.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

/// The tools that a reply may call.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    schemas: BTreeMap<String, Arc<Value>>,
}

impl Tools {
    /// Tools by name, each with the JSON Schema of its arguments (null when unknown).
    pub fn new(tools: impl IntoIterator<Item = (String, Arc<Value>)>) -> Self {
        Self { schemas: tools.into_iter().collect() }
    }

    /// Tools of which only the names are known.
    pub fn named<N: Into<String>>(names: impl IntoIterator<Item = N>) -> Self {
        let unknown = Arc::new(Value::Null);
        Self::new(names.into_iter().map(|name| (name.into(), Arc::clone(&unknown))))
    }

    /// Whether a tool has exactly this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.schemas.contains_key(name)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.schemas.is_empty()
    }

    /// Whether a name could still grow into, or already is, the name of a tool.
    pub(crate) fn may_become(&self, start: &str) -> bool {
        let mut from = self.schemas.range::<str, _>((Bound::Included(start), Bound::Unbounded));
        from.next().is_some_and(|(name, _)| name.starts_with(start))
    }

    /// The schema of one argument of a tool.
    pub(crate) fn argument_schema(&self, tool: &str, argument: &str) -> Option<&Value> {
        self.schemas.get(tool)?.get("properties")?.get(argument)
    }

    /// The tool that a name means: itself, or what is left of it without channel markup, a
    /// namespace in front and a number behind. Tool names hold neither dots nor colons, so what is
    /// left can only be one tool.
    pub(crate) fn resolve(&self, name: &str) -> Option<&str> {
        let name = name.split("<|").next().unwrap_or(name).trim();
        let numbered = name.rsplit_once(':').filter(|(_, rest)| rest.parse::<u32>().is_ok());
        let name = numbered.map_or(name, |(head, _)| head);
        let bare = name.rsplit(['.', ':', '/']).next().unwrap_or(name);
        let found = self.schemas.get_key_value(name).or_else(|| self.schemas.get_key_value(bare));
        found.map(|(name, _)| name.as_str())
    }

    /// Joins a further piece of a name to what is known of it.
    pub(crate) fn join_name(&self, known: &str, piece: &str, may_grow: bool) -> String {
        let joined = format!("{known}{piece}");
        if known.is_empty() {
            return joined;
        }
        let is_resend = piece == known && (self.has(known) || !self.may_become(&joined));
        if piece.is_empty() || is_resend {
            return known.to_owned();
        }
        if self.may_become(&joined) {
            return joined;
        }
        if piece.starts_with(known) && self.may_become(piece) {
            return piece.to_owned();
        }
        // A name that is not on offer may come in pieces too, as long as nothing else has come.
        if may_grow && self.resolve(known).is_none() && self.resolve(piece).is_none() {
            return joined;
        }
        known.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Tools {
        Tools::named(["edit", "edit_whole_file", "gogo", "look_up"])
    }

    #[test]
    fn a_decorated_name_means_the_tool_inside() {
        for name in [
            "look_up",
            "functions.look_up",
            "default_api:look_up",
            "look_up<|channel|>commentary",
            "functions.look_up:3",
            " look_up ",
        ] {
            assert_eq!(tools().resolve(name), Some("look_up"), "{name}");
        }
        assert_eq!(tools().resolve("look"), None);
        assert_eq!(tools().resolve("look_up.more"), None);
    }

    #[test]
    fn pieces_join_and_resends_do_not() {
        let join = |known: &str, piece: &str| tools().join_name(known, piece, true);
        assert_eq!(join("", "look_up"), "look_up");
        assert_eq!(join("edit_wh", "ole_file"), "edit_whole_file");
        assert_eq!(join("look_up", "look_up"), "look_up");
        assert_eq!(join("look_up", ""), "look_up");
        assert_eq!(join("go", "go"), "gogo");
        assert_eq!(join("fly", "fly"), "fly");
        assert_eq!(join("launch_", "rocket"), "launch_rocket");
        assert_eq!(tools().join_name("launch_", "rocket", false), "launch_");
    }
}

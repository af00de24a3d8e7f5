//! Whether a call is the one that was agreed to.

use proto::call::ToolCall;
use proto::hash::arguments_hash;
use proto::tool::{Approval, ToolContract};

/// Why it is not, if it is not: its arguments are others, the word was about another tool or other
/// arguments, or there is no word although each call of the tool needs one.
pub(crate) fn problem(call: &ToolCall, tool: &ToolContract) -> Option<String> {
    if arguments_hash(&call.arguments) != call.arguments_hash {
        return Some("The arguments are not those that the call was made with.".to_owned());
    }
    let Some(approved) = &call.approved else {
        let needs_word = matches!(tool.approval, Approval::Always);
        return needs_word.then(|| "Each call of the tool needs a person's word.".to_owned());
    };
    if approved.arguments_hash != call.arguments_hash {
        return Some("The approval was given for other arguments.".to_owned());
    }
    let other = approved.fingerprint.as_ref().is_some_and(|shown| *shown != call.terms.fingerprint);
    other.then(|| "The approval was given for another version of the tool.".to_owned())
}

#[cfg(test)]
mod tests {
    use proto::call::Approved;
    use proto::hash::fingerprint;
    use proto::tool::Effect;
    use serde_json::{Map, json};

    use super::*;
    use crate::fixtures;

    fn approved(call: &ToolCall) -> Approved {
        Approved {
            by: "ann".into(),
            arguments_hash: call.arguments_hash.clone(),
            fingerprint: Some(call.terms.fingerprint.clone()),
        }
    }

    #[test]
    fn a_word_is_about_one_tool_and_exactly_these_arguments() {
        let mut tool = fixtures::contract(Effect::Irreversible);
        let mut call = fixtures::call(Effect::Irreversible);
        assert_eq!(problem(&call, &tool), None);
        tool.approval = Approval::Always;
        assert!(problem(&call, &tool).is_some_and(|why| why.contains("needs a person's word")));
        call.approved = Some(approved(&call));
        assert_eq!(problem(&call, &tool), None);

        let other: Map<_, _> = Map::from_iter([("x".to_owned(), json!(1))]);
        let changed = ToolCall { arguments: other.clone(), ..call.clone() };
        assert!(problem(&changed, &tool).is_some_and(|why| why.contains("not those")));
        let both = ToolCall { arguments_hash: arguments_hash(&other), ..changed };
        assert!(problem(&both, &tool).is_some_and(|why| why.contains("other arguments")));
        call.terms.fingerprint = fingerprint("v2");
        assert!(problem(&call, &tool).is_some_and(|why| why.contains("another version")));
    }
}

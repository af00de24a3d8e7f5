//! A rehearsal beside the agent whose model it plays: what it names has to be there.

use definitions::problem::Problem;
use serde_json::Value;

use crate::script::{Mention, Script};

/// The builtin that only carries an answer; every agent has it.
const FINISH: &str = "finish";

/// A tool of the agent.
#[derive(Clone, Copy, Debug)]
pub struct Known<'a> {
    /// Its name.
    pub name: &'a str,
    /// The JSON Schema of its arguments.
    pub parameters: &'a Value,
}

impl Script {
    /// What it names that the agent does not have: tools, and arguments of their calls.
    pub fn against(&self, tools: &[Known<'_>]) -> Vec<Problem> {
        let mut problems = Vec::new();
        for mention in self.mentions.iter().filter(|mention| mention.tool != FINISH) {
            match tools.iter().find(|tool| tool.name == mention.tool) {
                None => problems.push(self.unknown_tool(mention, tools)),
                Some(tool) => problems.extend(self.arguments(mention, tool)),
            }
        }
        problems
    }

    fn unknown_tool(&self, mention: &Mention, tools: &[Known<'_>]) -> Problem {
        let names = || tools.iter().map(|tool| tool.name);
        let all: Vec<&str> = names().collect();
        let fix = argument_check::nearest(&mention.tool, names()).map_or_else(
            || "add it to the agent's `tools`, or take the rule out".to_owned(),
            |meant| format!("write `{meant}`"),
        );
        self.problem(
            (mention.line, mention.column),
            mention.field.clone(),
            format!("a tool of the agent: {}", all.join(", ")),
            format!("`{}`", mention.tool),
            fix,
        )
    }

    fn arguments(&self, mention: &Mention, tool: &Known<'_>) -> Vec<Problem> {
        let Some(given) = &mention.arguments else { return Vec::new() };
        let properties = tool.parameters.get("properties").and_then(Value::as_object);
        let known: Vec<&str> =
            properties.into_iter().flat_map(|all| all.keys()).map(String::as_str).collect();
        let is_closed = tool.parameters.get("additionalProperties") == Some(&Value::Bool(false));
        let call = mention.field.trim_end_matches(".tool");
        let mut problems = Vec::new();
        for argument in given.iter().filter(|argument| !known.contains(&argument.name.as_str())) {
            let meant = argument_check::nearest(&argument.name, known.iter().copied());
            if !is_closed && meant.is_none() {
                continue;
            }
            let fix =
                meant.map_or_else(|| "leave it out".to_owned(), |meant| format!("write `{meant}`"));
            problems.push(self.problem(
                (argument.line, argument.column),
                format!("{call}.arguments.{}", argument.name),
                format!("an argument of {}: {}", tool.name, known.join(", ")),
                format!("`{}`", argument.name),
                fix,
            ));
        }
        let required = tool.parameters.get("required").and_then(Value::as_array);
        let required = required.into_iter().flatten().filter_map(Value::as_str);
        for name in required.filter(|name| !given.iter().any(|given| given.name == **name)) {
            problems.push(self.problem(
                (mention.line, mention.column),
                format!("{call}.arguments"),
                format!("every argument that {} requires", tool.name),
                format!("no `{name}`"),
                format!("add `{name}: …`"),
            ));
        }
        problems
    }

    fn problem(
        &self,
        (line, column): (u32, u32),
        field: String,
        expected: String,
        found: String,
        fix: String,
    ) -> Problem {
        Problem { file: self.file.clone(), line, column, field, expected, found, fix }
    }
}

//! From rules and a request to a planned reply.

use serde_json::{Map, Value};

use crate::heard::{Event, Heard, Speaker};
use crate::script::{Fail, Finish, Pace, Rule, Script};
use crate::template::{Source, Unfilled};

/// How a reply is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Text and the provider's `tool_calls`.
    Native,
    /// One JSON object as text.
    Contract,
}

/// A reply that is about to be sent.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The rule that fits, from 0.
    pub rule: usize,
    /// How it is written.
    pub form: Form,
    /// What the model thinks.
    pub reasoning: String,
    /// What it says.
    pub say: String,
    /// What it calls.
    pub calls: Vec<PlannedCall>,
    /// How sure it is.
    pub confidence: Option<f64>,
    /// Why it ends.
    pub finish: Finish,
    /// How fast it comes.
    pub pace: Pace,
    /// What goes wrong.
    pub fail: Option<Fail>,
    /// How many equal requests fail before one succeeds; all when absent.
    pub fail_times: Option<u64>,
}

/// A call with its arguments.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments.
    pub arguments: Map<String, Value>,
}

/// Why a request gets no reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoReply {
    /// No rule fits.
    #[error("no rule of the rehearsal fits: {0}")]
    NoRule(String),
    /// A rule fits but one of its templates has no value.
    #[error("rules[{rule}] (line {line}) of the rehearsal fits, but {unfilled}")]
    Unfilled {
        /// The rule, from 0.
        rule: usize,
        /// Its line.
        line: u32,
        /// Which template.
        unfilled: Unfilled,
    },
}

impl Script {
    /// The reply to a request: the first rule that fits decides.
    pub fn reply(&self, heard: &Heard) -> Result<Plan, NoReply> {
        let mut rules = self.rules.iter().enumerate();
        let fitting = rules.find(|(_, rule)| rule.when.holds(heard));
        let (index, rule) = fitting.ok_or_else(|| NoReply::NoRule(situation(heard)))?;
        let unfilled = |unfilled| NoReply::Unfilled { rule: index, line: rule.line, unfilled };
        self.plan(index, rule, heard).map_err(unfilled)
    }

    fn plan(&self, index: usize, rule: &Rule, heard: &Heard) -> Result<Plan, Unfilled> {
        let source = Source { heard, condition: &rule.when };
        let text = |template: &Option<crate::template::Template>| {
            template.as_ref().map_or(Ok(String::new()), |template| template.fill(source))
        };
        let calls = rule.calls.iter().map(|call| {
            let fields = call.arguments.iter();
            let filled = fields.map(|(name, shape)| Ok((name.clone(), shape.fill(source)?)));
            Ok(PlannedCall {
                tool: call.tool.clone(),
                arguments: filled.collect::<Result<_, _>>()?,
            })
        });
        let calls: Vec<PlannedCall> = calls.collect::<Result<_, _>>()?;
        let usual = if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        Ok(Plan {
            rule: index,
            form: heard.form,
            reasoning: text(&rule.reasoning)?,
            say: text(&rule.say)?,
            calls,
            confidence: rule.confidence,
            finish: rule.finish.unwrap_or(usual),
            pace: rule.pace.unwrap_or(self.pace),
            fail: rule.fail,
            fail_times: rule.fail_times,
        })
    }
}

/// What was sent, in one line, for whoever has to write the missing rule.
fn situation(heard: &Heard) -> String {
    let last = match (heard.last(), heard.events.last()) {
        (Speaker::User, _) => format!("the last message is the user's: {}", cut(heard.user())),
        (Speaker::Tool, Some(Event::Observed(observed))) => {
            format!(
                "the last message is an observation of {}: {}",
                observed.tool,
                cut(&observed.text)
            )
        }
        (Speaker::Tool | Speaker::Model | Speaker::Nobody, _) => {
            "the last message is neither the user's nor a tool's".to_owned()
        }
    };
    let calls: Vec<&str> = heard
        .since_user()
        .iter()
        .filter_map(|event| match event {
            Event::Called(tool) => Some(tool.as_str()),
            Event::User(_) | Event::Reply | Event::Observed(_) => None,
        })
        .collect();
    let turn = crate::condition::turn(heard.since_user());
    format!("turn {turn}, {last}; called so far: [{}]", calls.join(", "))
}

fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(120).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    Value::String(short).to_string()
}

//! Plays a whole run against a rehearsal, as a planner would, without a network.

use rehearsal::engine::{Form, NoReply, Plan};
use rehearsal::heard::Heard;
use rehearsal::script::Script;
use rehearsal::wire::{self, Head};
use serde_json::{Value, json};

const CONTRACT: &str = r#"Reply with one JSON object: {"reasoning": "", "tool_calls": []}"#;

/// A conversation that grows.
pub(crate) struct Play<'s> {
    script: &'s Script,
    form: Form,
    pub(crate) messages: Vec<Value>,
}

/// How a run went.
#[derive(Debug, PartialEq)]
pub(crate) struct Run {
    /// Rules that fitted, in order.
    pub(crate) rules: Vec<usize>,
    /// Calls, in order.
    pub(crate) calls: Vec<(String, Value)>,
    /// The answer.
    pub(crate) answer: String,
}

impl<'s> Play<'s> {
    pub(crate) fn new(script: &'s Script, form: Form) -> Self {
        let system = match form {
            Form::Native => "You are an agent.",
            Form::Contract => CONTRACT,
        };
        Self { script, form, messages: vec![json!({"role": "system", "content": system})] }
    }

    pub(crate) fn user(&mut self, text: &str) {
        self.messages.push(json!({"role": "user", "content": text}));
    }

    pub(crate) fn request(&self) -> Value {
        let tools = match self.form {
            Form::Native => json!([{"type": "function", "function": {"name": "any"}}]),
            Form::Contract => Value::Null,
        };
        json!({"model": "rehearsal", "messages": self.messages, "tools": tools})
    }

    pub(crate) fn ask(&self) -> Result<Plan, NoReply> {
        self.script.reply(&Heard::read(&self.request()))
    }

    /// Adds the reply, as it comes back in the next request.
    pub(crate) fn reply(&mut self, plan: &Plan) {
        let head = Head { id: "1".into(), model: "rehearsal".into(), created: 0 };
        let completion = wire::completion(plan, &head, 0);
        self.messages.push(completion.pointer("/choices/0/message").unwrap().clone());
    }

    /// Adds what a tool answered to the call at `index` of the last reply.
    pub(crate) fn observe(&mut self, index: usize, tool: &str, text: &str) {
        if self.form == Form::Contract {
            return self.observe_as_text(tool, text);
        }
        let id = format!("call_rehearsed_{index}");
        let message = json!({"role": "tool", "tool_call_id": id, "name": tool, "content": text});
        self.messages.push(message);
    }

    /// All observations of a reply are one object in the user's place.
    fn observe_as_text(&mut self, tool: &str, text: &str) {
        let one = json!({"id": "x", "name": tool, "content": text});
        let last = self.messages.last().unwrap()["content"].as_str().unwrap_or_default();
        let object = serde_json::from_str::<Value>(last).unwrap_or_default();
        let mut all = object["observations"].as_array().cloned().unwrap_or_default();
        if !all.is_empty() {
            self.messages.pop();
        }
        all.push(one);
        self.user(&json!({"observations": all}).to_string());
    }

    /// Goes on until a reply calls nothing. `tool` answers the nth call of a tool, from 0.
    pub(crate) fn run(&mut self, tool: &dyn Fn(&str, usize) -> String) -> Run {
        let mut run = Run { rules: Vec::new(), calls: Vec::new(), answer: String::new() };
        for _ in 0..20 {
            let plan = self.ask().unwrap();
            self.reply(&plan);
            run.rules.push(plan.rule);
            if plan.calls.is_empty() {
                run.answer = plan.say;
                return run;
            }
            for (index, call) in plan.calls.iter().enumerate() {
                let nth = run.calls.iter().filter(|(name, _)| *name == call.tool).count();
                run.calls.push((call.tool.clone(), Value::Object(call.arguments.clone())));
                self.observe(index, &call.tool, &tool(&call.tool, nth));
            }
        }
        panic!("the rehearsal does not end: {:?}", run.rules);
    }
}

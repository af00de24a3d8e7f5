//! Properties: whatever a thread went through, what is rendered of it keeps the rules of each family
//! of endpoints, in both protocols.

use std::collections::BTreeSet;

use model_openai::profile::rules;
use model_openai::{Profile, wire};
use proptest::prelude::*;
use proto::agent::Protocol;
use proto::error_code::ErrorCode;
use proto::ids::ToolCallId;
use proto::model::{Block, ModelRequest};
use proto::observation::Observation;
use proto::transcript::{AnsweredCall, Entry, Transcript, TurnEntry};
use regex::Regex;
use serde_json::{Map, Value, json};

use crate::client;

const PROFILES: [Profile; 7] = [
    Profile::Openai,
    Profile::Mistral,
    Profile::AnthropicCompatible,
    Profile::GeminiCompatible,
    Profile::LlamaCpp,
    Profile::Ollama,
    Profile::Vllm,
];

/// An entry without its calls' ids: words, and the arguments and results of its calls.
#[derive(Clone, Debug)]
enum Seed {
    User(String),
    Note(String),
    Turn { text: String, reasoning: String, calls: Vec<(String, String, String)>, opaque: bool },
}

fn seed() -> impl Strategy<Value = Seed> {
    let words = "[ a-z\"{}\\\\\n\u{1}é字]{0,12}";
    let call = ("[a-z !.é]{0,70}", words, words);
    prop_oneof![
        words.prop_map(Seed::User),
        words.prop_map(Seed::Note),
        (words, words, prop::collection::vec(call, 0..4), any::<bool>()).prop_map(
            |(text, reasoning, calls, opaque)| Seed::Turn { text, reasoning, calls, opaque }
        ),
    ]
}

fn entry(index: usize, seed: Seed) -> Entry {
    match seed {
        Seed::User(text) => Entry::User { text },
        Seed::Note(text) => Entry::Note { text },
        Seed::Turn { text, reasoning, calls, opaque } => {
            let calls = calls.into_iter().enumerate();
            let calls = calls.map(|(n, call)| answered(&format!("c{index:07}{n}"), call, opaque));
            let calls = calls.collect();
            let opaque = opaque.then(|| json!({"reasoning_details": [1]}));
            Entry::Turn(TurnEntry { text, reasoning, calls, opaque })
        }
    }
}

fn answered(
    id: &str,
    (tool, argument, result): (String, String, String),
    opaque: bool,
) -> AnsweredCall {
    let id = ToolCallId::new(id).unwrap();
    let arguments = Map::from_iter([("x".to_owned(), json!(argument))]);
    let opaque = opaque.then(|| json!({"extra_content": 1}));
    let observation = Observation::synthesised(id, ErrorCode::Cancelled, result);
    AnsweredCall::new(tool, arguments, opaque, observation)
}

fn role(message: &Value) -> &str {
    message["role"].as_str().unwrap()
}

/// What is wrong with a conversation, for endpoints of a family.
fn broken(profile: Profile, protocol: Protocol, messages: &[Value]) -> Vec<String> {
    let (rules, mut wrong) = (rules(profile), Vec::new());
    let mut rule = |holds: bool, what: &str| {
        if !holds {
            wrong.push(what.to_owned());
        }
    };
    let id_shape = Regex::new("^[a-z0-9]{9}$").unwrap();
    let name_shape = Regex::new("^[a-zA-Z0-9_-]{1,64}$").unwrap();
    let mut ids = BTreeSet::new();
    let mut owed: Vec<String> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let last = at.checked_sub(1).map_or("", |at| role(&messages[at]));
        if role(message) == "tool" {
            let is_next = !owed.is_empty() && json!(owed.remove(0)) == message["tool_call_id"];
            rule(is_next, "a tool message answers the next call");
            rule(
                message["content"].as_str().is_some_and(|text| !text.is_empty()),
                "it says something",
            );
        } else {
            rule(owed.is_empty(), "every call is answered directly behind");
            owed.clear();
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let id = call["id"].as_str().unwrap().to_owned();
            rule(id_shape.is_match(&id) && ids.insert(id.clone()), "ids are unique, of one shape");
            owed.push(id);
            rule(name_shape.is_match(call["function"]["name"].as_str().unwrap()), "names are fit");
            let arguments = serde_json::from_str(call["function"]["arguments"].as_str().unwrap());
            rule(arguments.is_ok_and(|value: Value| value.is_object()), "arguments are objects");
            rule(rules.echoes || call.as_object().unwrap().len() == 3, "unknown fields of calls");
        }
        match role(message) {
            "system" => rule(at == 0 || rules.system_anywhere, "system words come first"),
            "user" => {
                rule(!(rules.merges_users && last == "user"), "users do not follow each other");
                rule(!(rules.assistant_after_tool && last == "tool"), "no user behind a tool");
            }
            "assistant" => {
                let known = ["role", "content", "tool_calls"];
                let fields = message.as_object().unwrap().keys();
                let strange = fields.filter(|field| !known.contains(&field.as_str())).count();
                rule(rules.echoes || strange == 0, "unknown fields of replies");
                let says = message["content"].as_str().is_some_and(|text| !text.is_empty());
                rule(says || message["tool_calls"].is_array(), "a reply is not empty");
                rule(
                    protocol == Protocol::Native || message.get("tool_calls").is_none(),
                    "calls are text",
                );
            }
            "tool" => rule(protocol == Protocol::Native, "results are text"),
            other => rule(false, other),
        }
    }
    rule(owed.is_empty(), "every call is answered");
    wrong
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_history_keeps_the_rules_of_every_family(
        seeds in prop::collection::vec(seed(), 0..12),
        contract: bool,
        tail: bool,
    ) {
        let entries = seeds.into_iter().enumerate().map(|(at, seed)| entry(at, seed)).collect();
        let protocol = if contract { Protocol::Contract } else { Protocol::Native };
        let block = Block { name: "reminder".into(), text: "Be brief.".into() };
        let request = ModelRequest {
            protocol,
            head: vec![Block { name: "role".into(), text: "You dig.".into() }],
            transcript: Transcript::new(entries).unwrap(),
            tail: tail.then_some(block).into_iter().collect(),
            ..client::request()
        };
        for profile in PROFILES {
            let rules = rules(profile);
            let body = serde_json::to_value(wire::render(&request, None, &rules)).unwrap();
            let wrong = broken(profile, protocol, body["messages"].as_array().unwrap());
            prop_assert!(wrong.is_empty(), "{profile}: {wrong:?} in {body:#}");
        }
    }
}

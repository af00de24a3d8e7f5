//! Requests as providers get them.

use expect_test::{Expect, expect};
use model_openai::profile::rules;
use model_openai::{Profile, wire};
use proto::agent::Protocol;
use proto::error_code::ErrorCode;
use proto::ids::ToolCallId;
use proto::model::{Block, ModelRequest, ModelTool};
use proto::observation::Observation;
use proto::transcript::{AnsweredCall, Entry, Transcript, TurnEntry};
use serde_json::{Map, Value, json};

fn call(id: &str, tool: &str, opaque: Option<Value>) -> AnsweredCall {
    let id = ToolCallId::new(id).unwrap();
    let mut arguments = Map::new();
    arguments.insert("depth".to_owned(), json!(1));
    AnsweredCall::new(
        tool,
        arguments,
        opaque,
        Observation::synthesised(id, ErrorCode::UnknownTool, "no"),
    )
}

fn request(protocol: Protocol) -> ModelRequest {
    let turn = TurnEntry {
        text: "Digging.".to_owned(),
        reasoning: "It is shallow.".to_owned(),
        calls: vec![
            call("aaaaaaaa1", "dig", Some(json!({"extra_content": {"s": 1}}))),
            call("aaaaaaaa2", "not a name!", None),
        ],
        opaque: Some(json!({"reasoning": "It is shallow."})),
    };
    let entries = vec![
        Entry::User { text: "Dig.".to_owned() },
        Entry::Turn(turn),
        Entry::Note { text: "The first hole fell in.".to_owned() },
        Entry::User { text: "And?".to_owned() },
    ];
    let block = |name: &str, text: &str| Block { name: name.to_owned(), text: text.to_owned() };
    ModelRequest {
        agent: "digger".parse().unwrap(),
        model: "m".to_owned(),
        protocol,
        head: vec![block("role", "You dig."), block("tools", "")],
        transcript: Transcript::new(entries).unwrap(),
        tail: vec![block("output", "Be brief.")],
        tools: vec![ModelTool {
            name: "dig".parse().unwrap(),
            description: "Digs.".to_owned(),
            parameters: json!({"type": "object"}).into(),
        }],
        temperature: Some(0.5),
        fallbacks: Vec::new(),
        max_completion_tokens: Some(9),
        profile: None,
        tenant: None,
        likely_tokens: 0,
        estimate: proto::model::Estimate::default(),
        failed_rounds: 0,
    }
}

fn rendered(request: &ModelRequest, model: Option<&str>, profile: Profile) -> Value {
    serde_json::to_value(wire::render(request, model, &rules(profile))).unwrap()
}

/// Messages a line each, then the other fields.
#[expect(clippy::needless_pass_by_value, reason = "expect! makes values")]
fn check(profile: Profile, protocol: Protocol, expected: Expect) {
    let mut body = rendered(&request(protocol), None, profile);
    let messages = body["messages"].take();
    let lines = messages.as_array().unwrap().iter().map(|message| format!("{message}\n"));
    body.as_object_mut().unwrap().remove("messages");
    expected.assert_eq(&format!("{}{body}\n", lines.collect::<String>()));
}

#[test]
fn each_call_has_its_one_answer_directly_behind() {
    check(
        Profile::Openai,
        Protocol::Native,
        expect![[r#"
        {"content":"You dig.","role":"system"}
        {"content":"Dig.","role":"user"}
        {"content":"Digging.","reasoning":"It is shallow.","role":"assistant","tool_calls":[{"extra_content":{"s":1},"function":{"arguments":"{\"depth\":1}","name":"dig"},"id":"aaaaaaaa1","type":"function"},{"function":{"arguments":"{\"depth\":1}","name":"not_a_name_"},"id":"aaaaaaaa2","type":"function"}]}
        {"content":"no","role":"tool","tool_call_id":"aaaaaaaa1"}
        {"content":"no","role":"tool","tool_call_id":"aaaaaaaa2"}
        {"content":"The first hole fell in.","role":"system"}
        {"content":"And?","role":"user"}
        {"content":"Be brief.","role":"system"}
        {"max_completion_tokens":9,"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"tools":[{"function":{"description":"Digs.","name":"dig","parameters":{"type":"object"}},"type":"function"}]}
    "#]],
    );
}

#[test]
fn a_strict_endpoint_gets_no_unknown_field_and_an_assistant_after_the_tool() {
    check(
        Profile::Mistral,
        Protocol::Native,
        expect![[r#"
        {"content":"You dig.","role":"system"}
        {"content":"Dig.","role":"user"}
        {"content":"Digging.","role":"assistant","tool_calls":[{"function":{"arguments":"{\"depth\":1}","name":"dig"},"id":"aaaaaaaa1","type":"function"},{"function":{"arguments":"{\"depth\":1}","name":"not_a_name_"},"id":"aaaaaaaa2","type":"function"}]}
        {"content":"no","role":"tool","tool_call_id":"aaaaaaaa1"}
        {"content":"no","role":"tool","tool_call_id":"aaaaaaaa2"}
        {"content":"Noted.","role":"assistant"}
        {"content":"[runtime] The first hole fell in.\n\nAnd?\n\n[runtime] Be brief.","role":"user"}
        {"max_tokens":9,"model":"m","stream":true,"temperature":0.5,"tools":[{"function":{"description":"Digs.","name":"dig","parameters":{"type":"object"}},"type":"function"}]}
    "#]],
    );
}

#[test]
fn a_template_endpoint_gets_one_system_message_first() {
    check(
        Profile::Vllm,
        Protocol::Native,
        expect![[r#"
        {"content":"You dig.","role":"system"}
        {"content":"Dig.","role":"user"}
        {"content":"Digging.","reasoning":"It is shallow.","role":"assistant","tool_calls":[{"extra_content":{"s":1},"function":{"arguments":"{\"depth\":1}","name":"dig"},"id":"aaaaaaaa1","type":"function"},{"function":{"arguments":"{\"depth\":1}","name":"not_a_name_"},"id":"aaaaaaaa2","type":"function"}]}
        {"content":"no","role":"tool","tool_call_id":"aaaaaaaa1"}
        {"content":"no","role":"tool","tool_call_id":"aaaaaaaa2"}
        {"content":"[runtime] The first hole fell in.\n\nAnd?\n\n[runtime] Be brief.","role":"user"}
        {"max_tokens":9,"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"tools":[{"function":{"description":"Digs.","name":"dig","parameters":{"type":"object"}},"type":"function"}]}
    "#]],
    );
}

#[test]
fn under_the_contract_both_sides_are_text_in_its_shape() {
    check(
        Profile::Openai,
        Protocol::Contract,
        expect![[r#"
        {"content":"You dig.","role":"system"}
        {"content":"Dig.","role":"user"}
        {"content":"{\"reasoning\":\"It is shallow.\",\"tool_calls\":[{\"arguments\":{\"depth\":1},\"id\":\"aaaaaaaa1\",\"name\":\"dig\"},{\"arguments\":{\"depth\":1},\"id\":\"aaaaaaaa2\",\"name\":\"not_a_name_\"}]}","role":"assistant"}
        {"content":"{\"observations\":[{\"content\":\"no\",\"id\":\"aaaaaaaa1\",\"name\":\"dig\"},{\"content\":\"no\",\"id\":\"aaaaaaaa2\",\"name\":\"not_a_name_\"}]}","role":"user"}
        {"content":"The first hole fell in.","role":"system"}
        {"content":"And?","role":"user"}
        {"content":"Be brief.","role":"system"}
        {"max_completion_tokens":9,"model":"m","stream":true,"stream_options":{"include_usage":true},"temperature":0.5}
    "#]],
    );
}

#[test]
fn an_answer_under_the_contract_is_the_object_that_the_model_wrote() {
    let sent = |text: &str, reasoning: &str| {
        let (text, reasoning) = (text.to_owned(), reasoning.to_owned());
        let turn = TurnEntry { text, reasoning, calls: Vec::new(), opaque: None };
        let entries = vec![Entry::User { text: "Dig.".to_owned() }, Entry::Turn(turn)];
        let transcript = Transcript::new(entries).unwrap();
        let request = ModelRequest { transcript, ..request(Protocol::Contract) };
        let body = rendered(&request, None, Profile::Openai);
        body["messages"][2]["content"].as_str().unwrap().to_owned()
    };
    let object = r#"{"reasoning":"It is deep.","tool_calls":[]}"#;
    assert_eq!(sent("It is deep.", "Is it?"), object);
    assert_eq!(sent("It is deep.", ""), object);
    // One that was interrupted.
    assert_eq!(sent("", "It is deep."), object);
}

#[test]
fn an_endpoint_may_name_its_own_model() {
    let body = rendered(&request(Protocol::Native), Some("other"), Profile::Openai);
    assert_eq!(body["model"], "other");
}

#[test]
fn a_field_of_a_reply_never_takes_the_place_of_one_of_ours() {
    let forged = json!({"role": "user", "content": "forged", "tool_calls": [], "kept": 1});
    let call = call("aaaaaaaa1", "dig", Some(json!({"id": "forged", "type": "forged"})));
    let turn = TurnEntry {
        text: "Digging.".to_owned(),
        reasoning: String::new(),
        calls: vec![call],
        opaque: Some(forged),
    };
    let transcript = Transcript::new(vec![Entry::Turn(turn)]).unwrap();
    let request = ModelRequest { transcript, ..request(Protocol::Native) };
    let rules = rules(Profile::Openai);
    // As text: a tree of values would hide a field that is written twice.
    let text = serde_json::to_string(&wire::render(&request, None, &rules)).unwrap();
    assert!(!text.contains("forged"), "{text}");
    assert!(text.contains(r#""kept":1"#), "{text}");
}

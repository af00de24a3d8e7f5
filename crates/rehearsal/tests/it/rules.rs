//! Conditions, templates, and the order of rules.

use expect_test::expect;
use rehearsal::engine::{Form, NoReply, Plan};
use rehearsal::script::{Finish, Pace, Script};
use serde_json::json;

use crate::play::Play;

fn script(text: &str) -> Script {
    match Script::parse("r.yaml", text) {
        Ok(script) => script,
        Err(problems) => panic!("{}", problems[0]),
    }
}

/// The reply after one observation of tool `t`.
fn after(rules: &str, observation: &str) -> Result<Plan, NoReply> {
    let script = script(rules);
    let mut play = Play::new(&script, Form::Native);
    play.user("check host web-1 in 3 minutes {\"a\": {\"b\": [7]}}");
    play.messages.push(json!({
        "role": "assistant",
        "content": null,
        "tool_calls": [{"id": "x1", "type": "function", "function": {"name": "t", "arguments": "{}"}}],
    }));
    play.messages.push(json!({"role": "tool", "tool_call_id": "x1", "content": observation}));
    play.ask()
}

fn said(rules: &str, observation: &str) -> String {
    after(rules, observation).map_or_else(|error| error.to_string(), |plan| plan.say)
}

#[test]
fn the_first_rule_that_fits_wins() {
    let rules = "rules: [{when: {last: user}, say: a}, {when: {last: tool}, say: b}, {say: c}]";
    assert_eq!(said(rules, "x"), "b");
}

#[test]
fn every_condition_has_to_hold() {
    let holds = [
        "last: tool",
        "turn: 2",
        "turn: { at_least: 2, at_most: 2 }",
        "called: [t]",
        "not_called: [u]",
        "times: { t: 1, u: 0 }",
        "user_matches: 'host (\\S+)'",
        "model: '^rehearsal$'",
        "tool: t",
        "observation_matches: 'ok'",
        "observation: { ok: true, n: 1.0, list.1: b }",
        "observation: { n: { above: 0, below: 2, at_least: 1, at_most: 1, not: 5, one_of: [1, 2] } }",
        "observation: { absent: { exists: false }, ok: { exists: true }, text: { matches: '^h' } }",
        "observed: { t: { ok: { equals: true }, $text: { matches: '\"ok\"' } } }",
        "observed: { t: }",
    ];
    let fails = [
        "last: user",
        "turn: 1",
        "called: [t, u]",
        "not_called: [t]",
        "times: { t: 2 }",
        "user_matches: '^host'",
        "model: other",
        "tool: u",
        "observation_matches: '^ok'",
        "observation: { ok: false }",
        "observation: { absent: true }",
        "observation: { n: { above: 1 } }",
        "observed: { u: }",
        "observed: { t: { $text: { matches: '^ok' } } }",
    ];
    let observation = r#"Result: {"ok": true, "n": 1, "list": ["a", "b"], "text": "hello"}"#;
    for (conditions, expected) in [(&holds[..], "yes"), (&fails[..], "no")] {
        for condition in conditions {
            let rules = format!("rules:\n  - when: {{ {condition} }}\n    say: yes\n  - say: no\n");
            let rules = rules.replace("say: yes", "say: 'yes'").replace("say: no", "say: 'no'");
            assert_eq!(said(&rules, observation), expected, "{condition}");
        }
    }
}

#[test]
fn templates_are_filled_from_the_user_and_the_observations() {
    let rules = r#"
rules:
  - when: { user_matches: 'host (\S+) in (?<minutes>\d+)' }
    say: "{{user.1}} {{user.minutes}} {{input.a.b.0}} {{turn}} {{observed.t.x}} {{observed.t}} {{observed.u|none}}"
    calls:
      - tool: t
        arguments: { number: "{{observed.t.x}}", text: "x={{observed.t.x}}", list: ["{{user.1}}", 5], deep: { all: "{{input}}" } }
"#;
    let plan = after(rules, r#"{"x":1.5}"#).unwrap();
    assert_eq!(plan.say, r#"web-1 3 7 2 1.5 {"x":1.5} none"#);
    assert_eq!(
        serde_json::Value::Object(plan.calls[0].arguments.clone()),
        json!({"number": 1.5, "text": "x=1.5", "list": ["web-1", 5], "deep": {"all": {"a": {"b": [7]}}}})
    );
    assert_eq!(plan.finish, Finish::ToolCalls);
}

#[test]
fn a_request_that_no_rule_fits_is_described() {
    let rules = "rules: [{when: {last: user}, say: a}]";
    expect![[r#"no rule of the rehearsal fits: turn 2, the last message is an observation of t: "boom"; called so far: [t]"#]]
        .assert_eq(&said(rules, "boom"));
}

#[test]
fn a_template_without_a_value_is_an_error_that_names_it() {
    let rules = "rules: [{say: 'x {{observed.t.missing}}'}]";
    expect![[r"rules[0] (line 1) of the rehearsal fits, but `{{observed.t.missing}}` has no value in this conversation: write `{{observed.t.missing|otherwise}}` or add a condition"]]
        .assert_eq(&said(rules, "{}"));
}

#[test]
fn only_what_came_since_the_user_spoke_counts_unless_the_rule_says_so() {
    let text =
        "rules: [{when: {since: start, called: [t], turn: 2}, say: all}, {say: 'new {{turn}}'}]";
    let since_start = script(text);
    let since_user = script(&text.replace("since: start, ", ""));
    for (script, expected) in [(&since_start, "all"), (&since_user, "new 1")] {
        let mut play = Play::new(script, Form::Native);
        play.user("first");
        play.messages.push(json!({
            "role": "assistant",
            "tool_calls": [{"id": "x", "function": {"name": "t", "arguments": "{}"}}],
        }));
        play.messages.push(json!({"role": "tool", "tool_call_id": "x", "content": "done"}));
        play.user("second");
        assert_eq!(play.ask().unwrap().say, expected);
    }
}

#[test]
fn a_rule_may_set_its_own_pace_and_finish() {
    let rules = "{pace: {tokens_per_second: 10}, rules: [{say: a, finish: length, pace: {first_token_ms: 5}}]}";
    let plan = after(rules, "x").unwrap();
    assert_eq!(plan.pace, Pace { tokens_per_second: None, first_token_ms: 5 });
    assert_eq!(plan.finish, Finish::Length);
}

#[test]
fn words_of_the_system_are_not_the_last_word() {
    let script = script("rules: [{when: {last: user}, say: a}]");
    let mut play = Play::new(&script, Form::Native);
    play.user("hello");
    play.messages.push(json!({"role": "system", "content": "Answer in JSON."}));
    assert_eq!(play.ask().unwrap().say, "a");
}

#[test]
fn words_of_the_runtime_in_a_users_place_are_not_the_users() {
    let script =
        script("rules: [{when: {last: tool, tool: t}, say: '{{observed.t}}'}, {say: '{{user}}'}]");
    let mut play = Play::new(&script, Form::Contract);
    play.user("One.\n\nTwo.\n\n[runtime] Answer with the object.");
    assert_eq!(play.ask().unwrap().say, "One.\n\nTwo.");
    play.user("{\"observations\":[{\"id\":\"a\",\"name\":\"t\",\"content\":\"seen\"}]}\n\n[runtime] Answer with the object.");
    assert_eq!(play.ask().unwrap().say, "seen");
    play.user("{\"observations\":[{\"id\":\"a\",\"name\":\"t\",\"content\":\"seen\"}]}\n\nGo on.");
    assert_eq!(play.ask().unwrap().say, "Go on.");
}

#[test]
fn a_text_in_parts_is_read_whole() {
    let script = script("rules: [{when: {user_matches: 'one\\ntwo'}, say: a}]");
    let mut play = Play::new(&script, Form::Native);
    let parts = json!([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]);
    play.messages.push(json!({"role": "user", "content": parts}));
    assert_eq!(play.ask().unwrap().say, "a");
}

//! The contract protocol: one object with calls.

use expect_test::expect;

use super::check_contract;

#[test]
fn the_contract_is_read_whatever_stands_around_it() {
    let object = r#"{"reasoning":"dig ⏎ it","tool_calls":[{"id":"1","name":"dig","arguments":{"depth":1}}],"confidence":0.5}"#;
    check_contract(
        &format!("say Sure:⏎```json⏎{object}⏎```⏎Done!\nfinish stop\n[DONE]"),
        expect![[r#"
            thinks dig ⏎ it
            calls 0 dig({"depth":1})
            end Some(ToolCalls)
        "#]],
    );
    check_contract(
        &format!("say {object}{object}\nfinish stop\n[DONE]"),
        expect![[r#"
        thinks dig ⏎ it
        calls 0 dig({"depth":1})
        end Some(ToolCalls)
    "#]],
    );
}

#[test]
fn a_contract_that_calls_nothing_is_the_answer() {
    let object = r#"{"reasoning":"All is well.","tool_calls":[]}"#;
    for lines in [
        format!("say {object}"),
        format!("say {object}{object}"),
        r#"say {"reasoning":"All is well."}"#.to_owned(),
        r#"say {"tool_calls":[],"reasoning":"All is well."}"#.to_owned(),
    ] {
        check_contract(
            &format!("{lines}\nfinish stop\n[DONE]"),
            expect![[r"
            thinks All is well.
            end Some(Stop) answer All is well.
        "]],
        );
    }
}

#[test]
fn a_thought_before_the_contract_is_no_part_of_the_answer() {
    let lines = r#"
        say <think>Is it?</think>
        say {"reasoning":"All is well.","tool_calls":[]}
        finish stop
        [DONE]"#;
    check_contract(
        lines,
        expect![[r"
        thinks Is it?All is well.
        end Some(Stop) answer All is well.
    "]],
    );
    let lines = r#"
        delta {"reasoning_content":"{\"reasoning\":\"x\",\"tool_calls\":[]}"}
        finish stop
        [DONE]"#;
    check_contract(
        lines,
        expect![[r#"
        thinks x
        end Some(Stop) with {"reasoning_content":"{\"reasoning\":\"x\",\"tool_calls\":[]}"} answer x
    "#]],
    );
}

#[test]
fn contract_calls_come_in_many_forms() {
    let calls = r#"{"tool_calls":[
        {"tool":"dig","args":"{\"depth\":1}"},
        {"function":{"name":"dig","arguments":"{\"depth\":2}"}},
        {"arguments":{"depth":3},"name":"functions.dig"},
        {"name":"tick"},
        {"name":"tick","arguments":null},
        {"name":"dig","arguments":[1]},
        {"arguments":{}},
        {"name":"fly","arguments":{"far":1}},
    ],}"#;
    check_contract(
        &format!("say {}\nfinish stop\n[DONE]", calls.replace('\n', "⏎")),
        expect![[r#"
            calls 0 dig({"depth":1})
            calls 1 dig({"depth":2})
            calls 2 dig({"depth":3})
            calls 3 tick({})
            calls 4 tick({})
            broken 5 dig "{\"name\":\"dig\",\"arguments\":[1]": the arguments must be a JSON object
            broken 6  "{\"arguments\":{}}": the call names no tool
            calls 7 fly({"far":1})
            end Some(ToolCalls)
        "#]],
    );
}

#[test]
fn only_the_outer_calls_of_the_contract_count() {
    let text = r#"{"example":{"tool_calls":[{"name":"dig","arguments":{}}]}} then {"reasoning":"{\"tool_calls\":[]}","tool_calls":[{"name":"dig","arguments":{"tool_calls":[{"name":"tick"}]}}]}"#;
    check_contract(
        &format!("say {text}\nfinish stop\n[DONE]"),
        expect![[r#"
        thinks {"tool_calls":[]}
        calls 0 dig({"tool_calls":[{"name":"tick"}]})
        end Some(ToolCalls)
    "#]],
    );
}

#[test]
fn a_contract_that_ends_early_keeps_its_finished_calls() {
    let text = r#"say {"reasoning":"x","tool_calls":[{"name":"dig","arguments":{"depth":1}},{"name":"fill","argu"#;
    check_contract(
        &format!("{text}\nfinish length\n[DONE]"),
        expect![[r#"
        thinks x
        calls 0 dig({"depth":1})
        broken 1 fill "{\"name\":\"fill\",\"argu": the call was cut off before it was complete
        Length retryable=true: the reply ran into its token limit
    "#]],
    );
    check_contract(
        &format!("{text}\nfinish stop\n[DONE]"),
        expect![[r#"
        thinks x
        calls 0 dig({"depth":1})
        broken 1 fill "{\"name\":\"fill\",\"argu": the call was cut off before it was complete
        ContractViolation retryable=true: the reply is not the object that was asked for
    "#]],
    );
    check_contract(
        text,
        expect![[r#"
        thinks x
        calls 0 dig({"depth":1})
        broken 1 fill "{\"name\":\"fill\",\"argu": the call was cut off before it was complete
        Truncated retryable=true: the body ended without a finish reason or an end mark
    "#]],
    );
}

#[test]
fn a_plain_answer_under_the_contract_is_an_answer() {
    check_contract(
        "say It is deep enough.\nfinish stop\n[DONE]",
        expect![[r"
        text It is deep enough.
        end Some(Stop)
    "]],
    );
}

#[test]
fn a_contract_on_the_reasoning_channel_is_found() {
    let lines = r#"
        delta {"reasoning_content":"{\"reasoning\":\"x\",\"tool_calls\":[{\"name\":\"dig\",\"arguments\":{\"depth\":1}}]}"}
        finish stop
        [DONE]"#;
    check_contract(
        lines,
        expect![[r#"
        thinks x
        calls 0 dig({"depth":1})
        end Some(ToolCalls) with {"reasoning_content":"{\"reasoning\":\"x\",\"tool_calls\":[{\"name\":\"dig\",\"arguments\":{\"depth\":1}}]}"}
    "#]],
    );
}

#[test]
fn a_second_contract_object_is_heard_and_a_tail_is_not() {
    let call = |depth: u8| {
        format!(
            r#"{{"reasoning":"r{depth}","tool_calls":[{{"name":"dig","arguments":{{"depth":{depth}}}}}]}}"#
        )
    };
    let text = format!("say {}{}", call(1), call(2));
    check_contract(
        &format!("{text}\nfinish stop\n[DONE]"),
        expect![[r#"
        thinks r1
        calls 0 dig({"depth":1})
        thinks ⏎r2
        calls 1 dig({"depth":2})
        end Some(ToolCalls)
    "#]],
    );
    check_contract(
        &format!("say {}⏎⏎⏎\nfinish length\n[DONE]", call(1)),
        expect![[r#"
        thinks r1
        calls 0 dig({"depth":1})
        end Some(Length)
    "#]],
    );
}

#[test]
fn a_contract_in_python_waits_for_its_end() {
    let text =
        "say {'reasoning': 'it is', 'tool_calls': [{'name': 'dig', 'arguments': {'wet': True}}]";
    check_contract(
        &format!("{text}}}\nfinish stop\n[DONE]"),
        expect![[r#"
        thinks it is
        calls 0 dig({"wet":true})
        end Some(ToolCalls)
    "#]],
    );
    check_contract(
        &format!("{text}\nfinish stop\n[DONE]"),
        expect![[r#"
        thinks it is
        broken 0 dig "{\"wet\":true}": the call was cut off before it was complete
        ContractViolation retryable=true: the reply is not the object that was asked for
    "#]],
    );
}

#[test]
fn native_calls_and_confidence_under_the_contract_are_honoured() {
    let lines = r#"
        say {"tool_calls":null,"confidence":0.75,"reasoning":["a","b"]}
        call {"index":0,"id":"a","function":{"name":"dig","arguments":"{\"depth\":1}"}}
        [DONE]"#;
    check_contract(
        lines,
        expect![[r#"
        thinks a⏎b
        begins 0 dig
        calls 0 dig({"depth":1})
        end Some(ToolCalls)
    "#]],
    );
}

//! Calls: which piece belongs to which, and what may run.

use expect_test::expect;
use proto::agent::Protocol;

use super::{check, reader, shown};

#[test]
fn text_and_a_call_with_its_arguments_in_pieces() {
    let lines = r#"
        say One moment.
        call {"index":0,"id":"a","function":{"name":"dig","arguments":""}}
        call {"index":0,"function":{"arguments":"{\"depth\""}}
        call {"index":0,"function":{"arguments":":2}"}}
        finish tool_calls
        [DONE]"#;
    check(
        lines,
        expect![[r#"
        text One moment.
        begins 0 dig
        calls 0 dig({"depth":2})
        end Some(ToolCalls)
    "#]],
    );
}

#[test]
fn whole_calls_with_one_index_and_no_id_are_calls_of_their_own() {
    let lines = r#"
        call {"index":0,"function":{"name":"dig","arguments":"{\"depth\":1}"}}
        call {"index":0,"function":{"name":"dig","arguments":"{\"depth\":2}"}}
        finish stop
        [DONE]"#;
    check(
        lines,
        expect![[r#"
        begins 0 dig
        calls 0 dig({"depth":1})
        begins 1 dig
        calls 1 dig({"depth":2})
        end Some(ToolCalls)
    "#]],
    );
}

#[test]
fn an_anonymous_entry_continues_the_open_call() {
    let lines = r#"
        call {"index":0,"id":"a","function":{"name":"dig","arguments":""}}
        call {"index":1,"function":{"arguments":"{\"depth\":1"}}
        call {"index":1,"function":{"arguments":"}"}}
        [DONE]"#;
    check(
        lines,
        expect![[r#"
        begins 0 dig
        calls 0 dig({"depth":1})
        end Some(ToolCalls)
    "#]],
    );
}

#[test]
fn two_named_calls_without_any_identity_do_not_merge() {
    let lines = r#"
        call {"function":{"name":"tick","arguments":""}}
        call {"function":{"name":"dig","arguments":"{\"depth\":1}"}}
        finish tool_calls
        [DONE]"#;
    check(
        lines,
        expect![[r#"
        begins 0 tick
        begins 1 dig
        calls 1 dig({"depth":1})
        calls 0 tick({})
        end Some(ToolCalls)
    "#]],
    );
}

#[test]
fn a_name_in_pieces_waits_until_it_is_a_tool() {
    let lines = r#"
        call {"index":0,"id":"a","function":{"name":"fill_","arguments":"{\"depth\":1}"}}
        call {"index":0,"function":{"name":"all"}}
        finish tool_calls
        [DONE]"#;
    check(
        lines,
        expect![[r#"
        begins 0 fill_
        calls 0 fill_all({"depth":1})
        end Some(ToolCalls)
    "#]],
    );
}

#[test]
fn calls_that_cannot_run_are_reported_and_the_others_run() {
    let lines = r#"
        call {"index":0,"id":"a","function":{"name":"dig","arguments":"{\"depth\":"}}
        call {"index":1,"id":"b","function":{"name":"dig","arguments":"[1]"}}
        call {"index":2,"id":"c","function":{"name":null,"arguments":"{\"depth\":1}"}}
        call {"index":3,"id":"d","function":{"name":"fly","arguments":"{\"far\":1}"}}
        call {"index":4,"id":"","type":"function"}
        finish tool_calls
        [DONE]"#;
    check(
        lines,
        expect![[r#"
        begins 0 dig
        begins 1 dig
        begins 3 fly
        calls 3 fly({"far":1})
        broken 0 dig "{\"depth\":": the arguments are incomplete
        broken 1 dig "[1]": the arguments must be a JSON object
        broken 2  "{\"depth\":1}": the call names no tool
        end Some(ToolCalls)
    "#]],
    );
}

#[test]
fn a_call_is_out_before_the_next_byte() {
    let mut reader = reader(Protocol::Native);
    let head = r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"dig","arguments":"{\"depth\":1}"}}]}}]}"#;
    assert_eq!(shown(reader.push(head.as_bytes())), "");
    assert_eq!(shown(reader.push(b"\n")), "begins 0 dig\ncalls 0 dig({\"depth\":1})\n");
    assert_eq!((reader.chunks(), reader.saw_finish()), (1, false));
}

#[test]
fn ids_that_change_or_repeat_do_not_split_a_call() {
    let lines = r#"
        call {"index":0,"id":"a","function":{"name":"dig","arguments":""}}
        call {"index":0,"id":"b","function":{"arguments":"{\"depth\""}}
        call {"index":0,"id":"c","function":{"name":null,"arguments":":1}"}}
        call {"index":1,"id":"a","function":{"name":"dig","arguments":"{\"depth\":2}"}}
        [DONE]"#;
    check(
        lines,
        expect![[r#"
        begins 0 dig
        calls 0 dig({"depth":1})
        begins 1 dig
        calls 1 dig({"depth":2})
        end Some(ToolCalls)
    "#]],
    );
}

#[test]
fn a_second_object_in_one_call_is_a_second_call() {
    let lines = r#"
        call {"index":0,"id":"a","function":{"name":"dig","arguments":"{\"depth\":1}"}}
        call {"index":0,"function":{"arguments":"{\"depth\":2}"}}
        call {"index":0,"function":{"arguments":"</tool_call>}"}}
        [DONE]"#;
    check(
        lines,
        expect![[r#"
        begins 0 dig
        calls 0 dig({"depth":1})
        calls 1 dig({"depth":2})
        end Some(ToolCalls)
    "#]],
    );
}

#[test]
fn the_wrapper_around_parallel_calls_is_unrolled_when_all_are_tools() {
    let wrapper = |names: [&str; 2]| {
        let uses = names
            .map(|name| serde_json::json!({"recipient_name": name, "parameters": {"depth": 1}}));
        let arguments = serde_json::json!({"tool_uses": uses}).to_string();
        let function =
            serde_json::json!({"name": "multi_tool_use.parallel", "arguments": arguments});
        format!("call {}\n[DONE]", serde_json::json!({"index": 0, "function": function}))
    };
    check(
        &wrapper(["functions.dig", "functions.fill"]),
        expect![[r#"
        begins 0 multi_tool_use.parallel
        calls 0 dig({"depth":1})
        calls 1 fill({"depth":1})
        end Some(ToolCalls)
    "#]],
    );
    check(
        &wrapper(["functions.dig", "functions.fly"]),
        expect![[r#"
        begins 0 multi_tool_use.parallel
        calls 0 multi_tool_use.parallel({"tool_uses":[{"parameters":{"depth":1},"recipient_name":"functions.dig"},{"parameters":{"depth":1},"recipient_name":"functions.fly"}]})
        end Some(ToolCalls)
    "#]],
    );
}

#[test]
fn a_legacy_function_call_is_a_call() {
    let lines = r#"
        delta {"function_call":{"name":"dig","arguments":""}}
        delta {"function_call":{"arguments":"{\"depth\":1}"}}
        finish function_call
        [DONE]"#;
    check(
        lines,
        expect![[r#"
        begins 0 dig
        calls 0 dig({"depth":1})
        end Some(ToolCalls)
    "#]],
    );
}

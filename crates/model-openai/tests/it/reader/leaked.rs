//! Calls that leaked into the text, and text that only looks like one.

use expect_test::expect;
use proto::agent::Protocol;

use super::{body, check, read, reader, shown};

#[test]
fn a_leaked_call_runs_and_an_example_of_one_does_not() {
    let call = r#"<tool_call>⏎{"name": "dig", "arguments": {"depth": 1}}⏎</tool_call>"#;
    check(
        &format!("say First.⏎{call}\nfinish stop\n[DONE]"),
        expect![[r#"
        text First.
        calls 0 dig({"depth":1})
        end Some(ToolCalls)
    "#]],
    );
    check(
        &format!("say Write `{call}` there.\nfinish stop\n[DONE]"),
        expect![[r#"
        text Write `<tool_call>⏎{"name": "dig", "arguments": {"depth": 1}}⏎</tool_call>` there.
        end Some(Stop)
    "#]],
    );
    check(
        &format!("say Such as⏎```⏎{call}⏎```⏎there.\nfinish stop\n[DONE]"),
        expect![[r#"
        text Such as⏎```⏎<tool_call>⏎{"name": "dig", "arguments": {"depth": 1}}⏎</tool_call>⏎```⏎there.
        end Some(Stop)
    "#]],
    );
    check(
        &format!("say <think>{call}</think>No.\nfinish stop\n[DONE]"),
        expect![[r#"
        thinks <tool_call>⏎{"name": "dig", "arguments": {"depth": 1}}⏎</tool_call>
        text No.
        end Some(Stop)
    "#]],
    );
    let unknown = r#"<tool_call>{"name": "fly", "arguments": {}}</tool_call>"#;
    check(
        &format!("say {unknown}\nfinish stop\n[DONE]"),
        expect![[r#"
        text <tool_call>{"name": "fly", "arguments": {}}</tool_call>
        ContractViolation retryable=true: the reply holds the markup of a tool call, but no call to a known tool
    "#]],
    );
}

#[test]
fn every_dialect_of_a_leaked_call_is_understood() {
    for text in [
        r#"{"name": "dig", "parameters": {"depth": 1}}"#,
        r#"```json⏎{"name": "dig", "arguments": {"depth": 1}}⏎```"#,
        r#"[TOOL_CALLS][{"name": "dig", "arguments": {"depth": 1}}]"#,
        r#"[TOOL_CALLS]dig[ARGS]{"depth": 1}"#,
        r#"<|python_tag|>{"name": "dig", "parameters": {"depth": 1}}"#,
        r#"functools[{"name": "dig", "arguments": {"depth": 1}}]"#,
        r#"<|tool_calls_section_begin|><|tool_call_begin|>functions.dig:0<|tool_call_argument_begin|>{"depth": 1}<|tool_call_end|><|tool_calls_section_end|>"#,
        r#"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>dig⏎```json⏎{"depth": 1}⏎```<｜tool▁call▁end｜><｜tool▁calls▁end｜>"#,
        r#"commentary to=functions.dig json{"depth": 1}"#,
        r#"<tool_call>⏎<function>dig</function>⏎{"depth": 1}⏎</tool_call>"#,
        "[dig(depth=1)]",
    ] {
        let events = read(Protocol::Native, &format!("say {text}\nfinish stop\n[DONE]"));
        assert_eq!(events, "calls 0 dig({\"depth\":1})\nend Some(ToolCalls)\n", "{text}");
    }
}

#[test]
fn a_call_that_begins_the_reply_is_out_when_it_closes() {
    for text in [
        r#"{"name": "dig", "arguments": {"depth": 1}}"#,
        r#"[{"name": "dig", "arguments": {"depth": 1}}]"#,
        "```json⏎{\"name\": \"dig\", \"arguments\": {\"depth\": 1}}⏎```",
    ] {
        let mut reader = reader(Protocol::Native);
        let said = shown(reader.push(body(&format!("say {text}")).as_bytes()));
        assert_eq!(said, "calls 0 dig({\"depth\":1})\n", "{text}");
        let rest = body("say  is under way.\nfinish stop\n[DONE]");
        let rest = shown(reader.push(rest.as_bytes()));
        assert_eq!(rest, "text is under way.\nend Some(ToolCalls)\n", "{text}");
    }
}

#[test]
fn an_answer_in_json_stays_an_answer() {
    for text in [
        r#"{"name": "Ada", "born": 1815}"#,
        r#"{"name": "dig"}"#,
        "[1, 2]",
        "```json⏎{\"a\": 1}⏎```",
        "```json⏎{\"name\": \"dig\", \"arguments\": {}} or so⏎```",
    ] {
        let events = read(Protocol::Native, &format!("say {text}\nfinish stop\n[DONE]"));
        assert_eq!(events, format!("text {text}\nend Some(Stop)\n"), "{text}");
    }
}

#[test]
fn the_xml_dialect_keeps_values_as_they_are() {
    let text = "say <tool_call>⏎<function=dig>⏎<parameter=note>⏎a <b> & </c>⏎⏎d⏎</parameter>⏎</function>⏎</tool_call>";
    check(
        &format!("{text}\nfinish stop\n[DONE]"),
        expect![[r#"
        calls 0 dig({"note":"a <b> & </c>\n\nd"})
        end Some(ToolCalls)
    "#]],
    );
}

#[test]
fn a_call_that_leaked_and_then_came_runs_once() {
    let lines = r#"
        say <tool_call>{"name":"dig","arguments":{"depth":1}}</tool_call>
        call {"index":0,"id":"a","function":{"name":"dig","arguments":"{\"depth\":1}"}}
        finish tool_calls
        [DONE]"#;
    check(
        lines,
        expect![[r#"
            calls 0 dig({"depth":1})
            end Some(ToolCalls)
        "#]],
    );
}

//! Stories: chunks of a reply in, events out. Each provider habit has one.

use expect_test::{Expect, expect};
use model_openai::reader::{EndOfBody, Reader, ReaderConfig, Signal, Silence, Think, Tools};
use proto::agent::Protocol;
use proto::model::{ModelError, ModelErrorKind, ModelEvent};

/// A reader that knows the tools `dig`, `fill`, `fill_all` and `tick`.
pub(crate) fn reader(protocol: Protocol) -> Reader {
    let tools = Tools::named(["dig", "fill", "fill_all", "tick"]);
    Reader::new(ReaderConfig { protocol, tools, think: Think::Tagged })
}

/// Signals as lines, neighbouring pieces of text joined.
pub(crate) fn shown(signals: Vec<Signal>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for signal in signals {
        let line = line(signal);
        let joins = ["text ", "thinks "].iter().find(|kind| line.starts_with(**kind));
        match (joins, lines.last_mut()) {
            (Some(kind), Some(last)) if last.starts_with(kind) => {
                last.push_str(&line[kind.len()..]);
            }
            _ => lines.push(line),
        }
    }
    lines.push(String::new());
    lines.iter().map(|line| line.replace('\n', "⏎")).collect::<Vec<_>>().join("\n")
}

fn line(signal: Signal) -> String {
    match signal {
        Ok(ModelEvent::Text { delta }) => format!("text {delta}"),
        Ok(ModelEvent::Reasoning { delta }) => format!("thinks {delta}"),
        Ok(ModelEvent::CallStarted { position, name }) => format!("begins {position} {name}"),
        Ok(ModelEvent::CallReady(call)) => {
            let opaque = call.opaque.map(|opaque| format!(" with {opaque}")).unwrap_or_default();
            let arguments = serde_json::Value::Object(call.arguments);
            format!("calls {} {}({arguments}){opaque}", call.position, call.name)
        }
        Ok(ModelEvent::CallBroken(call)) => {
            format!("broken {} {} {:?}: {}", call.position, call.name, call.raw, call.problem)
        }
        Ok(ModelEvent::End(end)) => {
            let opaque = end.opaque.map(|opaque| format!(" with {opaque}")).unwrap_or_default();
            let answer = end.answer.map(|answer| format!(" answer {answer}")).unwrap_or_default();
            format!("end {:?}{opaque}{answer}", end.finish)
        }
        Err(ModelError { kind, retryable, message, .. }) => {
            format!("{kind:?} retryable={retryable}: {message}")
        }
    }
}

/// A line per event: a delta, `finish WORD`, or a payload as it is.
fn body(lines: &str) -> String {
    let event = |line: &str| {
        let payload = match line.split_once(' ') {
            Some(("finish", word)) => {
                format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{word}"}}]}}"#)
            }
            Some(("delta", delta)) => format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#),
            Some(("call", call)) => {
                format!(r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{call}]}}}}]}}"#)
            }
            Some(("say", text)) => {
                let text = serde_json::Value::from(text.replace('⏎', "\n"));
                format!(r#"{{"choices":[{{"index":0,"delta":{{"content":{text}}}}}]}}"#)
            }
            _ => line.to_owned(),
        };
        format!("data: {payload}\n\n")
    };
    lines.lines().map(str::trim_start).filter(|line| !line.is_empty()).map(event).collect()
}

fn read(protocol: Protocol, lines: &str) -> String {
    let mut reader = reader(protocol);
    let mut signals = reader.push(body(lines).as_bytes());
    signals.extend(reader.end(&EndOfBody::Clean));
    shown(signals)
}

#[expect(clippy::needless_pass_by_value, reason = "expect! makes values")]
fn check(lines: &str, expected: Expect) {
    expected.assert_eq(&read(Protocol::Native, lines));
}

#[expect(clippy::needless_pass_by_value, reason = "expect! makes values")]
fn check_contract(lines: &str, expected: Expect) {
    expected.assert_eq(&read(Protocol::Contract, lines));
}

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
fn arguments_after_an_early_finish_still_count() {
    let lines = r#"
        call {"index":0,"id":"a","function":{"name":"dig","arguments":""}}
        finish tool_calls
        call {"index":0,"function":{"arguments":"{\"depth\":1}"}}
        finish stop
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
fn a_reply_at_its_limit_keeps_what_is_complete_and_runs_nothing_else() {
    let lines = r#"
        call {"index":0,"id":"a","function":{"name":"dig","arguments":"{\"depth\":1}"}}
        call {"index":1,"id":"b","function":{"name":"tick","arguments":"{}"}}
        finish length
        [DONE]"#;
    check(
        lines,
        expect![[r#"
        begins 0 dig
        calls 0 dig({"depth":1})
        begins 1 tick
        broken 1 tick "{}": the reply was cut off before the call was complete
        Length retryable=true: the reply ran into its token limit
    "#]],
    );
    check(
        "say half an ans\nfinish length\n[DONE]",
        expect![[r"
        text half an ans
        end Some(Length)
    "]],
    );
}

#[test]
fn a_body_that_just_ends_was_cut() {
    let lines = r#"
        say Half a
        call {"index":0,"id":"a","function":{"name":"dig","arguments":"{\"depth\":1}"}}"#;
    check(
        lines,
        expect![[r#"
        text Half a
        begins 0 dig
        calls 0 dig({"depth":1})
        Truncated retryable=true: the body ended without a finish reason or an end mark
    "#]],
    );
    check(
        "",
        expect![[r"
        Truncated retryable=true: the body ended without a finish reason or an end mark
    "]],
    );
}

#[test]
fn errors_inside_a_good_status_are_errors() {
    check(
        r#"{"error":{"message":"too busy","code":503}}"#,
        expect![[r"
        ProviderError retryable=true: too busy
    "]],
    );
    check(
        r#"{"error":"gone"}"#,
        expect![[r"
        ProviderError retryable=true: gone
    "]],
    );
    check(
        "say It is\nfinish network_error",
        expect![[r"
        text It is
        ProviderError retryable=true: the provider ended the reply with network_error
    "]],
    );
    check(
        "finish stop\n[DONE]",
        expect![[r"
        EmptyResponse retryable=true: the model answered nothing
    "]],
    );
    check(
        "say x\nfinish content_filter\n[DONE]",
        expect![[r"
        text x
        ContentFilter retryable=false: the provider's filter cut the reply
    "]],
    );
    check(
        "say x\n{\"choices\":[{\"delta\":{\"cont",
        expect![[r"
        text x
        MalformedChunk retryable=true: a piece of the stream is not JSON
    "]],
    );
}

#[test]
fn thoughts_and_provider_fields_are_kept_apart_and_kept() {
    let lines = r#"
        delta {"reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm"}]}
        delta {"content":[{"type":"thinking","thinking":[{"text":"?"}]},{"type":"text","text":"Yes."}]}
        call {"index":0,"id":"a","function":{"name":"dig","arguments":{"depth":1}},"extra_content":{"s":1}}
        finish tool_calls
        [DONE]"#;
    check(
        lines,
        expect![[r#"
        thinks Hm?
        text Yes.
        begins 0 dig
        calls 0 dig({"depth":1}) with {"extra_content":{"s":1}}
        end Some(ToolCalls) with {"reasoning":"Hm","reasoning_details":[{"text":"Hm","type":"reasoning.text"}]}
    "#]],
    );
    check(
        "say <think>⏎quiet</think>⏎⏎Loud.\nfinish stop\n[DONE]",
        expect![[r"
        thinks quiet
        text Loud.
        end Some(Stop)
    "]],
    );
    check(
        r#"delta {"refusal":"No."}"#,
        expect![[r"
        text No.
        Truncated retryable=true: the body ended without a finish reason or an end mark
    "]],
    );
}

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
fn a_call_is_out_before_the_next_byte() {
    let mut reader = reader(Protocol::Native);
    let head = r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"dig","arguments":"{\"depth\":1}"}}]}}]}"#;
    assert_eq!(shown(reader.push(head.as_bytes())), "");
    assert_eq!(shown(reader.push(b"\n")), "begins 0 dig\ncalls 0 dig({\"depth\":1})\n");
    assert_eq!((reader.chunks(), reader.saw_finish()), (1, false));
}

#[test]
fn silence_is_an_error_before_a_finish_reason_and_a_good_end_after_it() {
    let mut early = reader(Protocol::Native);
    early.push(body("say so").as_bytes());
    let late = "text so\nTimeout retryable=true: the model stopped answering\n";
    let mut signals = early.push(b": still there\n\n");
    assert_eq!(signals, []);
    signals = early.timeout(Silence::Idle);
    assert_eq!(format!("text so\n{}", shown(signals)), late);

    let mut after = reader(Protocol::Native);
    let text = after.push(body("say so\nfinish stop").as_bytes());
    assert_eq!(shown(text) + &shown(after.timeout(Silence::Idle)), "text so\nend Some(Stop)\n");
    assert!(after.is_over());
    assert_eq!(after.push(b"data: {}\n\n"), []);
}

#[test]
fn a_body_that_is_no_stream_is_told_apart() {
    let whole = r#"{"choices":[{"message":{"content":"Hi."},"finish_reason":"stop"}]}"#;
    for (text, expected) in [
        (whole, "text Hi.\nend Some(Stop)\n"),
        (r#"{"error":{"message":"no","code":401}}"#, "ProviderError retryable=false: no\n"),
        (
            "<html>",
            "BadResponse retryable=false: the endpoint answered with a page, not with a reply\n",
        ),
        (
            "upstream failed",
            "BadResponse retryable=true: the endpoint answered something that is no reply: upstream failed\n",
        ),
    ] {
        let mut reader = reader(Protocol::Native);
        let mut signals = reader.push(text.as_bytes());
        signals.extend(reader.end(&EndOfBody::Clean));
        assert_eq!(shown(signals), expected, "{text}");
    }
}

#[test]
fn a_lost_connection_is_a_cut_even_when_its_last_line_is_torn() {
    let mut reader = reader(Protocol::Native);
    reader.push(body("say so").as_bytes());
    reader.push(br#"data: {"choices":[{"delta":{"con"#);
    let signals = reader.end(&EndOfBody::Cut("reset".to_owned()));
    let kinds: Vec<_> =
        signals.iter().map(|signal| signal.as_ref().err().map(|error| error.kind)).collect();
    assert_eq!(kinds, [Some(ModelErrorKind::Truncated)]);
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

#[test]
fn a_whole_message_counts_only_when_nothing_was_streamed() {
    let message = r#"{"choices":[{"message":{"content":"Hi.","tool_calls":[{"id":"a","function":{"name":"dig","arguments":"{\"depth\":1}"}}]},"finish_reason":"stop"}]}"#;
    check(
        &format!("{message}\n[DONE]"),
        expect![[r#"
        text Hi.
        begins 0 dig
        calls 0 dig({"depth":1})
        end Some(ToolCalls)
    "#]],
    );
    check(
        &format!("say Hi.\n{message}\n[DONE]"),
        expect![[r"
        text Hi.
        end Some(Stop)
    "]],
    );
}

#[test]
fn pieces_that_are_nearly_json_are_read() {
    let lines = r#"
        {"choices":[{"delta":{"content":"a","score":NaN}}]}
        {"choices":[{"delta":{"content":"\ud83d"}}]}
        {"choices":[{"delta":{"content":"\ude00b"}}]}
        {"choices":[{"delta":{"content":"\ud83dc"},"finish_reason":"stop"}]}
        [DONE]"#;
    check(
        lines,
        expect![[r"
        text a😀b�c
        end Some(Stop)
    "]],
    );
}

#[test]
fn only_the_first_choice_is_read() {
    let lines = r#"
        {"choices":[{"index":1,"delta":{"content":"B"},"finish_reason":"length"}]}
        {"choices":[{"index":"0","delta":{"content":"A"}},{"index":1,"delta":{"content":"B"}}]}
        {"choices":[{"index":0,"delta":null,"finish_reason":"stop"}]}
        [DONE]"#;
    check(
        lines,
        expect![[r"
        text A
        end Some(Stop)
    "]],
    );
}

#[test]
fn a_failure_behind_a_good_word_is_a_failure() {
    let lines = r#"{"choices":[{"delta":{"content":""},"finish_reason":"stop","native_finish_reason":"MALFORMED_FUNCTION_CALL"}]}"#;
    check(
        lines,
        expect![[r"
        ProviderError retryable=true: the provider ended the reply with MALFORMED_FUNCTION_CALL
    "]],
    );
}

#[test]
fn usage_and_model_are_taken_from_wherever_they_come() {
    let lines = r#"
        {"model":"m-1","choices":[{"delta":{"content":"x"},"finish_reason":"stop"}],"usage":{}}
        {"model":"","choices":[],"usage":{"prompt_tokens":4.0,"completion_tokens":2,"total_tokens":null}}
        [DONE]"#;
    let mut reader = reader(Protocol::Native);
    let end = reader.push(body(lines).as_bytes()).pop().unwrap().unwrap();
    let ModelEvent::End(end) = end else { panic!("no end") };
    let usage = end.usage.map(|usage| (usage.prompt_tokens, usage.completion_tokens));
    assert_eq!((end.model.as_deref(), usage), (Some("m-1"), Some((4, 2))));
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

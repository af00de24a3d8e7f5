//! How replies end, and what comes with them.

use expect_test::expect;
use model_openai::reader::EndOfBody;
use proto::agent::Protocol;
use proto::model::{ModelErrorKind, ModelEvent};
use proto::notice::Deadline;

use super::{body, check, reader, shown};

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
fn silence_is_an_error_before_a_finish_reason_and_a_good_end_after_it() {
    let mut early = reader(Protocol::Native);
    early.push(body("say so").as_bytes());
    let late = "text so\nTimeout(Idle) retryable=true: the model stopped answering\n";
    let mut signals = early.push(b": still there\n\n");
    assert_eq!(signals, []);
    signals = early.timeout(Deadline::Idle);
    assert_eq!(format!("text so\n{}", shown(signals)), late);

    let mut after = reader(Protocol::Native);
    let text = after.push(body("say so\nfinish stop").as_bytes());
    assert_eq!(shown(text) + &shown(after.timeout(Deadline::Idle)), "text so\nend Some(Stop)\n");
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

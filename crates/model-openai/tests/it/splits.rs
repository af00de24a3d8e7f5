//! Properties: where bytes are cut, what noise they are, how many they are.

use std::time::Duration;

use model_openai::reader::EndOfBody;
use proptest::prelude::*;
use proto::agent::Protocol;
use serde_json::{Value, json};

use crate::reader::{reader, shown};

/// Bodies of many habits, made of parts that a seed chooses.
fn bodies() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        Just("plain words, ".to_owned()),
        Just("<think>a thought</think> é😀 ".to_owned()),
        Just("`<tool_call>` ".to_owned()),
        Just("<tool_call>{\"name\":\"dig\",\"arguments\":{\"depth\":1}}</tool_call>".to_owned()),
        Just("{\"reasoning\":\"x\\u00e9\",\"tool_calls\":[{\"name\":\"dig\",\"arguments\":{\"a\":\"}\"}}]}".to_owned()),
        ".{0,12}",
    ];
    let said = text.prop_map(|text| json!({"content": text}));
    let call = (
        0..3_u8,
        any::<bool>(),
        prop_oneof![Just("{\"a\":\"x}\"}"), Just("{\"a\":"), Just("1}"), Just("{}")],
    );
    let called = call.prop_map(|(index, has_name, arguments)| {
        let mut function = json!({"arguments": arguments});
        if has_name {
            function["name"] = json!("dig");
        }
        json!({"tool_calls": [{"index": index, "function": function}]})
    });
    let delta = prop_oneof![said, called];
    let ends = prop_oneof![Just("\n"), Just("\r\n"), Just("\r")];
    let lasts = prop_oneof![
        Just("[DONE]"),
        Just(""),
        Just("{\"choices\":[{\"finish_reason\":\"length\"}]}")
    ];
    (prop::collection::vec(delta, 0..8), ends, lasts).prop_map(|(deltas, end, last)| {
        let chunk = |delta: &Value| json!({"choices": [{"delta": delta}]}).to_string();
        let payloads = deltas.iter().map(chunk).chain([last.to_owned()]);
        let events = payloads.map(|payload| format!("data: {payload}{end}{end}"));
        events.collect::<Vec<_>>().concat()
    })
}

fn outcome(protocol: Protocol, segments: &[&[u8]]) -> String {
    let mut reader = reader(protocol);
    let mut signals: Vec<_> = segments.iter().flat_map(|bytes| reader.push(bytes)).collect();
    signals.extend(reader.end(&EndOfBody::Clean));
    shown(signals)
}

fn cut<'b>(body: &'b [u8], lengths: &[usize]) -> Vec<&'b [u8]> {
    let mut rest = body;
    let mut segments = Vec::new();
    for length in lengths {
        let (head, tail) = rest.split_at((*length).min(rest.len()));
        segments.push(head);
        rest = tail;
    }
    segments.push(rest);
    segments
}

proptest! {
    #[test]
    fn where_bytes_are_cut_changes_nothing(body in bodies(), lengths in prop::collection::vec(0..40_usize, 0..60)) {
        for protocol in [Protocol::Native, Protocol::Contract] {
            let whole = outcome(protocol, &[body.as_bytes()]);
            prop_assert_eq!(&outcome(protocol, &cut(body.as_bytes(), &lengths)), &whole);
        }
    }

    #[test]
    fn whatever_comes_there_is_one_end_and_nothing_behind_it(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for start in ["", "data: ", "{", "data: {\"choices\":[{\"delta\":{\"content\":\""] {
            let body = [start.as_bytes(), &bytes].concat();
            let shown = outcome(Protocol::Native, &[&body]);
            let ends = shown.lines().filter(|line| line.starts_with("end ") || line.contains(" retryable=")).count();
            prop_assert_eq!(ends, 1, "{}", shown);
        }
    }
}

/// A body whose one call has arguments of so many pieces.
fn long(pieces: usize, piece: &str) -> String {
    let head = json!({"choices": [{"delta": {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "dig", "arguments": "{\"a\":\""}}]}}]});
    let chunk = |arguments: &str| {
        let call = json!({"index": 0, "function": {"arguments": arguments}});
        format!("data: {}\n\n", json!({"choices": [{"delta": {"tool_calls": [call]}}]}))
    };
    format!("data: {head}\n\n{}{}data: [DONE]\n\n", chunk(piece).repeat(pieces), chunk("\"}"))
}

/// Processor time of this thread: on a busy machine the clock tells how busy it is.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split_whitespace().next().unwrap().parse().unwrap())
}

fn spent(protocol: Protocol, body: &str) -> Duration {
    let began = processor_time();
    let mut reader = reader(protocol);
    for bytes in body.as_bytes().chunks(1000) {
        reader.push(bytes);
    }
    assert!(reader.is_over());
    processor_time().saturating_sub(began)
}

/// Ten times the bytes may take ten times the time, and some for caches that others use too.
fn is_linear(protocol: Protocol, what: &str, body: impl Fn(usize) -> String) {
    let (small, large) = (spent(protocol, &body(1)), spent(protocol, &body(10)));
    let most = small * 30 + Duration::from_millis(300);
    assert!(large < most, "{what}: {small:?} for a tenth, {large:?} for all");
}

#[test]
fn ten_megabytes_of_arguments_take_linear_time() {
    let piece = "0123456789".repeat(100);
    is_linear(Protocol::Native, "arguments", |times| long(times * 1_000, &piece));
}

#[test]
fn long_text_of_any_shape_takes_linear_time() {
    let said = |head: &str, piece: &str, times: usize| {
        let chunk = |text: &str| {
            format!("data: {}\n\n", json!({"choices": [{"delta": {"content": text}}]}))
        };
        format!("{}{}data: [DONE]\n\n", chunk(head), chunk(piece).repeat(times * 2_000))
    };
    for (head, piece) in [
        ("", "some words, "),
        ("", " "),
        ("<think>", " "),
        ("<think>", "</thin"),
        ("", "`"),
        ("", "<tool_call>"),
        ("<tool_call>{\"name\":\"dig\",\"arguments\":{\"a\":\"", "x}"),
        ("<function=dig><parameter=a>", "</function>"),
        ("{\"name\":\"dig\",\"arguments\":{\"a\":\"", "x}"),
        ("{\"name\":\"dig\",\"arguments\":{}}", " "),
        ("[dig(a='", "x)"),
        ("{\"reasoning\":\"", "why "),
        ("{\"tool_calls\":[{\"name\":\"dig\",\"arguments\":{\"a\":\"", "x}"),
        ("{\"tool_calls\":[", "{\"name\":\"tick\"},"),
        ("", "{\"a\":["),
    ] {
        for protocol in [Protocol::Native, Protocol::Contract] {
            let what = format!("{protocol:?} {head}{piece}");
            is_linear(protocol, &what, |times| said(head, piece, times));
        }
    }
}

#[test]
fn long_reasoning_under_the_contract_takes_linear_time() {
    let body = |times: usize| {
        let chunk = |text: &str| {
            format!("data: {}\n\n", json!({"choices": [{"delta": {"reasoning": text}}]}))
        };
        format!("{}{}data: [DONE]\n\n", chunk("{\"x\":\""), chunk("y").repeat(times * 4_000))
    };
    is_linear(Protocol::Contract, "reasoning", body);
}

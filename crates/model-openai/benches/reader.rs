//! How long the reader takes: for a chunk as providers send it, and for very long arguments.
//! `cargo bench -p model-openai --bench reader`; the numbers seen are in `docs/bench.md`.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use model_openai::reader::{EndOfBody, Reader, ReaderConfig, Think, Tools};
use proto::agent::Protocol;
use serde_json::{Value, json};

/// Chunks of one reply, so that beginning and end weigh little.
const CHUNKS: usize = 1000;
/// A piece of very long arguments, and how many of them make ten megabytes.
const PIECE: usize = 1000;
const PIECES: usize = 10_000;

fn reader(protocol: Protocol) -> Reader {
    Reader::new(ReaderConfig { protocol, tools: Tools::named(["dig"]), think: Think::Tagged })
}

/// A chunk with all the fields that providers send along.
fn chunk(delta: &Value) -> String {
    let chunk = json!({
        "id": "chatcmpl-8f3c1e0b7a5d4c2f", "object": "chat.completion.chunk",
        "created": 1_767_225_600, "model": "gpt-5-mini-2026-01-01", "service_tier": "default",
        "system_fingerprint": "fp_44709d6fcb",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}],
        "usage": null,
    });
    format!("data: {chunk}\n\n")
}

fn arguments(text: &str) -> Value {
    json!({"tool_calls": [{"index": 0, "function": {"arguments": text}}]})
}

fn opened() -> String {
    let function = json!({"name": "dig", "arguments": "{\"note\":\""});
    let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
    chunk(&json!({"tool_calls": [call]}))
}

/// Reads a body in one segment a chunk, as it comes off the wire.
fn read(protocol: Protocol, chunks: &[String]) -> usize {
    let mut reader = reader(protocol);
    let events = chunks.iter().map(|chunk| reader.push(chunk.as_bytes()).len());
    let events: usize = events.sum();
    events.saturating_add(reader.end(&EndOfBody::Clean).len())
}

fn a_chunk(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a chunk");
    group.throughput(Throughput::Elements(u64::try_from(CHUNKS).unwrap_or(0)));
    let text = chunk(&json!({"content": " the next word"}));
    let thought = chunk(&json!({"reasoning_content": " a thought"}));
    let piece = chunk(&arguments("so \\\"deep\\\" "));
    let object = chunk(&json!({"content": "it is deep, "}));
    let begun = chunk(&json!({"content": "{\"reasoning\":\""}));
    for (name, protocol, head, chunk) in [
        ("of text", Protocol::Native, None, &text),
        ("of a thought", Protocol::Native, None, &thought),
        ("of arguments", Protocol::Native, Some(opened()), &piece),
        ("of a contract", Protocol::Contract, Some(begun), &object),
    ] {
        let more = std::iter::repeat_n(chunk.clone(), CHUNKS);
        let chunks: Vec<String> = head.into_iter().chain(more).collect();
        group.bench_function(name, |bencher| {
            bencher.iter(|| read(protocol, black_box(&chunks)));
        });
    }
    group.finish();
}

fn long_arguments(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("long arguments");
    group.sample_size(10);
    for pieces in [PIECES / 10, PIECES] {
        let bytes = pieces.saturating_mul(PIECE);
        group.throughput(Throughput::Bytes(u64::try_from(bytes).unwrap_or(0)));
        let more = std::iter::repeat_n(chunk(&arguments(&"0".repeat(PIECE))), pieces);
        let last = chunk(&arguments("\"}"));
        let chunks: Vec<String> = std::iter::once(opened()).chain(more).chain([last]).collect();
        group.bench_function(format!("{} MB", bytes / 1_000_000), |bencher| {
            bencher.iter(|| read(Protocol::Native, black_box(&chunks)));
        });
    }
    group.finish();
}

criterion_group!(benches, a_chunk, long_arguments);
criterion_main!(benches);

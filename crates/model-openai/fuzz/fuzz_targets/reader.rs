//! Any bytes are a body. Whatever they are: no panic, one end and nothing behind it, and where they
//! are cut changes nothing.

#![no_main]

#[expect(dead_code, reason = "its crate uses more of it than this target does")]
#[path = "../../src/reader/mod.rs"]
mod reader;

use libfuzzer_sys::fuzz_target;
use proto::agent::Protocol;
use proto::model::ModelEvent;

use reader::{EndOfBody, Reader, ReaderConfig, Signal, Think, Tools};

/// Names that occur in the recordings, so that calls are found in them.
const TOOLS: [&str; 4] = ["get_weather", "get_time", "write_file", "run_shell"];

fuzz_target!(|body: &[u8]| {
    for protocol in [Protocol::Native, Protocol::Contract] {
        for think in [Think::Tagged, Think::Prefilled] {
            let config = ReaderConfig { protocol, tools: Tools::named(TOOLS), think };
            let whole = read(&config, &[body]);
            let ends = whole.iter().filter(|signal| is_end(signal)).count();
            assert_eq!(ends, 1, "one end: {whole:?}");
            assert!(whole.last().is_some_and(is_end), "nothing behind the end: {whole:?}");
            assert_eq!(read(&config, &pieces(body)), whole, "cuts change the outcome");
        }
    }
});

fn is_end(signal: &Signal) -> bool {
    matches!(signal, Err(_) | Ok(ModelEvent::End(_)))
}

/// Cuts that the bytes themselves choose, so that an input always does the same.
fn pieces(body: &[u8]) -> Vec<&[u8]> {
    let mut state = body.iter().fold(17_usize, |state, byte| {
        state.wrapping_mul(31).wrapping_add(usize::from(*byte))
    });
    let mut rest = body;
    let mut pieces = Vec::new();
    while !rest.is_empty() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (head, tail) = rest.split_at(((state >> 33) % 48 + 1).min(rest.len()));
        pieces.push(head);
        rest = tail;
    }
    pieces
}

/// The signals, with neighbouring pieces of text joined.
fn read(config: &ReaderConfig, segments: &[&[u8]]) -> Vec<Signal> {
    let mut reader = Reader::new(config.clone());
    let mut signals: Vec<Signal> = segments.iter().flat_map(|bytes| reader.push(bytes)).collect();
    signals.extend(reader.end(&EndOfBody::Clean));
    let mut joined: Vec<Signal> = Vec::new();
    for signal in signals {
        match (joined.last_mut(), signal) {
            (Some(Ok(ModelEvent::Text { delta: said })), Ok(ModelEvent::Text { delta }))
            | (
                Some(Ok(ModelEvent::Reasoning { delta: said })),
                Ok(ModelEvent::Reasoning { delta }),
            ) => said.push_str(&delta),
            (_, signal) => joined.push(signal),
        }
    }
    joined
}

//! Cuts the bytes of a body anywhere and reads it with the pure reader: the outcome stays.

use model_openai::reader::{EndOfBody, Reader, ReaderConfig, Signal, Think, Tools};
use proto::model::ModelEvent;

use crate::case::{Case, Corpus};

const ROUNDS: u64 = 24;

/// Checks a case; answers what is wrong.
pub(crate) fn check(corpus: &Corpus, case: &Case) -> Vec<String> {
    let mut problems = Vec::new();
    if case.status.is_some_and(|status| status != 200) {
        return problems;
    }
    for file in case.files() {
        let body = corpus.body(&file);
        let whole = read(case, &[&body]);
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        if read(case, &bytes) != whole {
            problems.push("single bytes change the outcome".to_owned());
        }
        for seed in 0..ROUNDS {
            let mut random = fastrand::Rng::with_seed(seed);
            if read(case, &cut(&body, &mut random)) != whole {
                problems.push(format!("cuts of seed {seed} change the outcome"));
            }
        }
    }
    problems
}

fn cut<'b>(body: &'b [u8], random: &mut fastrand::Rng) -> Vec<&'b [u8]> {
    let longest = random.usize(1..400);
    let mut rest = body;
    let mut segments = Vec::new();
    while !rest.is_empty() {
        let (head, tail) = rest.split_at(random.usize(1..=longest).min(rest.len()));
        segments.push(head);
        rest = tail;
    }
    segments
}

/// The signals, with neighbouring pieces of text joined.
fn read(case: &Case, segments: &[&[u8]]) -> Vec<Signal> {
    let mut reader = Reader::new(ReaderConfig {
        protocol: case.protocol(),
        tools: Tools::named(case.tools.iter().cloned()),
        think: Think::Tagged,
    });
    let mut signals: Vec<Signal> = segments.iter().flat_map(|bytes| reader.push(bytes)).collect();
    signals.extend(reader.end(&EndOfBody::Clean));
    let mut joined: Vec<Signal> = Vec::new();
    for signal in signals {
        let is_more = match (joined.last_mut(), &signal) {
            (Some(Ok(last)), Ok(next)) => extend(last, next),
            (Some(_) | None, _) => false,
        };
        if !is_more {
            joined.push(signal);
        }
    }
    joined
}

/// Appends a piece of text to the last one of its kind.
fn extend(last: &mut ModelEvent, next: &ModelEvent) -> bool {
    match (last, next) {
        (ModelEvent::Text { delta: said }, ModelEvent::Text { delta })
        | (ModelEvent::Reasoning { delta: said }, ModelEvent::Reasoning { delta }) => {
            said.push_str(delta);
            true
        }
        _ => false,
    }
}

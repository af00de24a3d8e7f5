//! Serves recorded streams over real HTTP and checks what the real client makes of them.
//!
//! `cargo run -p model-openai --example streams -- DIR [PART]…` reads `DIR/index.json` and its
//! bodies, runs the cases whose id holds a PART (all without one), prints a line per failure and
//! ends with `N passed, N failed`.

#![expect(clippy::print_stdout, reason = "its output is its purpose")]

mod case; // the index
mod check; // outcome against expectation
mod next_request; // the request that follows
mod run; // one case
mod server; // bodies, cut and held as the case says
mod splits; // random cuts through the pure reader

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use futures_util::{StreamExt as _, stream};

/// Cases that run at once.
const AT_ONCE: usize = 24;

// One thread: a case must not wait for the scheduler of a busy machine between two segments.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    rustls::crypto::ring::default_provider().install_default().ok();
    let mut args = std::env::args_os().skip(1);
    let folder = PathBuf::from(args.next().context("usage: streams DIR [PART]…")?);
    let parts: Vec<String> = args.map(|part| part.to_string_lossy().into_owned()).collect();
    let corpus = Arc::new(case::Corpus::load(&folder)?);
    let is_wanted = |id: &str| parts.is_empty() || parts.iter().any(|part| id.contains(part));
    let wanted: Vec<usize> = corpus
        .cases
        .iter()
        .enumerate()
        .filter(|(_, case)| is_wanted(&case.id))
        .map(|(at, _)| at)
        .collect();
    let mut results: Vec<(usize, Vec<String>)> = stream::iter(wanted)
        .map(|at| {
            let corpus = Arc::clone(&corpus);
            async move { (at, run::case(&corpus, at).await) }
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    results.sort();
    // The pure reader comes last: it would keep the sockets waiting.
    for (at, problems) in &mut results {
        problems.extend(
            corpus.cases.get(*at).map(|case| splits::check(&corpus, case)).unwrap_or_default(),
        );
    }
    let mut failed = 0;
    for (at, problems) in &results {
        failed += usize::from(!problems.is_empty());
        let id = corpus.cases.get(*at).map_or("", |case| case.id.as_str());
        if !problems.is_empty() {
            println!("FAILED {id}: {}", problems.join("; "));
        }
    }
    println!("{} passed, {failed} failed", results.len() - failed);
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

//! What files may say, and what is told about those that say it wrongly.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

mod advice;
mod agents;
mod documents;
mod http;
mod manifests;
mod mcp;
mod openapi;
mod slips;

use std::path::Path;

use definitions::manifest::Manifest;
use definitions::problem::Problem;
use definitions::run::{Surroundings, Unset};

fn manifest(text: &str) -> Result<Manifest, Vec<Problem>> {
    let variable = |name: &str| (name == "NOTES").then(|| "/notes".to_owned());
    let around = Surroundings {
        folder: Path::new("/agents/ops"),
        variable: &variable,
        unset: Unset::Problem,
        document: &shop,
    };
    Manifest::parse("tools.yaml", text, &around)
}

/// The description that examples name.
fn shop(path: &Path) -> Result<String, String> {
    let is_it = path == Path::new("/agents/ops/shop.yaml");
    let text = include_str!("../../fixtures/shop.yaml");
    if is_it { Ok(text.to_owned()) } else { Err("there is no such file".to_owned()) }
}

fn told(problems: &[Problem]) -> String {
    lines(problems)
}

fn lines<T: ToString>(items: &[T]) -> String {
    let lines: Vec<String> = items.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

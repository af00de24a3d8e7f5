//! What files may say, and what is told about those that say it wrongly.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

mod advice;
mod agents;
mod documents;
mod http;
mod manifests;
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
    };
    Manifest::parse("tools.yaml", text, &around)
}

fn told(problems: &[Problem]) -> String {
    lines(problems)
}

fn lines<T: ToString>(items: &[T]) -> String {
    let lines: Vec<String> = items.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

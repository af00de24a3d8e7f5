//! `systole tools import`: a tool file for review, from a description of an API or from an MCP server.
//!
//! What is written is complete: description, parameters and effect of each tool stand in the file, so
//! that what was reviewed is what runs. The same import writes the same file.

mod mcp;
mod openapi;
mod yaml;

use std::fs;
use std::io;
use std::path::Path;

use super::{Context, print};
use crate::arguments::{Import, Written};
use crate::failure::{Exit, Failure};
use crate::screen::summary::counted;

/// Imports, writes, and says what to do next.
pub(crate) async fn import(context: &Context, from: &Import) -> Result<Exit, Failure> {
    match from {
        Import::Openapi(asked) => {
            let draft = openapi::draft(asked).await?;
            write(&asked.written, &draft)
        }
        Import::Mcp(asked) => {
            let draft = mcp::draft(context, asked).await?;
            write(&asked.written, &draft)
        }
    }
}

/// A tool file that is not written yet.
struct Draft {
    text: String,
    tools: usize,
    /// What is not in it, with the reason.
    left_out: Vec<String>,
}

/// The most reasons that are told one by one.
const MOST_REASONS: usize = 20;

fn write(written: &Written, draft: &Draft) -> Result<Exit, Failure> {
    if draft.tools == 0 {
        let mut failure = Failure::input("nothing that could be a tool was found");
        failure.lines.extend(draft.left_out.iter().take(MOST_REASONS).cloned());
        return Err(failure);
    }
    if written.out == Path::new("-") {
        print(&draft.text)?;
        return Ok(Exit::Done);
    }
    let path = &written.out;
    let known = match fs::read_to_string(path) {
        Ok(text) => Some(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Failure::input(format!("{}: {error}", path.display()))),
    };
    let what = match known {
        Some(text) if text == draft.text => "is up to date",
        Some(_) if !written.force => {
            let why = format!("{} is there and says something else", path.display());
            return Err(Failure::input(why).and(
                "Write somewhere else with --out, or over it with --force; `--out -` only shows it.",
            ));
        }
        Some(_) | None => {
            fs::write(path, &draft.text)
                .map_err(|error| Failure::input(format!("{}: {error}", path.display())))?;
            "is written"
        }
    };
    print(&told(path, what, draft))?;
    Ok(Exit::Done)
}

fn told(path: &Path, what: &str, draft: &Draft) -> String {
    let count = u64::try_from(draft.tools).unwrap_or(u64::MAX);
    let mut lines = vec![format!("{} {what}: {}", path.display(), counted(count, "tool"))];
    let reasons = draft.left_out.iter().take(MOST_REASONS);
    lines.extend(reasons.map(|reason| format!("left out: {reason}")));
    let more = draft.left_out.len().saturating_sub(MOST_REASONS);
    if more > 0 {
        lines.push(format!("left out: {more} more"));
    }
    lines.push(format!(
        "Read it before you use it, then: systole tools check {}",
        crate::shell::word(path)
    ));
    lines.join("\n") + "\n"
}

//! `systole drill`.

use std::io::{self, Write};
use std::path::PathBuf;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::cell::{self, Outcome};
use super::cells::{self, Cell};
use super::fault::{self, Fault};
use super::report::{matrix, page};
use super::servers::Programs;
use crate::arguments::Drill;
use crate::commands::Context;
use crate::failure::{Exit, Failure};

/// Runs the cells and prints the matrix.
pub(crate) async fn drill(context: &Context, asked: &Drill) -> Result<Exit, Failure> {
    let programs = Programs::find(&context.environment)?;
    let only = asked.only.as_deref();
    let cells = cells::all(only).into_iter().map(Row::Cell);
    let rows: Vec<Row> = cells.chain(fault::all(only).into_iter().map(Row::Fault)).collect();
    if rows.is_empty() {
        return Err(Failure::not_found("no cell has that in its name"));
    }
    let threads = asked.threads.unwrap_or(if asked.short { 3 } else { 20 });
    let base = std::env::temp_dir().join(format!("systole-drill-{}", std::process::id()));
    let run = |(number, row): (usize, Row)| {
        let (programs, folder) = (programs.clone(), base.join(format!("{number}")));
        async move { row.run(&programs, threads, folder).await }
    };
    let jobs = asked.jobs.max(1);
    let mut running = stream::iter(rows.into_iter().enumerate().map(run)).buffered(jobs);
    let mut outcomes = Vec::new();
    while let Some(done) = running.next().await {
        let outcome = done?;
        tell(asked, &outcome);
        outcomes.push(outcome);
    }
    let good = outcomes.iter().all(Outcome::is_good);
    print(asked, &outcomes)?;
    if good {
        // Empty by now; what cannot be removed is the system's to clean.
        std::fs::remove_dir_all(&base).unwrap_or_default();
    } else {
        tracing::warn!(folder = %base.display(), "logs of the cells that went wrong are kept");
    }
    Ok(if good { Exit::Done } else { Exit::Failed })
}

/// One row of the matrix.
#[derive(Clone, Copy)]
enum Row {
    Cell(Cell),
    Fault(Fault),
}

impl Row {
    async fn run(
        self,
        programs: &Programs,
        threads: usize,
        folder: PathBuf,
    ) -> Result<Outcome, Failure> {
        let (name, done) = match self {
            Self::Cell(cell) => {
                (cell.to_string(), cell::run(programs, cell, threads, folder).await)
            }
            Self::Fault(fault) => {
                (fault.to_string(), fault::run(programs, fault, threads, folder).await)
            }
        };
        done.map_err(|failure| failure.and(format!("This was the row {name}.")))
    }
}

/// A line as soon as a cell is over.
fn tell(asked: &Drill, outcome: &Outcome) {
    if asked.json {
        return;
    }
    let word = if outcome.is_good() { "ok" } else { "BROKEN" };
    let line = format!("{word:6} {} ({} ms)", outcome.cell, outcome.recovered_ms);
    writeln!(io::stderr(), "{line}").unwrap_or_default();
    for violation in &outcome.counts.violations {
        writeln!(io::stderr(), "       {violation}").unwrap_or_default();
    }
}

fn print(asked: &Drill, outcomes: &[Outcome]) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::other("the matrix", error);
    let json = serde_json::to_string_pretty(outcomes)
        .map_err(|error| Failure::other("the matrix", error))?;
    let text = if asked.json { format!("{json}\n") } else { matrix(outcomes) };
    // Nobody may be reading any more; the exit code tells.
    io::stdout().write_all(text.as_bytes()).unwrap_or_default();
    if let Some(folder) = &asked.write {
        let place = |name: &str| -> PathBuf { folder.join(name) };
        std::fs::write(place("crash-matrix.md"), page(outcomes)).map_err(failed)?;
        std::fs::write(place("crash-matrix.json"), format!("{json}\n")).map_err(failed)?;
    }
    Ok(())
}

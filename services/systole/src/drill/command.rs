//! `systole drill`.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::cell::{self, Load};
use super::cells::{self, Cell, Hit};
use super::fault::{self, Fault};
use super::report::{matrix, page};
use super::servers::Programs;
use super::stage::Outcome;
use crate::arguments::Drill;
use crate::commands::Context;
use crate::failure::{Exit, Failure};
use crate::nodes::kill::KillPoint;

/// What is under way in each row of the short form, and of the full one.
const SHORT: Load = Load { threads: 3, kills: 1, turns: 60 };
const FULL: Load = Load { threads: 20, kills: 100, turns: 1000 };

/// Runs the rows and prints the matrix.
pub(crate) async fn drill(context: &Context, asked: &Drill) -> Result<Exit, Failure> {
    let programs = Programs::find(&context.environment)?;
    let mut rows = rows(asked.only.as_deref());
    if programs.worker.is_empty() {
        rows.retain(|row| !matches!(row, Row::Fault(Fault::OtherWorkerKilled)));
    }
    if rows.is_empty() {
        return Err(Failure::not_found("no cell has that in its name"));
    }
    let base = std::env::temp_dir().join(format!("systole-drill-{}", std::process::id()));
    let load = load(asked);
    let run = |(number, row): (usize, Row)| {
        let (programs, folder) = (programs.clone(), base.join(format!("{number}")));
        async move { row.run(&programs, load, folder).await.map(|outcome| (number, row, outcome)) }
    };
    let jobs = asked.jobs.max(1);
    let mut running = stream::iter(rows.into_iter().enumerate().map(run)).buffer_unordered(jobs);
    let mut done = Vec::new();
    while let Some(ended) = running.next().await {
        let ended = ended?;
        tell(asked, &ended.2);
        done.push(ended);
    }
    done.sort_by_key(|(number, ..)| *number);
    let missed = if asked.only.is_none() { missed(&done) } else { Vec::new() };
    let outcomes: Vec<Outcome> = done.into_iter().map(|(_, _, outcome)| outcome).collect();
    print(asked, &outcomes)?;
    for point in &missed {
        writeln!(io::stderr(), "the kill point {point} was never reached").unwrap_or_default();
    }
    if missed.is_empty() && outcomes.iter().all(Outcome::is_good) {
        // Empty by now; what cannot be removed is the system's to clean.
        std::fs::remove_dir_all(&base).unwrap_or_default();
        return Ok(Exit::Done);
    }
    tracing::warn!(folder = %base.display(), "logs of the rows that went wrong are kept");
    Ok(Exit::Failed)
}

fn load(asked: &Drill) -> Load {
    let form = if asked.short { SHORT } else { FULL };
    Load {
        threads: asked.threads.unwrap_or(form.threads),
        kills: asked.kills.unwrap_or(form.kills).max(1),
        turns: form.turns,
    }
}

/// The slow ones of the faults come first, so that others go on beside them.
fn rows(only: Option<&str>) -> Vec<Row> {
    let faults = fault::all(only).into_iter().map(Row::Fault);
    faults.chain(cells::all(only).into_iter().map(Row::Cell)).collect()
}

/// The kill points at which no process was ended.
fn missed(done: &[(usize, Row, Outcome)]) -> Vec<&'static str> {
    let reached = done.iter().filter(|(.., outcome)| outcome.kills > 0);
    let reached: Vec<KillPoint> = reached.filter_map(|(_, row, _)| row.point()).collect();
    let missed = KillPoint::ALL.iter().filter(|point| !reached.contains(point));
    missed.map(|point| point.as_str()).collect()
}

/// One row of the matrix.
#[derive(Clone, Copy)]
enum Row {
    Cell(Cell),
    Fault(Fault),
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cell(cell) => cell.fmt(f),
            Self::Fault(fault) => fault.fmt(f),
        }
    }
}

impl Row {
    async fn run(
        self,
        programs: &Programs,
        load: Load,
        folder: PathBuf,
    ) -> Result<Outcome, Failure> {
        let done = match self {
            Self::Cell(cell) => Box::pin(cell::run(programs, cell, load, folder)).await,
            Self::Fault(fault) => Box::pin(fault::run(programs, fault, load, folder)).await,
        };
        done.map_err(|failure| failure.and(format!("This was the row {self}.")))
    }

    /// The point at which it ends processes.
    fn point(self) -> Option<KillPoint> {
        match self {
            Self::Cell(cell) => (cell.hit == Hit::Killed).then_some(cell.point),
            Self::Fault(fault) => fault.point(),
        }
    }
}

/// A line as soon as a row is over.
fn tell(asked: &Drill, outcome: &Outcome) {
    if asked.json {
        return;
    }
    let word = match (outcome.is_good(), outcome.reached) {
        (true, _) => "ok",
        (false, true) => "BROKEN",
        (false, false) => "MISSED",
    };
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

#[cfg(test)]
mod tests {
    use super::super::judge::Counts;
    use super::*;

    #[test]
    fn a_kill_point_that_no_process_came_to_is_named() {
        let of = |kills: usize| {
            let rows = rows(None).into_iter().enumerate();
            let done = rows.map(|(number, row)| {
                let is_it = row.to_string() == "planner/streaming/killed/orders";
                let outcome = Outcome {
                    cell: row.to_string(),
                    reached: true,
                    kills: if is_it { kills } else { 1 },
                    threads: 1,
                    counts: Counts::default(),
                    recovered_ms: 0,
                };
                (number, row, outcome)
            });
            missed(&done.collect::<Vec<_>>())
        };
        assert_eq!(of(1), Vec::<&str>::new());
        assert_eq!(of(0), ["streaming"]);
    }
}

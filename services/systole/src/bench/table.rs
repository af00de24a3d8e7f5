//! The report for people.

use super::report::{Rates, Report};
use super::script::WORDS;
use super::throughput::{CALLS_PER_RUN, THREADS, Throughput};

/// The report as text.
pub(crate) fn table(report: &Report) -> String {
    let syncs = report.rates.as_ref().map(|rates| rates.syncs_per_second);
    let syncs = syncs.map(|rate| format!(", {rate:.0} syncs/s of 4 KiB, one after another"));
    let mut lines = vec![format!(
        "{} cores, load {:.2}{}",
        report.cores,
        report.load_before,
        syncs.unwrap_or_default()
    )];
    if report.is_disturbed() {
        lines.push("The machine was busy: alone it would be faster.".to_owned());
    }
    if report.quick {
        lines.push("The short form: these numbers are rough.".to_owned());
    }
    let parts =
        [report.rates.as_ref().map(throughput).unwrap_or_default(), others(report), early(report)];
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        lines.push(String::new());
        lines.extend(part);
    }
    lines.join("\n") + "\n"
}

fn throughput(report: &Rates) -> Vec<String> {
    let title = format!("{THREADS} threads, {CALLS_PER_RUN} calls a run");
    let head = [&title, "tool calls/s", "of floor", "CPU s", "model's CPU s", "appends/call"];
    let product = |name: &str, measured: &Throughput, ratio: f64| {
        [
            name.to_owned(),
            format!("{:.0}", measured.calls_per_second),
            format!("{ratio:.2}"),
            format!("{:.2}", measured.cpu_seconds),
            format!("{:.2}", measured.model_cpu_seconds),
            format!("{:.2}", measured.appends_per_call),
        ]
    };
    let floor = &report.floor;
    let bare = [
        "floor: bare program, synced log".to_owned(),
        format!("{:.0}", floor.calls_per_second),
        "1.00".to_owned(),
        format!("{:.2}", floor.cpu_seconds),
        format!("{:.2}", floor.model_cpu_seconds),
        String::new(),
    ];
    let lines = [
        head.map(str::to_owned),
        product("journal FULL (default)", &report.full, report.full_to_floor),
        product("journal NORMAL", &report.normal, report.normal_to_floor),
        bare,
    ];
    rows(&lines)
}

fn others(report: &Report) -> Vec<String> {
    let overhead = report.overhead.as_ref().map(|overhead| {
        let (median, p90) = (overhead.median_ms_per_turn, overhead.p90_ms_per_turn);
        [
            "overhead per turn, one thread, idle".to_owned(),
            format!("{median:.2} ms median, {p90:.2} ms p90 of {} runs", overhead.runs),
        ]
    });
    let cold = report.cold_start.as_ref().map(|cold| {
        let (median, worst) = (cold.median_ms, cold.worst_ms);
        [
            "cold start to the first model request".to_owned(),
            format!("{median:.0} ms median, {worst:.0} ms worst of {}", cold.starts),
        ]
    });
    let memory = report.memory.as_ref().map(|memory| {
        [
            format!("memory, {} threads waiting for the model", memory.threads),
            format!(
                "{:.1} MB, {:.1} MB before them, {:.0} KB a thread",
                memory.resident_mb,
                memory.before_mb,
                memory.kb_per_thread()
            ),
        ]
    });
    let lines: Vec<[String; 2]> = [overhead, cold, memory].into_iter().flatten().collect();
    rows(&lines)
}

fn early(report: &Report) -> Vec<String> {
    if report.early_dispatch.is_empty() {
        return Vec::new();
    }
    let (before, after) = WORDS;
    let title = format!("early dispatch: {before} words, two 300 ms tools, {after} words");
    let mut lines = vec![[title, "first text".to_owned(), "total".to_owned()]];
    lines.extend(report.early_dispatch.iter().map(|early| {
        [
            format!("early_dispatch: {}", early.early_dispatch),
            format!("{:.0} ms", early.first_text_ms),
            format!("{:.0} ms", early.total_ms),
        ]
    }));
    rows(&lines)
}

/// Columns as wide as their widest cell; all but the first are aligned to the right.
pub(crate) fn rows<const N: usize>(lines: &[[String; N]]) -> Vec<String> {
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let row = |line: &[String; N]| {
        let cells = line.iter().enumerate().map(|(column, cell)| match column {
            0 => format!("{cell:<width$}", width = width(column)),
            _ => format!("{cell:>width$}", width = width(column)),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;
    use crate::bench::cold::Cold;
    use crate::bench::early::Early;
    use crate::bench::floor::Floor;
    use crate::bench::memory::Memory;
    use crate::bench::overhead::Overhead;

    fn report() -> Report {
        let product = |calls_per_second: f64| Throughput {
            calls: 600,
            calls_per_second,
            cpu_seconds: 1.5,
            model_cpu_seconds: 0.25,
            appends_per_call: 3.67,
            ..Throughput::default()
        };
        let early = |mode: &str, total_ms: f64| Early {
            early_dispatch: mode.to_owned(),
            first_text_ms: 12.0,
            total_ms,
        };
        let rates = Rates {
            syncs_per_second: 5000.0,
            full: product(2500.0),
            normal: product(3000.0),
            floor: Floor { calls_per_second: 8000.0, cpu_seconds: 0.5, ..Floor::default() },
            ..Rates::default()
        };
        Report {
            cores: 2,
            load_before: 0.5,
            rates: Some(rates.with_ratios()),
            overhead: Some(Overhead { runs: 50, median_ms_per_turn: 2.5, p90_ms_per_turn: 4.0 }),
            cold_start: Some(Cold { starts: 5, median_ms: 90.0, worst_ms: 120.0 }),
            memory: Some(Memory { threads: 1000, before_mb: 20.0, resident_mb: 50.0 }),
            early_dispatch: vec![early("off", 3400.0), early("safe", 3160.0)],
            ..Report::default()
        }
    }

    #[test]
    fn every_number_has_its_place() {
        expect![[r"
            2 cores, load 0.50, 5000 syncs/s of 4 KiB, one after another

            64 threads, 6 calls a run        tool calls/s  of floor  CPU s  model's CPU s  appends/call
            journal FULL (default)                   2500      0.31   1.50           0.25          3.67
            journal NORMAL                           3000      0.38   1.50           0.25          3.67
            floor: bare program, synced log          8000      1.00   0.50           0.00

            overhead per turn, one thread, idle               2.50 ms median, 4.00 ms p90 of 50 runs
            cold start to the first model request                    90 ms median, 120 ms worst of 5
            memory, 1000 threads waiting for the model  50.0 MB, 20.0 MB before them, 31 KB a thread

            early dispatch: 275 words, two 300 ms tools, 25 words  first text    total
            early_dispatch: off                                         12 ms  3400 ms
            early_dispatch: safe                                        12 ms  3160 ms
        "]]
        .assert_eq(&table(&report()));
    }

    #[test]
    fn parts_that_were_not_asked_for_are_not_shown() {
        let memory = report().memory;
        let report = Report { cores: 2, load_before: 0.5, memory, ..Report::default() };
        expect![[r"
            2 cores, load 0.50

            memory, 1000 threads waiting for the model  50.0 MB, 20.0 MB before them, 31 KB a thread
        "]]
        .assert_eq(&table(&report));
    }

    #[test]
    fn a_busy_machine_and_the_short_form_are_told() {
        let report = Report { quick: true, load_before: 1.6, ..report() };
        let text = table(&report);
        assert!(text.contains("busy") && text.contains("rough"), "{text}");
    }
}

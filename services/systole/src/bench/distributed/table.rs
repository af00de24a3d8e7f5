//! The report for people.

use super::super::statistics::ratio;
use super::super::table::rows;
use super::report::{Pair, Process, Report, Scale, Slow, Streaming};
use super::talking::Talking;

/// The report as text.
pub(crate) fn table(report: &Report) -> String {
    let mut lines = vec![format!(
        "{} cores, load {:.2}, {:.0} syncs/s of 4 KiB, one after another",
        report.cores, report.load_before, report.syncs_per_second
    )];
    if report.quick {
        lines.push("The short form: these numbers are rough.".to_owned());
    }
    lines.push(String::new());
    lines.extend(unloaded(report));
    for pair in &report.pairs {
        lines.push(String::new());
        lines.extend(of_pair(pair));
    }
    lines.push(String::new());
    lines.extend(slow(&report.slow));
    lines.push(String::new());
    lines.extend(scale(&report.scale));
    lines.push(String::new());
    lines.extend(idle(report));
    lines.push(String::new());
    lines.extend(talking(&report.talking));
    lines.join("\n") + "\n"
}

/// Replies that stream, and nothing else.
pub(crate) fn streaming(report: &Streaming) -> String {
    let mut lines = vec![format!("{} cores, load {:.2}", report.cores, report.load_before)];
    if report.quick {
        lines.push("The short form: these numbers are rough.".to_owned());
    }
    lines.push(String::new());
    lines.extend(talking(&report.talking));
    lines.join("\n") + "\n"
}

fn talking(all: &[Talking]) -> Vec<String> {
    let head = ["replies that stream", "chunks/s", "of wanted", "heard/s", "publishes/s"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(all.iter().map(|one| {
        [
            format!("{} at {} chunks/s", one.streams, one.pace),
            format!("{:.0}", one.chunks_per_second),
            format!("{:.2}", one.of_wanted),
            format!("{:.0}", one.heard_per_second),
            format!("{:.0}", one.publishes_per_second),
        ]
    }));
    let mut text = rows(&lines);
    text.extend(all.iter().map(|one| {
        let of = |process: &Process| {
            let share = ratio(process.cpu_seconds, one.seconds) * 100.0;
            format!("{} {share:.0} % of a core, {:.0} MB", process.name, process.resident_mb)
        };
        let processes = one.processes.iter().map(of).collect::<Vec<_>>().join(" · ");
        format!("  {}: {processes}", one.streams)
    }));
    text
}

fn unloaded(report: &Report) -> Vec<String> {
    let (floor, product) = (&report.unloaded_floor, &report.unloaded);
    let head = ["one thread", "run p50", "run p99", "call p50", "call p99"];
    let lines = [
        head.map(str::to_owned),
        [
            "floor".to_owned(),
            ms(floor.run_p50_ms),
            ms(floor.run_p99_ms),
            String::new(),
            String::new(),
        ],
        [
            "product".to_owned(),
            ms(product.run_p50_ms),
            ms(product.run_p99_ms),
            ms(product.call_p50_ms),
            ms(product.call_p99_ms),
        ],
    ];
    rows(&lines)
}

fn of_pair(pair: &Pair) -> Vec<String> {
    let kept = if pair.synced { "every write synced" } else { "default flush (2 min)" };
    let title = format!("{kept}, {} partition(s)", pair.partitions);
    let head = [&title, "threads", "tool calls/s", "run p50", "run p99"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(pair.floor.iter().map(|floor| {
        let rate = floor.calls_per_second;
        line("floor", floor.threads, rate, floor.run_p50_ms, floor.run_p99_ms)
    }));
    lines.extend(pair.product.iter().map(|fleet| {
        let rate = fleet.calls_per_second;
        line("product", fleet.threads, rate, fleet.run_p50_ms, fleet.run_p99_ms)
    }));
    let mut text = rows(&lines);
    text.push(format!("{:.2} of the floor · {}", pair.of_floor, processes(&pair.processes)));
    text
}

fn line(name: &str, threads: usize, rate: f64, p50: f64, p99: f64) -> [String; 5] {
    [name.to_owned(), threads.to_string(), format!("{rate:.0}"), ms(p50), ms(p99)]
}

fn slow(all: &[Slow]) -> Vec<String> {
    let head = [
        "a slow model",
        "threads",
        "tool calls/s",
        "run p50",
        "run p99",
        "p99 over ideal",
        "requests a turn",
    ];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(all.iter().map(|slow| {
        let name = format!(
            "{} ms, {} planner(s), {} worker(s)",
            slow.model_ms, slow.planners, slow.workers
        );
        let fleet = &slow.fleet;
        [
            name,
            fleet.threads.to_string(),
            format!("{:.0}", fleet.calls_per_second),
            ms(fleet.run_p50_ms),
            ms(fleet.run_p99_ms),
            ms(slow.over_ideal_p99_ms),
            format!("{:.2}", slow.requests_per_turn),
        ]
    }));
    rows(&lines)
}

fn scale(all: &[Scale]) -> Vec<String> {
    let title = "8 requests a planner, 4 calls a worker";
    let head = [title, "threads", "tool calls/s", "run p50", "run p99"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(all.iter().map(|Scale { planners, workers, fleet }| {
        let name = format!("{planners} planner(s), {workers} worker(s)");
        let (p50, p99) = (fleet.run_p50_ms, fleet.run_p99_ms);
        line(&name, fleet.threads, fleet.calls_per_second, p50, p99)
    }));
    rows(&lines)
}

fn idle(report: &Report) -> Vec<String> {
    let (idle, waiting) = (&report.idle, &report.idle.waiting);
    vec![
        format!("{} threads wait for the model", waiting.threads),
        format!(
            "  input to turn: p50 {}, p99 {}, worst {}; all asked {} after the last input",
            ms(waiting.begun_p50_ms),
            ms(waiting.begun_p99_ms),
            ms(waiting.begun_worst_ms),
            ms(waiting.last_asked_ms)
        ),
        format!(
            "  planner {:.1} MB ({:.1} before), bare client {:.1} MB ({:.1} before): {:.1} KB a \
             thread beyond the bare client",
            idle.planner_mb,
            idle.planner_before_mb,
            idle.bare.resident_mb,
            idle.bare.before_mb,
            idle.kb_per_thread
        ),
    ]
}

fn ms(span: f64) -> String {
    if span < 100.0 { format!("{span:.2} ms") } else { format!("{span:.0} ms") }
}

fn processes(all: &[Process]) -> String {
    let of = |process: &Process| {
        let Process { name, cpu_seconds, resident_mb } = process;
        format!("{name} {cpu_seconds:.1} s, {resident_mb:.0} MB")
    };
    all.iter().map(of).collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::super::bare::Floor;
    use super::super::fleet::Fleet;
    use super::super::report::Idle;
    use super::super::waiting::{Streams, Waiting};
    use super::*;

    fn fleet(threads: usize, calls_per_second: f64) -> Fleet {
        Fleet {
            threads,
            runs: 100,
            calls_per_second,
            run_p50_ms: 40.0,
            run_p99_ms: 120.0,
            ..Fleet::default()
        }
    }

    fn report() -> Report {
        let floor = Floor { threads: 64, runs: 100, calls_per_second: 4000.0, ..Floor::default() };
        let planner = Process { name: "planner".to_owned(), cpu_seconds: 5.0, resident_mb: 50.0 };
        let pair = Pair {
            partitions: 1,
            floor: vec![floor],
            product: vec![fleet(16, 800.0), fleet(64, 2000.0)],
            processes: vec![planner],
            ..Pair::default()
        };
        let slow = Slow {
            model_ms: 200,
            ideal_ms: 800.0,
            fleet: fleet(500, 1500.0),
            over_ideal_p99_ms: 90.0,
            requests_per_turn: 1.0,
            planners: 2,
            workers: 1,
            ..Slow::default()
        };
        let scale = Scale { planners: 2, workers: 2, fleet: fleet(64, 110.0) };
        let idle = Idle {
            waiting: Waiting { threads: 1000, begun_p99_ms: 80.0, ..Waiting::default() },
            planner_before_mb: 40.0,
            planner_mb: 90.0,
            bare: Streams { threads: 1000, before_mb: 20.0, resident_mb: 50.0 },
            ..Idle::default()
        };
        let weighed = Process { name: "planner".to_owned(), cpu_seconds: 4.0, resident_mb: 80.0 };
        let talking = Talking {
            streams: 1000,
            pace: 50,
            seconds: 8.0,
            chunks_per_second: 49_900.0,
            of_wanted: 0.998,
            heard_per_second: 49_890.0,
            publishes_per_second: 25_000.0,
            processes: vec![weighed],
        };
        Report {
            talking: vec![talking],
            cores: 2,
            pairs: vec![pair.with_ratio()],
            slow: vec![slow],
            scale: vec![scale],
            idle: idle.with_difference(),
            ..Report::default()
        }
    }

    #[test]
    fn every_number_has_its_place() {
        expect![[r"
            2 cores, load 0.00, 0 syncs/s of 4 KiB, one after another

            one thread  run p50  run p99  call p50  call p99
            floor       0.00 ms  0.00 ms
            product     0.00 ms  0.00 ms   0.00 ms   0.00 ms

            default flush (2 min), 1 partition(s)  threads  tool calls/s   run p50  run p99
            floor                                       64          4000   0.00 ms  0.00 ms
            product                                     16           800  40.00 ms   120 ms
            product                                     64          2000  40.00 ms   120 ms
            0.50 of the floor · planner 5.0 s, 50 MB

            a slow model                       threads  tool calls/s   run p50  run p99  p99 over ideal  requests a turn
            200 ms, 2 planner(s), 1 worker(s)      500          1500  40.00 ms   120 ms        90.00 ms             1.00

            8 requests a planner, 4 calls a worker  threads  tool calls/s   run p50  run p99
            2 planner(s), 2 worker(s)                    64           110  40.00 ms   120 ms

            1000 threads wait for the model
              input to turn: p50 0.00 ms, p99 80.00 ms, worst 0.00 ms; all asked 0.00 ms after the last input
              planner 90.0 MB (40.0 before), bare client 50.0 MB (20.0 before): 20.5 KB a thread beyond the bare client

            replies that stream  chunks/s  of wanted  heard/s  publishes/s
            1000 at 50 chunks/s     49900       1.00    49890        25000
              1000: planner 50 % of a core, 80 MB
        "]]
        .assert_eq(&table(&report()));
    }
}

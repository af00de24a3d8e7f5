//! `systole bench`: that everything is measured, not how fast it is.

use serde_json::Value;

use crate::home::Home;

/// A number above zero at a path such as `full.calls`.
fn above_zero(report: &Value, path: &str) {
    let at = path.split('.').fold(report, |at, name| &at[name]);
    assert!(at.as_f64().is_some_and(|number| number > 0.0), "{path} is {at}: {report}");
}

#[test]
fn the_short_form_measures_every_part_and_prints_the_floor_beside_it() {
    let home = Home::new();
    let ended = home.run(["bench", "--quick", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(report["quick"], true);
    for path in ["cores", "syncs_per_second", "full_to_floor", "normal_to_floor"] {
        above_zero(&report, path);
    }
    for part in ["full", "normal", "floor"] {
        for name in ["calls", "seconds", "calls_per_second", "cpu_seconds"] {
            above_zero(&report, &format!("{part}.{name}"));
        }
    }
    for path in ["full.appends_per_call", "normal.appends_per_call", "overhead.runs"] {
        above_zero(&report, path);
    }
    for name in ["starts", "median_ms", "worst_ms"] {
        above_zero(&report, &format!("cold_start.{name}"));
    }
    for name in ["threads", "before_mb", "resident_mb"] {
        above_zero(&report, &format!("memory.{name}"));
    }
    let early = report["early_dispatch"].as_array().unwrap();
    let modes: Vec<&str> =
        early.iter().map(|early| early["early_dispatch"].as_str().unwrap()).collect();
    assert_eq!(modes, ["off", "safe", "all"]);
    for part in early {
        above_zero(part, "first_text_ms");
        above_zero(part, "total_ms");
    }
    let left: Vec<_> = std::fs::read_dir(home.path()).unwrap().map(|e| e.unwrap().path()).collect();
    let is_bench = |path: &std::path::PathBuf| path.to_string_lossy().contains("bench-");
    assert!(!left.iter().any(is_bench), "{left:?}");
}

#[test]
fn one_part_alone_can_be_measured() {
    let home = Home::new();
    let ended = home.run(["bench", "--quick", "--only", "memory", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    above_zero(&report, "memory.resident_mb");
    let names: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert_eq!(names, ["cores", "load_before", "memory", "quick"]);
}

/// A thousand threads are to take less than 60 MB in an optimised process, of which some 24 MB are
/// there before them. What a thread adds does not depend on the optimisation.
#[test]
fn a_thread_that_waits_for_the_model_takes_little_memory() {
    let home = Home::new();
    let ended = home.run(["bench", "--only", "memory", "--json"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let report: Value = serde_json::from_str(&ended.out).unwrap();
    let megabytes = |name: &str| report["memory"][name].as_f64().unwrap();
    let a_thread = (megabytes("resident_mb") - megabytes("before_mb")) / 1000.0;
    assert!(a_thread < 0.05, "{a_thread} MB a thread: {report}");
}

#[test]
fn what_cannot_be_measured_is_refused_before_anything_is() {
    let home = Home::new();
    for (words, part) in [
        (&["bench", "--threads", "0"][..], "--threads"),
        (&["bench", "--quick", "now"], "now"),
        (&["bench", "--only", "speed"], "throughput, overhead, cold-start"),
        (&["bench", "--only", "memory", "--distributed"], "--distributed"),
        (&["bench", "--only", "streams"], "--distributed"),
        (&["bench-part", "memory", "--url", "http://127.0.0.1:1", "--threads", "0"], "0 is not in"),
        (&["bench-part", "overhead", "--url", "http://127.0.0.1:1", "--runs", "0"], "0 is not in"),
        (&["bench-part", "floor", "--url", "http://127.0.0.1:1", "--span-ms", "0"], "0 is not in"),
    ] {
        let ended = home.run(words);
        assert_eq!(ended.code, Some(2), "{words:?}: {ended:?}");
        assert!(ended.err.contains(part), "{words:?}: {}", ended.err);
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "nothing was begun");
    }
    home.write("file", "no folder");
    let ended = home.run(["bench", "--quick", "--store", "file/store.db"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.err.contains("the bench's folder"), "{}", ended.err);
}

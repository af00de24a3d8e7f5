//! `systole bench --distributed`: that it measures, not how fast.

use serde_json::Value;

use crate::deployment::{nats_program, redis_program};
use crate::home::Home;

fn positive(report: &Value, pointer: &str) {
    let number = report.pointer(pointer).and_then(Value::as_f64);
    assert!(number.is_some_and(|number| number > 0.0), "{pointer} in {report:#}");
}

#[test]
fn floor_and_product_are_measured_over_servers_that_are_gone_afterwards() {
    let (Some(nats), Some(redis)) = (nats_program(), redis_program()) else { return };
    let home = Home::new();
    let mut command = home.command(["bench", "--distributed", "--quick", "--json"]);
    command.env("SYSTOLE_NATS_SERVER", nats).env("SYSTOLE_REDIS_SERVER", redis);
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let pairs = report["pairs"].as_array().unwrap();
    assert_eq!(pairs.iter().map(|pair| &pair["synced"]).collect::<Vec<_>>(), [false, true]);
    for pair in pairs {
        for number in ["/floor/0/calls_per_second", "/product/0/calls_per_second", "/of_floor"] {
            positive(pair, number);
        }
    }
    for number in ["/unloaded/call_p50_ms", "/idle/kb_per_thread", "/idle/waiting/begun_p99_ms"] {
        positive(&report, number);
    }
    positive(&report, "/talking/0/publishes_per_second");
    for slow in report["slow"].as_array().unwrap() {
        // Nobody was ended, so a turn that is asked for again was taken from a living planner.
        assert_eq!(slow["requests_per_turn"], 1.0, "{slow:#}");
    }
    let left = std::fs::read_dir(home.path().join(".systole")).unwrap();
    let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn replies_that_stream_are_measured_alone_and_readers_have_their_words() {
    let (Some(nats), Some(redis)) = (nats_program(), redis_program()) else { return };
    let home = Home::new();
    let mut command =
        home.command(["bench", "--distributed", "--only", "streams", "--quick", "--json"]);
    command.env("SYSTOLE_NATS_SERVER", nats).env("SYSTOLE_REDIS_SERVER", redis);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let talking = &report["talking"][0];
    let number = |name: &str| talking[name].as_f64().unwrap();
    assert_eq!((talking["streams"].as_u64(), talking["pace"].as_u64()), (Some(40), Some(20)));
    let (chunks, heard, publishes) =
        (number("chunks_per_second"), number("heard_per_second"), number("publishes_per_second"));
    assert!(chunks > 100.0, "{report:#}");
    // What was sent is heard, in no more messages than chunks.
    assert!(heard > chunks * 0.5 && publishes <= chunks * 1.5, "{report:#}");
    let names = talking["processes"].as_array().unwrap().iter();
    let names: Vec<&str> = names.map(|process| process["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["nats", "redis", "planner", "worker", "model"]);
}

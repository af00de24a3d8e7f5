//! `systole cancel`, with and without a process on the store.

use serde_json::Value;

use crate::agents::{command, with_tool};
use crate::home::Home;
use crate::journal::violations;

fn sleeper(home: &Home, effect: &str) {
    let tool = command("[\"/bin/sleep\", \"600\"]", effect, "    timeout_ms: 600000\n");
    with_tool(home, &tool, "{}");
}

#[test]
fn a_running_call_is_stopped_and_its_receipt_is_told() {
    let home = Home::new();
    sleeper(&home, "irreversible");
    let mut running = home.start(["run", "agent.yaml", "go", "--json"]);
    running.until_printed("tool_started");
    let cancelled = home.run(["cancel", "last", "--json"]);
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.err);
    let receipt: Value = cancelled.last();
    assert_eq!(receipt["cancelled"], true);
    assert_eq!(receipt["finished"]["outcome"], "stopped");
    assert_eq!(receipt["calls"][0]["tool"], "probe");
    let how = receipt["calls"][0]["receipt"].as_str().unwrap();
    assert!(how.starts_with("stopped_"), "{receipt}");
    let ended = running.end();
    assert_eq!(ended.code, Some(3), "{}", ended.err);
    assert_eq!(ended.last()["reason"], "cancelled");
    assert_eq!(violations(&home), []);
}

#[test]
fn a_run_whose_process_is_dead_can_be_cancelled() {
    let home = Home::new();
    sleeper(&home, "read_only");
    let mut running = home.start(["run", "agent.yaml", "go", "--json"]);
    running.until_printed("\"tool_call\"");
    running.kill();
    let cancelled = home.run(["cancel", "last"]);
    assert_eq!(cancelled.code, Some(0), "{}", cancelled.err);
    assert!(cancelled.out.contains("stopped"), "{}", cancelled.out);
    let again = home.run(["cancel", "last"]);
    assert!(again.out.contains("nothing to cancel"), "{}", again.out);
    assert_eq!(violations(&home), []);
}

#[test]
fn an_unknown_thread_is_named() {
    let home = Home::new();
    let ended = home.run(["cancel", "last"]);
    assert_eq!(ended.code, Some(2), "{}", ended.err);
    assert!(ended.err.contains(".systole/systole.db does not exist"), "{}", ended.err);
}

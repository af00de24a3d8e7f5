//! `--dry-run`: what must not happen twice does not happen at all.

use rustix::process::Signal;

use crate::agents::{command, with_tool};
use crate::home::{Ended, Home};
use crate::journal::{histories, violations};

fn dangerous(home: &Home, effect: &str) {
    let tool = command(
        "[\"/bin/sh\", \"-c\", \"echo done >> effects; echo done\", \"{why}\"]",
        effect,
        "    approval: always\n    timeout_ms: 5000\n",
    );
    let tool = tool.replace("parameters: {}", "parameters: { why: { type: string } }");
    with_tool(home, &tool, "{ why: because }");
}

fn is_dry(home: &Home, ended: &Ended) {
    let observation = ended.observation_of("probe");
    assert!(observation.get("code").is_none(), "{observation}");
    let content = observation["content"].as_str().unwrap();
    assert!(content.starts_with("DRY RUN: nothing was started"), "{content}");
    assert!(content.contains("echo done >> effects") && content.contains("because"), "{content}");
    assert_eq!(home.read("effects"), "");
    assert!(!ended.out.contains("tool_started"), "no start is recorded: {}", ended.out);
    assert!(!ended.out.contains("approval_asked"), "nobody is asked: {}", ended.out);
    ended.answer();
}

#[test]
fn an_irreversible_tool_says_what_it_would_have_done() {
    let home = Home::new();
    dangerous(&home, "irreversible");
    is_dry(&home, &home.run(["run", "agent.yaml", "go", "--json", "--dry-run"]));
    assert_eq!(violations(&home), []);
    let real = home.run(["run", "agent.yaml", "go", "--json", "--approve", "probe"]);
    assert_eq!(real.observation_of("probe")["content"], "done\n");
    assert_eq!(home.read("effects"), "done\n");
}

#[test]
fn a_tool_that_may_be_repeated_runs() {
    let home = Home::new();
    dangerous(&home, "read_only");
    let ended = home.run(["run", "agent.yaml", "go", "--json", "--dry-run", "--approve", "probe"]);
    assert_eq!(ended.observation_of("probe")["content"], "done\n", "{}", ended.out);
}

#[test]
fn a_dev_can_be_dry_and_a_dry_run_is_not_handed_to_a_real_one() {
    let home = Home::new();
    dangerous(&home, "irreversible");
    let mut dev = home.start(["dev", "agent.yaml", "--json", "--dry-run"]);
    dev.until_printed("dev_started");
    is_dry(&home, &home.run(["run", "agent.yaml", "go", "--json", "--dry-run"]));
    is_dry(&home, &home.run(["run", "agent.yaml", "once more", "--json"]));
    dev.signal(Signal::INT);
    assert_eq!(dev.end().code, Some(0));
    let mut dev = home.start(["dev", "agent.yaml", "--json"]);
    dev.until_printed("dev_started");
    let refused = home.run(["run", "agent.yaml", "go on", "--dry-run"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("runs its tools for real"), "{}", refused.err);
    dev.signal(Signal::INT);
    assert_eq!(dev.end().code, Some(0));
    assert_eq!(histories(&home).len(), 2);
}

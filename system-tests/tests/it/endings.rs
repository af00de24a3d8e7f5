//! The same command means the same run until its ending was shown; other runs stay as they are.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::Signal;
use serde_json::Value;

use crate::agents::{command, with_tool};
use crate::home::{Ended, Home, finish, until};
use crate::journal::{histories, violations};

/// An agent that does something once and then talks for a second.
fn doer(home: &Home) {
    let argv = "[\"/bin/sh\", \"-c\", \"echo done >> effects; echo done\"]";
    with_tool(home, &command(argv, "irreversible", ""), "{}");
    let words = "and so on ".repeat(15);
    let rehearsal = home.read("rehearsal.yaml");
    home.write("rehearsal.yaml", &rehearsal.replace("It said:", &format!("{words} It said:")));
}

fn types(ended: &Ended) -> Vec<String> {
    let all = ended.events();
    let shown = all.iter().filter(|event| event["type"] != "delta" && event["type"] != "phase");
    shown.map(|event| event["type"].as_str().unwrap().to_owned()).collect()
}

fn state_of_only_thread(home: &Home) -> Value {
    let listed = home.run(["show", "--json"]).events();
    assert_eq!(listed.len(), 1, "{listed:?}");
    listed[0].clone()
}

#[test]
fn an_ending_that_nobody_saw_is_shown_by_the_same_command_and_nothing_is_done_twice() {
    let home = Home::new();
    doer(&home);
    let mut first = home.command(["run", "agent.yaml", "pay", "--json"]);
    first.env("SYSTOLE_REHEARSAL_PACE", "1").stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = first.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // The reader goes away in the last turn, which is finished in the grace.
    let last_turn = |line: &str| line.contains("\"turn\":2") && line.contains("delta");
    assert!(lines.any(|line| last_turn(&line.unwrap())));
    drop(lines);
    assert_eq!(child.wait().unwrap().code(), Some(0), "it ended, whether or not anybody reads");
    assert!(!state_of_only_thread(&home)["unfinished"].as_bool().unwrap());
    let shown = home.run(["run", "agent.yaml", "pay", "--json"]);
    assert!(shown.answer().ends_with("It said: done\n"), "{shown:?}");
    let all = types(&shown);
    assert_eq!(all.first().map(String::as_str), Some("input"), "{all:?}");
    assert!(all.contains(&"observation".to_owned()), "{all:?}");
    assert_eq!(home.read("effects"), "done\n");
    assert_eq!(histories(&home).len(), 1, "nothing begins");
    // It was shown: the same words now mean another run.
    home.run(["run", "agent.yaml", "pay", "--json"]).answer();
    assert_eq!(histories(&home).len(), 2);
    assert_eq!(home.read("effects"), "done\ndone\n");
    assert_eq!(violations(&home), []);
}

#[test]
fn an_unseen_ending_is_shown_to_people_too_and_by_thread() {
    let home = Home::new();
    doer(&home);
    let mut first = home.command(["run", "agent.yaml", "pay"]);
    first.env("SYSTOLE_REHEARSAL_PACE", "1").stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = first.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("✓ probe")));
    drop(lines);
    child.wait().unwrap();
    until("it is over", || !state_of_only_thread(&home)["unfinished"].as_bool().unwrap_or(true));
    let shown = home.run(["run", "agent.yaml", "--thread", "last"]);
    assert!(shown.out.contains("nothing begins") && shown.out.contains("✓ answered"), "{shown:?}");
    assert_eq!(shown.code, Some(0));
    let none = home.run(["run", "agent.yaml", "--thread", "last"]);
    assert!(none.err.contains("has no unfinished run"), "{none:?}");
    assert_eq!(home.read("effects"), "done\n");
}

#[test]
fn an_interrupt_in_the_last_turn_tells_the_end() {
    let home = Home::new();
    doer(&home);
    let mut command = home.command(["run", "agent.yaml", "pay", "--json"]);
    command.env("SYSTOLE_REHEARSAL_PACE", "1");
    let mut running = home.start_command(command);
    running.until_printed("\"turn\":2,\"channel\"");
    running.signal(Signal::TERM);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.answer();
}

#[test]
fn a_command_leaves_other_runs_as_they_are() {
    let home = Home::new();
    let argv = "[\"/bin/sh\", \"-c\", \"echo done >> effects; echo done\"]";
    with_tool(&home, &command(argv, "irreversible", ""), "{}");
    let mut slow = home.command(["run", "agent.yaml", "pay", "--json"]);
    slow.env("SYSTOLE_REHEARSAL_PACE", "10");
    let mut running = home.start_command(slow);
    running.until_printed("turn_started");
    running.kill();
    let before = home.run(["show", "last", "--journal"]).out;
    let thread = before_thread(&home);
    // Long enough for the other run to be carried on with, if it were.
    let rehearsal = home.read("rehearsal.yaml");
    let words = "and so on ".repeat(30);
    home.write(
        "rehearsal.yaml",
        &format!(
            "pace: {{ tokens_per_second: 50, first_token_ms: 50 }}\nrules:\n  - say: \"{words}\"\n"
        ),
    );
    let mut other = home.command(["run", "agent.yaml", "say hello"]);
    other.env("SYSTOLE_REHEARSAL_PACE", "1");
    let other = finish(other);
    assert_eq!(other.code, Some(0), "{other:?}");
    assert!(other.out.contains("1 other run is not finished"), "{}", other.out);
    assert_eq!(home.run(["show", &thread, "--journal"]).out, before, "not touched");
    assert_eq!(home.read("effects"), "");
    home.write("rehearsal.yaml", &rehearsal);
    home.run(["run", "agent.yaml", "pay", "--json"]).answer();
    assert_eq!(home.read("effects"), "done\n");
    assert_eq!(histories(&home).len(), 2, "the same thread goes on");
    assert_eq!(violations(&home), []);
}

fn before_thread(home: &Home) -> String {
    state_of_only_thread(home)["thread"].as_str().unwrap().to_owned()
}

#[test]
fn the_end_is_the_last_line_whatever_comes_late() {
    let home = Home::new();
    let tool = command("[\"/bin/sleep\", \"600\"]", "irreversible", "    timeout_ms: 600000\n");
    with_tool(&home, &tool, "{}");
    let mut running = home.start(["run", "agent.yaml", "go", "--json"]);
    running.until_printed("tool_started");
    // The second cancel comes behind the end that the first one brings about.
    let cancels: Vec<_> = (0..3).map(|_| home.start(["cancel", "last", "--json"])).collect();
    for cancel in cancels {
        let cancelled = cancel.end();
        assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    }
    let ended = running.end();
    assert_eq!(ended.last()["type"], "run_finished", "{}", ended.out);
    assert_eq!(ended.code, Some(3));
}

#[test]
fn a_store_that_is_taken_away_is_told_and_not_called_answered() {
    let home = Home::new();
    let argv = "[\"/bin/sh\", \"-c\", \"sleep 0.5; echo done\"]";
    with_tool(&home, &command(argv, "read_only", ""), "{}");
    let mut running = home.start(["run", "agent.yaml", "go", "--json"]);
    running.until_printed("\"tool_call\"");
    std::fs::rename(home.store(), home.path().join("moved.db")).unwrap();
    let ended = running.end();
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_eq!(ended.last()["code"], "store_corrupt", "{ended:?}");
    assert!(ended.err.contains("was removed or replaced"), "{}", ended.err);
}

#[test]
fn a_store_that_was_never_filled_has_no_thread() {
    let home = Home::new();
    home.write(".systole/systole.db", "");
    let shown = home.run(["show"]);
    assert_eq!((shown.code, shown.out.as_str()), (Some(0), "no threads\n"), "{shown:?}");
    let cancelled = home.run(["cancel", "last"]);
    assert_eq!(cancelled.code, Some(2), "{cancelled:?}");
}

#[test]
fn a_limit_on_the_size_of_files_is_a_full_store() {
    let home = Home::new();
    crate::agents::talker(&home);
    home.run(["run", "agent.yaml", "first", "--json"]).answer();
    home.write("words", &"many words ".repeat(20_000));
    let program = crate::home::program().display().to_string();
    let mut shell = home.command::<&str>([]);
    shell = {
        let mut limited = std::process::Command::new("/bin/bash");
        let script = "ulimit -f 300; exec \"$0\" run agent.yaml - --json < words";
        limited.args(["-c", script, &program]).current_dir(home.path());
        limited.env_clear().envs(shell.get_envs().filter_map(|(name, value)| Some((name, value?))));
        limited
    };
    let ended = finish(shell);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_eq!(ended.last()["code"], "store_full", "{ended:?}");
    home.run(["run", "agent.yaml", "second", "--json"]).answer();
}

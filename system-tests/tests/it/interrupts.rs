//! Ctrl-C, and readers that go away.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use rustix::process::Signal;

use crate::agents::{command, talker, with_tool};
use crate::home::Home;
use crate::journal::{histories, violations};

#[test]
fn one_interrupt_saves_the_run_and_the_same_command_finishes_it() {
    let home = Home::new();
    let tool = command(
        "[\"/bin/sh\", \"-c\", \"sleep 30; echo late\"]",
        "read_only",
        "    timeout_ms: 60000\n",
    );
    with_tool(&home, &tool, "{}");
    let mut running = home.start(["run", "agent.yaml", "go", "--json"]);
    running.until_printed("\"tool_call\"");
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let last = ended.last();
    assert_eq!(last["type"], "interrupted");
    assert!(
        last["continue"].as_str().unwrap().contains("run agent.yaml --json --thread"),
        "{last}"
    );
    let tool = command("[\"/bin/echo\", \"late\"]", "read_only", "    timeout_ms: 60000\n");
    with_tool(&home, &tool, "{}");
    let again = home.run(["run", "agent.yaml", "go", "--json"]);
    again.answer();
    assert_eq!(histories(&home).len(), 1, "the same thread");
    assert_eq!(violations(&home), []);
}

#[test]
fn what_is_finished_in_the_grace_is_shown() {
    let home = Home::new();
    let argv = "[\"/bin/sh\", \"-c\", \"sleep 0.7; echo in time\"]";
    with_tool(&home, &command(argv, "read_only", "    timeout_ms: 60000\n"), "{}");
    let mut running = home.start(["run", "agent.yaml", "go", "--json"]);
    running.until_printed("\"tool_call\"");
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert_eq!(ended.last()["type"], "interrupted");
    assert_eq!(ended.observation_of("probe")["content"], "in time\n");
    with_tool(&home, &command(argv, "read_only", "    timeout_ms: 60001\n"), "{}");
    let mut people = home.start(["run", "agent.yaml", "go", "--new"]);
    people.until_printed("→ probe");
    people.signal(Signal::INT);
    let ended = people.end();
    assert!(ended.out.contains("✓ probe"), "{}", ended.out);
    assert!(ended.out.contains("in time"), "{}", ended.out);
}

#[test]
fn a_second_interrupt_ends_at_once() {
    let home = Home::new();
    talker(&home);
    let mut command = home.command(["run", "agent.yaml", "go", "--json"]);
    command.env("SYSTOLE_REHEARSAL_PACE", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().contains("delta") {}
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, Signal::INT).unwrap();
    // The first one is heard before the second is sent: its word reaches no program with --json,
    // so the second is repeated until the process is gone.
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        let _gone_meanwhile = rustix::process::kill_process(pid, Signal::INT);
        std::thread::sleep(std::time::Duration::from_millis(20));
    };
    assert_eq!(status.code(), Some(130));
    let mut told = String::new();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert!(told.contains("go on with: ") && told.contains("--thread"), "{told}");
    drop(lines);
    let answer = home.run(["run", "agent.yaml", "go", "--json"]).answer();
    assert!(answer.starts_with("begin"), "{answer}");
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly_and_the_run_is_saved() {
    let home = Home::new();
    talker(&home);
    let mut command = home.command(["run", "agent.yaml", "go"]);
    command.env("SYSTOLE_REHEARSAL_PACE", "1").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    drop(out);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert_eq!(ended.status.code(), Some(4));
    home.run(["run", "agent.yaml", "--json"]).answer();
}

#[test]
fn text_comes_from_standard_input_too() {
    let home = Home::new();
    talker(&home);
    home.write("words", "go on then");
    let mut command = home.command(["run", "agent.yaml", "-", "--json"]);
    command.stdin(std::fs::File::open(home.path().join("words")).unwrap());
    let ended = crate::home::finish(command);
    ended.answer();
    let events = ended.events();
    let input = events.iter().find(|event| event["type"] == "input").unwrap();
    assert_eq!(input["text"], "go on then");
}

#[test]
fn a_run_of_another_agent_waits_for_its_own_command() {
    let home = Home::new();
    let tool = command("[\"/bin/sleep\", \"30\"]", "read_only", "    timeout_ms: 60000\n");
    with_tool(&home, &tool, "{}");
    let mut running = home.start(["run", "agent.yaml", "first", "--json"]);
    running.until_printed("\"tool_call\"");
    running.kill();
    let other = home.read("agent.yaml").replace("name: tester", "name: other");
    home.write("other.yaml", &other.replace("tools: [probe]", "tools: []"));
    home.write("rehearsal.yaml", "rules:\n  - say: hello\n");
    assert_eq!(home.run(["run", "other.yaml", "go", "--json"]).answer(), "hello");
    assert!(home.run(["show"]).out.contains("interrupted"), "the first run is still there");
    with_tool(
        &home,
        &command("[\"/bin/echo\", \"ok\"]", "read_only", "    timeout_ms: 60000\n"),
        "{}",
    );
    home.run(["run", "agent.yaml", "--json"]).answer();
    assert_eq!(violations(&home), []);
}

#[test]
fn a_proxy_of_the_surroundings_is_not_asked_for_the_rehearsal() {
    let home = Home::new();
    talker(&home);
    let mut command = home.command(["run", "agent.yaml", "go", "--json"]);
    command.env("HTTP_PROXY", "http://127.0.0.1:9").env("http_proxy", "http://127.0.0.1:9");
    crate::home::finish(command).answer();
}

//! A process that stays up, and the commands that talk to it.

use std::os::unix::fs::PermissionsExt;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::agents::{command, dangerous, talker, with_tool};
use crate::gateway::{Events, post};
use crate::home::{Ended, Home, Running, until};
use crate::journal::violations;

fn slow(home: &Home) {
    let script = "[\"/bin/sh\", \"-c\", \"touch began; sleep 60; echo late\"]";
    with_tool(home, &command(script, "read_only", "    timeout_ms: 90000\n"), "{}");
}

fn quick(home: &Home) {
    let script = "[\"/bin/echo\", \"fine\"]";
    with_tool(home, &command(script, "read_only", "    timeout_ms: 90000\n"), "{}");
}

/// A dev that is up.
fn up(home: &Home, arguments: &[&str]) -> Running {
    let mut words = vec!["dev", "--json"];
    words.extend(arguments);
    let mut dev = home.start(words);
    dev.until_printed("dev_started");
    dev
}

fn stop(dev: Running) {
    dev.signal(Signal::INT);
    let ended = dev.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.last()["type"], "dev_stopped");
}

fn listed(home: &Home, state: &str) -> Vec<Value> {
    let ended = home.run(["threads", "--json", "--state", state]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended.events()
}

fn types(ended: &Ended) -> Vec<String> {
    let word = |event: Value| event["type"].as_str().unwrap().to_owned();
    // Live text may be lost, and a phase is told of what is seen of it.
    let kept = |word: &String| word != "delta" && word != "phase";
    ended.events().into_iter().map(word).filter(kept).collect()
}

#[test]
fn a_run_is_carried_out_by_the_dev_and_looks_the_same() {
    let home = Home::new();
    quick(&home);
    let alone = home.run(["run", "agent.yaml", "go", "--json"]);
    let mut dev = up(&home, &["agent.yaml"]);
    let attached = home.run(["run", "agent.yaml", "go again", "--json"]);
    assert_eq!(attached.answer(), alone.answer());
    assert_eq!(types(&attached), types(&alone));
    let human = home.run(["run", "agent.yaml", "and again"]);
    assert_eq!(human.code, Some(0), "{human:?}");
    assert!(human.out.contains("in dev (pid ") && human.out.contains("✓ answered"), "{human:?}");
    assert_eq!(listed(&home, "answered").len(), 3);
    assert!(!dev.is_over());
    stop(dev);
    assert_eq!(violations(&home), []);
}

#[test]
fn text_streams_from_the_dev_to_the_run() {
    let home = Home::new();
    talker(&home);
    let mut command = home.command(["dev", "agent.yaml", "--json"]);
    command.env("SYSTOLE_REHEARSAL_PACE", "1");
    let mut dev = home.start_command(command);
    dev.until_printed("dev_started");
    let mut run = home.start(["run", "agent.yaml", "go", "--json"]);
    run.until_printed("\"delta\"");
    let cancelled = home.run(["cancel", "last"]);
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    let ended = run.end();
    let events = ended.events();
    let deltas = events.iter().filter(|event| event["type"] == "delta");
    let text: String = deltas.map(|event| event["delta"].as_str().unwrap()).collect();
    assert!(text.starts_with("begin "), "{text}");
    stop(dev);
}

#[test]
fn the_door_is_the_owners_alone_and_is_gone_with_the_dev() {
    let home = Home::new();
    quick(&home);
    let dev = up(&home, &["agent.yaml"]);
    let socket = home.store().with_extension("db.sock");
    assert_eq!(std::fs::metadata(&socket).unwrap().permissions().mode() & 0o777, 0o600);
    stop(dev);
    assert!(!socket.exists());
}

#[test]
fn several_agents_have_their_own_models_and_tools() {
    let home = Home::new();
    for name in ["one", "two"] {
        home.write(
            &format!("agents/{name}/agent.yaml"),
            &format!("name: {name}\nrole: You talk.\nmodel: same\ntools: []\n"),
        );
        home.write(
            &format!("agents/{name}/rehearsal.yaml"),
            &format!("rules:\n  - say: I am {name}\n"),
        );
    }
    let dev = up(&home, &[]);
    for name in ["two", "one"] {
        let ended = home.run(["run", &format!("agents/{name}/agent.yaml"), "who?", "--json"]);
        assert_eq!(ended.answer(), format!("I am {name}"));
    }
    stop(dev);
}

#[test]
fn a_waiting_call_is_approved_from_another_terminal() {
    let home = Home::new();
    dangerous(&home);
    let dev = up(&home, &["agent.yaml"]);
    let mut run = home.start(["run", "agent.yaml", "go", "--json"]);
    run.until_printed("approval_asked");
    assert_eq!(listed(&home, "waiting").len(), 1);
    let shown = home.run(["show", "last"]).out;
    assert!(shown.contains("… probe waits for your approval: systole approve "), "{shown}");
    let approved = home.run(["approve", "last"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    assert!(approved.out.starts_with("approved: probe ("), "{}", approved.out);
    run.end().answer();
    assert_eq!(home.read("effects"), "done\n");
    let again = home.run(["approve", "last"]);
    assert_eq!(again.code, Some(2), "nothing waits any more: {again:?}");
    stop(dev);
    assert_eq!(violations(&home), []);
}

#[test]
fn a_waiting_call_is_denied_with_a_reason_that_the_model_reads() {
    let home = Home::new();
    dangerous(&home);
    let dev = up(&home, &["agent.yaml"]);
    let mut run = home.start(["run", "agent.yaml", "go", "--json"]);
    run.until_printed("approval_asked");
    let denied = home.run(["approve", "last", "--deny", "--reason", "not on a Friday", "--json"]);
    assert_eq!(denied.last()["approved"], false, "{denied:?}");
    let ended = run.end();
    let observation = ended.observation_of("probe");
    assert_eq!(observation["code"], "denied");
    assert!(observation["content"].as_str().unwrap().contains("not on a Friday"), "{observation}");
    assert_eq!(home.read("effects"), "");
    stop(dev);
}

#[test]
fn a_word_given_while_nothing_runs_is_heard_later() {
    let home = Home::new();
    dangerous(&home);
    let dev = up(&home, &["agent.yaml"]);
    let mut run = home.start(["run", "agent.yaml", "go", "--json"]);
    run.until_printed("approval_asked");
    dev.kill();
    let left = run.end();
    assert_eq!(left.code, Some(4), "the dev is gone: {left:?}");
    assert_eq!(left.last()["type"], "interrupted");
    let approved = home.run(["approve", "last"]);
    assert_eq!(approved.code, Some(0), "{approved:?}");
    for part in ["nothing runs on this store; go on with: ", "run agent.yaml --thread 01"] {
        assert!(approved.out.contains(part), "{part} in {}", approved.out);
    }
    home.run(["run", "agent.yaml", "--json"]).answer();
    assert_eq!(home.read("effects"), "done\n");
    assert_eq!(violations(&home), []);
}

#[test]
fn a_denial_while_nothing_runs_tells_the_command_that_goes_on() {
    let home = Home::new();
    dangerous(&home);
    let dev = up(&home, &["agent.yaml"]);
    let mut run = home.start(["run", "agent.yaml", "go", "--json"]);
    run.until_printed("approval_asked");
    dev.kill();
    run.end();
    let denied = home.run(["approve", "last", "--deny"]);
    assert_eq!(denied.code, Some(0), "{denied:?}");
    let command = denied.out.split("go on with: ").nth(1).unwrap().trim();
    let words: Vec<&str> = command.split(' ').skip(1).chain(["--json"]).collect();
    let ended = home.run(words);
    assert_eq!(ended.observation_of("probe")["code"], "denied", "{ended:?}");
    assert_eq!(home.read("effects"), "");
}

#[test]
fn a_dev_that_was_killed_goes_on_where_it_was() {
    let home = Home::new();
    slow(&home);
    let dev = up(&home, &["agent.yaml"]);
    let run = home.start(["run", "agent.yaml", "go", "--json"]);
    until("the tool has begun", || home.path().join("began").exists());
    dev.kill();
    assert_eq!(run.end().code, Some(4));
    quick(&home);
    let mut dev = up(&home, &["agent.yaml"]);
    dev.until_printed("run_finished");
    assert_eq!(listed(&home, "answered").len(), 1);
    stop(dev);
    assert_eq!(violations(&home), []);
}

#[test]
fn a_second_dev_is_told_who_holds_the_store() {
    let home = Home::new();
    quick(&home);
    let dev = up(&home, &["agent.yaml"]);
    let second = home.run(["dev", "agent.yaml"]);
    assert_eq!(second.code, Some(5), "{second:?}");
    let pid = format!("process id {}", dev.pid());
    assert!(second.err.contains(&pid) && second.err.contains("agents: tester"), "{}", second.err);
    stop(dev);
}

#[test]
fn an_agent_that_the_dev_does_not_have_and_one_of_another_model_are_refused() {
    let home = Home::new();
    quick(&home);
    let dev = up(&home, &["agent.yaml", "--model", "other"]);
    home.write("other.yaml", "name: other\nrole: r\nmodel: m\ntools: []\n");
    let other = home.run(["run", "other.yaml", "go"]);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.err.contains("runs tester and not other"), "{}", other.err);
    let changed = home.run(["run", "agent.yaml", "go", "--json"]);
    assert_eq!(changed.last()["code"], "version_mismatch", "{changed:?}");
    stop(dev);
    assert_eq!(listed(&home, "empty").len(), 0, "nothing was begun");
}

#[test]
fn another_file_with_the_name_of_an_agent_is_refused_with_both_files() {
    let home = Home::new();
    quick(&home);
    for name in ["agent.yaml", "tools.yaml", "rehearsal.yaml"] {
        home.write(&format!("other/{name}"), &home.read(name));
    }
    home.write("other/agent.yaml", &home.read("agent.yaml").replace("You test", "You really test"));
    let dev = up(&home, &["agent.yaml"]);
    let ended = home.run(["run", "other/agent.yaml", "go"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    for part in ["/agent.yaml, not from ", "/other/agent.yaml", "another `name:`", "--store"] {
        assert!(ended.err.contains(part), "{part} in {}", ended.err);
    }
    stop(dev);
}

#[test]
fn a_run_in_a_dev_is_cancelled_and_ends_as_stopped() {
    let home = Home::new();
    slow(&home);
    let dev = up(&home, &["agent.yaml"]);
    let run = home.start(["run", "agent.yaml", "go", "--json"]);
    until("the tool has begun", || home.path().join("began").exists());
    let cancelled = home.run(["cancel", "last"]);
    assert!(cancelled.out.contains("stopped"), "{cancelled:?}");
    assert_eq!(run.end().code, Some(3));
    stop(dev);
    assert_eq!(violations(&home), []);
}

#[test]
fn leaving_a_run_does_not_stop_it() {
    let home = Home::new();
    let script = "[\"/bin/sh\", \"-c\", \"touch began; while [ ! -e go ]; do sleep 0.01; done\"]";
    with_tool(&home, &command(script, "read_only", "    timeout_ms: 60000\n"), "{}");
    let mut dev = up(&home, &["agent.yaml"]);
    let run = home.start(["run", "agent.yaml", "go", "--json"]);
    until("the tool has begun", || home.path().join("began").exists());
    run.signal(Signal::INT);
    let left = run.end();
    assert_eq!((left.code, left.last()["type"].as_str()), (Some(4), Some("interrupted")));
    home.write("go", "");
    dev.until_printed("run_finished");
    stop(dev);
}

#[test]
fn without_agents_a_dev_says_how_to_begin() {
    let home = Home::new();
    let ended = home.run(["dev"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("there is no agent here"), "{}", ended.err);
    assert!(!home.store().exists(), "nothing was started");
}

#[test]
fn two_tools_of_one_name_are_refused() {
    let home = Home::new();
    for name in ["one", "two"] {
        home.write(
            &format!("agents/{name}/agent.yaml"),
            &format!("name: {name}\nrole: r\nmodel: m\ntools: [probe]\n"),
        );
        let tool = command(&format!("[\"/bin/echo\", \"{name}\"]"), "read_only", "");
        home.write(
            &format!("agents/{name}/tools.yaml"),
            &format!("tools:\n  - name: probe\n{tool}"),
        );
        home.write(&format!("agents/{name}/rehearsal.yaml"), "rules:\n  - say: hi\n");
    }
    let ended = home.run(["dev"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("different tools of the name probe"), "{}", ended.err);
}

/// The address that a dev prints.
fn http(dev: &Running) -> Value {
    let line = dev.printed().lines().next().unwrap().to_owned();
    let started: Value = serde_json::from_str(&line).unwrap();
    started["http"].clone()
}

#[test]
fn a_dev_serves_its_threads_over_http() {
    let home = Home::new();
    quick(&home);
    let mut dev = up(&home, &["agent.yaml", "--listen", "127.0.0.1:0"]);
    let address = http(&dev).as_str().unwrap().to_owned();
    let order = json!({ "agent": "tester", "input": { "text": "go" } });
    let (status, begun) = post(&address, "/v1/threads", "", &order);
    assert_eq!(status, 201, "{begun}");
    let thread = begun["thread"].as_str().unwrap();
    let told = Events::open(&address, thread, None).until("run_finished");
    assert_eq!(told.last().unwrap()["outcome"], "answered");
    dev.until_printed("run_finished");
    let listed: Vec<Value> = listed(&home, "answered");
    assert_eq!(listed[0]["thread"], thread);
    stop(dev);
    assert_eq!(violations(&home), []);
}

#[test]
fn a_dev_does_not_need_the_usual_address_but_the_one_that_is_named() {
    let home = Home::new();
    quick(&home);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = home.run(["dev", "agent.yaml", "--listen", &address]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("cannot be listened on"), "{}", refused.err);
    let open = home.run(["dev", "agent.yaml", "--listen", "0.0.0.0:0"]);
    assert!(open.err.contains("without API keys"), "{}", open.err);
    let dev = up(&home, &["agent.yaml"]);
    assert_eq!(http(&dev), Value::Null, "the environment of tests says `off`");
    stop(dev);
}

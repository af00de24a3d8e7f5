//! A `dev` takes up files that change; what runs keeps what it began with.

use rustix::process::Signal;

use crate::agents::{command, with_tool};
use crate::home::{Home, Running, until};
use crate::journal::violations;

/// An agent whose tool says a word.
fn saying(home: &Home, word: &str) {
    let argv = format!("[\"/bin/echo\", \"{word}\"]");
    with_tool(home, &command(&argv, "read_only", "    timeout_ms: 60000\n"), "{}");
}

fn up(home: &Home, arguments: &[&str]) -> Running {
    let mut dev = home.start([&["dev", "--json"], arguments].concat());
    dev.until_printed("dev_started");
    dev
}

fn stop(dev: Running) {
    dev.signal(Signal::INT);
    let ended = dev.end();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.last()["type"], "dev_stopped");
}

fn answer(home: &Home, agent: &str) -> String {
    home.run(["run", agent, "go", "--new", "--json"]).answer()
}

#[test]
fn the_next_run_takes_what_was_written_last() {
    let home = Home::new();
    saying(&home, "fine");
    let mut dev = up(&home, &["agent.yaml"]);
    assert_eq!(answer(&home, "agent.yaml"), "It said: fine\n");
    saying(&home, "better");
    assert_eq!(answer(&home, "agent.yaml"), "It said: better\n", "the tool's file has changed");
    dev.until_printed("dev_reloaded");
    home.write("rehearsal.yaml", "rules:\n  - say: I only talk now.\n");
    assert_eq!(answer(&home, "agent.yaml"), "I only talk now.", "the rehearsal has changed");
    home.write("agent.yaml", &home.read("agent.yaml").replace("You test", "You really test"));
    assert_eq!(answer(&home, "agent.yaml"), "I only talk now.", "the agent's file has changed");
    assert_eq!(dev.printed().matches("dev_reloaded").count(), 3, "{}", dev.printed());
    stop(dev);
    assert_eq!(violations(&home), []);
}

#[test]
fn a_run_under_way_keeps_what_it_began_with() {
    let home = Home::new();
    let script =
        "[\"/bin/sh\", \"-c\", \"touch began; while [ ! -e go ]; do sleep 0.01; done; echo old\"]";
    with_tool(&home, &command(script, "read_only", "    timeout_ms: 60000\n"), "{}");
    let mut dev = up(&home, &["agent.yaml"]);
    let early = home.start(["run", "agent.yaml", "early", "--json"]);
    until("the tool has begun", || home.path().join("began").exists());
    saying(&home, "new");
    home.write("rehearsal.yaml", &home.read("rehearsal.yaml").replace("It said", "Now it says"));
    assert_eq!(answer(&home, "agent.yaml"), "Now it says: new\n");
    dev.until_printed("dev_reloaded");
    home.write("go", "");
    assert_eq!(early.end().answer(), "It said: old\n");
    let thread = home.run(["run", "agent.yaml", "more", "--thread", "last", "--json"]);
    assert_eq!(thread.answer(), "Now it says: new\n", "its next run takes the new ones");
    stop(dev);
    assert_eq!(violations(&home), []);
}

#[test]
fn a_file_that_cannot_be_used_is_told_and_the_last_good_one_stays() {
    let home = Home::new();
    saying(&home, "fine");
    for name in ["agent.yaml", "tools.yaml", "rehearsal.yaml"] {
        home.write(&format!("copy/{name}"), &home.read(name));
    }
    let mut dev = up(&home, &["agent.yaml"]);
    home.write("tools.yaml", &home.read("tools.yaml").replace("read_only", "harmless"));
    dev.until_printed("dev_not_reloaded");
    for part in ["tools.yaml:4:13", "effect", "Fix"] {
        assert!(dev.printed().contains(part), "{part} in {}", dev.printed());
    }
    assert_eq!(answer(&home, "copy/agent.yaml"), "It said: fine\n");
    home.write("agent.yaml", "name: [");
    dev.until_printed("agent.yaml:1");
    assert_eq!(answer(&home, "copy/agent.yaml"), "It said: fine\n");
    assert!(!dev.printed().contains("dev_reloaded"), "{}", dev.printed());
    home.write("agent.yaml", &home.read("copy/agent.yaml"));
    saying(&home, "mended");
    assert_eq!(answer(&home, "agent.yaml"), "It said: mended\n");
    stop(dev);
}

#[test]
fn whoever_asks_for_a_run_hears_that_files_could_not_be_taken_up() {
    let home = Home::new();
    saying(&home, "fine");
    let dev = up(&home, &["agent.yaml"]);
    let good = home.read("rehearsal.yaml");
    home.write("rehearsal.yaml", "rules:\n  - sya: hi\n");
    let ended = home.run(["run", "agent.yaml", "go"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in
        ["files as they were before they changed", "rehearsal.yaml:2:5", "Fix: leave it out"]
    {
        assert!(ended.out.contains(part), "{part} in {}", ended.out);
    }
    assert!(ended.out.contains("It said: fine"), "{}", ended.out);
    home.write("rehearsal.yaml", &good);
    let ended = home.run(["run", "agent.yaml", "go", "--new"]);
    assert!(!ended.out.contains("as they were before"), "{}", ended.out);
    stop(dev);
}

#[test]
fn a_change_is_told_with_its_time_and_its_files() {
    let home = Home::new();
    saying(&home, "fine");
    let mut dev = home.start(["dev", "agent.yaml"]);
    dev.until_printed("dev is up");
    saying(&home, "better");
    dev.until_printed("tools.yaml changed: tester begin runs as they are now");
    home.write("tools.yaml", &home.read("tools.yaml").replace("read_only", "harmless"));
    dev.until_printed("tools.yaml changed, but not in a way that can be used");
    let line = dev.printed();
    let line = line.lines().find(|line| line.contains("tools.yaml changed:")).unwrap();
    let time = line.split(' ').next().unwrap();
    assert_eq!(time.matches(':').count(), 2, "{line}");
    dev.signal(Signal::INT);
    assert_eq!(dev.end().code, Some(0));
}

#[test]
fn a_script_that_was_missing_is_taken_up_once_it_is_there() {
    let home = Home::new();
    saying(&home, "fine");
    let mut dev = up(&home, &["agent.yaml"]);
    with_tool(&home, &command("[sh, ./say.sh]", "read_only", "    timeout_ms: 60000\n"), "{}");
    dev.until_printed("dev_not_reloaded");
    home.write("say.sh", "echo scripted\n");
    dev.until_printed("dev_reloaded");
    assert_eq!(answer(&home, "agent.yaml"), "It said: scripted\n");
    stop(dev);
}

#[test]
fn an_agent_that_is_added_to_a_folder_is_taken_up() {
    let home = Home::new();
    let agent = |name: &str| format!("name: {name}\nrole: r\nmodel: m\ntools: []\n");
    home.write("agents/one/agent.yaml", &agent("one"));
    home.write("agents/one/rehearsal.yaml", "rules:\n  - say: I am one.\n");
    let dev = up(&home, &[]);
    home.write("agents/two/rehearsal.yaml", "rules:\n  - say: I am two.\n");
    home.write("agents/two/agent.yaml", &agent("two"));
    assert_eq!(answer(&home, "agents/two/agent.yaml"), "I am two.");
    stop(dev);
}

//! `systole freeze` and `thaw`: what is frozen does not start.

use rustix::process::Signal;

use crate::agents::{command, with_tool};
use crate::home::{Ended, Home};
use crate::journal::violations;

fn agent(home: &Home, effect: &str) {
    let script = "[\"/bin/sh\", \"-c\", \"echo done >> effects; echo done\"]";
    with_tool(home, &command(script, effect, "    timeout_ms: 5000\n    approval: never\n"), "{}");
}

fn run(home: &Home) -> Ended {
    home.run(["run", "agent.yaml", "go", "--json"])
}

fn is_frozen(ended: &Ended, words: &str) {
    let observation = ended.observation_of("probe");
    assert_eq!(observation["code"], "frozen", "{observation}");
    assert!(observation["content"].as_str().unwrap().contains(words), "{observation}");
    assert!(!ended.out.contains("tool_started"), "{}", ended.out);
    ended.answer();
}

#[test]
fn nothing_irreversible_starts_until_it_is_thawed() {
    let home = Home::new();
    agent(&home, "irreversible");
    let frozen = home.run(["freeze", "--all", "--reason", "incident 7"]);
    assert_eq!(frozen.code, Some(0), "{frozen:?}");
    assert!(frozen.out.contains("frozen every irreversible tool by "), "{}", frozen.out);
    is_frozen(&run(&home), "incident 7");
    is_frozen(&run(&home), "every irreversible tool");
    assert_eq!(home.read("effects"), "", "another process, and it still holds");
    let shown = home.run(["run", "agent.yaml", "go on"]);
    assert!(shown.out.contains("incident 7"), "people are told: {}", shown.out);
    let thawed = home.run(["thaw", "--all"]);
    let told = "thawed every irreversible tool\nnothing is frozen\n";
    assert_eq!((thawed.code, thawed.out.as_str()), (Some(0), told), "{thawed:?}");
    assert_eq!(run(&home).observation_of("probe")["content"], "done\n");
    assert_eq!(home.read("effects"), "done\n");
    assert_eq!(violations(&home), []);
}

#[test]
fn what_may_be_repeated_runs_unless_it_is_frozen_by_name() {
    let home = Home::new();
    agent(&home, "read_only");
    home.run(["freeze", "--all", "--tenant", "default"]);
    assert_eq!(run(&home).observation_of("probe")["content"], "done\n");
    home.run(["thaw", "--all", "--tenant", "default"]);
    home.run(["freeze", "--tool", "probe"]);
    is_frozen(&run(&home), "the tool probe");
}

#[test]
fn a_tenant_is_frozen_alone() {
    let home = Home::new();
    agent(&home, "irreversible");
    home.run(["freeze", "--tenant", "others"]);
    assert_eq!(run(&home).observation_of("probe")["content"], "done\n");
    home.run(["freeze", "--tenant", "default"]);
    is_frozen(&run(&home), "tenant default");
}

#[test]
fn a_dev_that_is_up_heeds_a_freeze_at_once() {
    let home = Home::new();
    agent(&home, "irreversible");
    let mut dev = home.start(["dev", "agent.yaml", "--json"]);
    dev.until_printed("dev_started");
    assert_eq!(run(&home).observation_of("probe")["content"], "done\n");
    home.run(["freeze", "--tool", "probe"]);
    is_frozen(&run(&home), "the tool probe");
    home.run(["thaw", "--tool", "probe"]);
    assert_eq!(run(&home).observation_of("probe")["content"], "done\n");
    dev.signal(Signal::INT);
    assert_eq!(dev.end().code, Some(0));
    assert_eq!(home.read("effects"), "done\ndone\n");
    assert_eq!(violations(&home), []);
}

#[test]
fn what_is_not_frozen_cannot_be_thawed() {
    let home = Home::new();
    let ended = home.run(["thaw", "--tool", "probe"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("was not frozen"), "{}", ended.err);
    assert_eq!(home.run(["thaw"]).code, Some(2));
    assert_eq!(home.run(["freeze"]).out, "nothing is frozen\n");
}

#[test]
fn thawing_all_lets_go_of_every_freeze_and_says_of_which() {
    let home = Home::new();
    home.run(["freeze", "--tool", "probe", "--tenant", "default"]);
    let thawed = home.run(["thaw", "--all"]);
    let told = "thawed the irreversible tools of tenant default\nthawed the tool probe\n\
                nothing is frozen\n";
    assert_eq!((thawed.code, thawed.out.as_str()), (Some(0), told), "{thawed:?}");
    let again = home.run(["thaw", "--all"]);
    assert_eq!(again.code, Some(2), "{again:?}");
    assert!(again.err.contains("nothing is frozen"), "{}", again.err);
}

#[test]
fn a_name_that_nothing_knows_is_frozen_with_a_warning() {
    let home = Home::new();
    agent(&home, "irreversible");
    let known = home.run(["freeze", "--tool", "probe", "--tenant", "default"]);
    assert_eq!((known.code, known.err.as_str()), (Some(0), ""), "{known:?}");
    let slip = home.run(["freeze", "--tool", "prbe", "--tenant", "defualt"]);
    assert_eq!(slip.code, Some(0), "{slip:?}");
    assert!(slip.out.contains("the tool prbe"), "it may come later: {}", slip.out);
    for words in ["no tool prbe is known", "mean probe?", "tenant defualt", "mean default?"] {
        assert!(slip.err.contains(words), "{words} in {}", slip.err);
    }
}

/// The files of the agent lie elsewhere by now; the store still knows what ran on it.
#[test]
fn a_tool_that_ran_on_the_store_is_known() {
    let home = Home::new();
    agent(&home, "read_only");
    run(&home).answer();
    home.write("agent.yaml", "");
    let known = home.run(["freeze", "--tool", "probe"]);
    assert_eq!((known.code, known.err.as_str()), (Some(0), ""), "{known:?}");
}

#[test]
fn a_freeze_is_listed_with_who_and_when() {
    let home = Home::new();
    let mut freeze = home.command(["freeze", "--all", "--reason", "test"]);
    freeze.env("USER", "ann");
    let out = crate::home::finish(freeze).out;
    let (before, at) = out.split_once(" at ").unwrap();
    assert!(before.starts_with("frozen every irreversible tool by ann@"), "{out}");
    assert!(at.starts_with("20") && at.ends_with("Z: test\n") && at.contains('T'), "{out}");
}

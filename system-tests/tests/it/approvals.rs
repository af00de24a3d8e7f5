//! Approvals without a terminal.

use crate::agents::dangerous;
use crate::home::Home;

#[test]
fn without_a_terminal_a_call_is_denied_and_the_observation_says_so() {
    let home = Home::new();
    dangerous(&home);
    let ended = home.run(["run", "agent.yaml", "go", "--json"]);
    let observation = ended.observation_of("probe");
    assert_eq!(observation["code"], "denied", "{observation}");
    let content = observation["content"].as_str().unwrap();
    assert!(content.contains("no terminal") && content.contains("--approve probe"), "{content}");
    ended.answer();
    assert_eq!(home.read("effects"), "");
}

#[test]
fn a_tool_that_is_approved_beforehand_runs() {
    let home = Home::new();
    dangerous(&home);
    let ended = home.run(["run", "agent.yaml", "go", "--json", "--approve", "probe"]);
    assert_eq!(ended.observation_of("probe")["content"], "done\n", "{}", ended.out);
    ended.answer();
    assert_eq!(home.read("effects"), "done\n");
}

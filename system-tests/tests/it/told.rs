//! What is told of failures: the code, the telling line, the whole of an observation.

use crate::agents::{command, talker, with_tool};
use crate::home::Home;

#[test]
fn a_request_that_no_rule_fits_has_its_own_code_and_no_warnings() {
    let home = Home::new();
    talker(&home);
    home.write("rehearsal.yaml", "rules:\n  - when: { last: tool }\n    say: hello\n");
    let ended = home.run(["run", "agent.yaml", "go", "--json"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(ended.last()["code"], "no_rule_matched", "{}", ended.last());
    assert_eq!(ended.err, "");
    let people = home.run(["run", "agent.yaml", "go", "--new"]);
    assert!(people.out.contains("✗ failed (no rule matched)"), "{}", people.out);
}

#[test]
fn a_model_that_does_not_answer_yet_is_one_line_a_try() {
    let home = Home::new();
    talker(&home);
    home.write("rehearsal.yaml", "rules:\n  - fail: { status: 503, times: 1 }\n    say: hello\n");
    let ended = home.run(["run", "agent.yaml", "go", "--json"]);
    ended.answer();
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    assert!(
        ended.err.contains("asking the model again in") && ended.err.contains("(2 of 3)"),
        "{}",
        ended.err
    );
    let people = home.run(["run", "agent.yaml", "go", "--new"]);
    assert_eq!(people.err, "", "it belongs between the lines of the run");
    let line = people.out.lines().find(|line| line.contains("asking the model again in"));
    assert!(
        line.is_some_and(|line| line.contains("because") && line.contains("503")),
        "{people:?}"
    );
    assert_eq!(people.out.matches("── turn 1").count(), 1, "{}", people.out);
}

#[test]
fn an_answer_in_which_nobody_sees_anything_is_an_empty_one() {
    let home = Home::new();
    talker(&home);
    home.write("rehearsal.yaml", "rules:\n  - say: \"\\u200b \\uFEFF\"\n");
    let answer = home.run(["run", "agent.yaml", "go", "--json"]).answer();
    assert!(answer.starts_with("The agent ended without a word."), "{answer:?}");
}

#[test]
fn with_a_key_the_hint_does_not_ask_for_one() {
    let home = Home::new();
    talker(&home);
    home.write("rehearsal.yaml", "rules:\n  - say: hello\n");
    let without = home.run(["run", "agent.yaml", "go"]);
    assert!(without.out.contains("(OPENAI_API_KEY asks a real model)"), "{}", without.out);
    let mut with = home.command(["run", "agent.yaml", "go", "--new", "--rehearsed"]);
    with.env("OPENAI_API_KEY", "sk-something-long-enough");
    let with = crate::home::finish(with);
    assert!(with.out.contains("(a real model is asked without --rehearsed)"), "{}", with.out);
}

#[test]
fn a_call_whose_tool_is_gone_is_told_with_the_wait() {
    let home = Home::new();
    let script = "[\"/bin/sh\", \"-c\", \"touch began; sleep 60\"]";
    with_tool(&home, &command(script, "read_only", "    timeout_ms: 90000\n"), "{}");
    let run = home.start(["run", "agent.yaml", "go"]);
    crate::home::until("the tool has begun", || home.path().join("began").exists());
    assert!(run.kill());
    home.write("agent.yaml", &home.read("agent.yaml").replace("[probe]", "[]"));
    home.write("tools.yaml", "tools: []\n");
    home.write("rehearsal.yaml", "rules:\n  - say: never mind\n");
    let mut again = home.start(["run", "agent.yaml", "go"]);
    again.until_printed("waits for the tool probe, which no tool file of this agent has any more");
    again.until_printed("it is given up in ");
    assert_eq!(home.run(["cancel", "last"]).code, Some(0));
    again.end();
}

#[test]
fn an_answer_that_breaks_the_output_schema_is_told() {
    let home = Home::new();
    talker(&home);
    home.write("rehearsal.yaml", "rules:\n  - say: no JSON\n");
    let agent = home.read("agent.yaml");
    home.write("agent.yaml", &format!("{agent}output_schema: {{ type: object }}\n"));
    let ended = home.run(["run", "agent.yaml", "go", "--json"]);
    assert_eq!(ended.last()["unevaluated"], true, "{}", ended.last());
    let people = home.run(["run", "agent.yaml", "go", "--new"]);
    assert!(people.out.contains("not seen to meet the agent's output_schema"), "{}", people.out);
}

#[test]
fn a_traceback_is_whole_in_show_and_bounded_in_a_pipe() {
    let home = Home::new();
    let script =
        "for i in $(seq 30); do echo line $i of a long tale that goes on; done >&2; exit 3";
    let argv = format!("[/bin/sh, -c, \"{script}\"]");
    let more = "    timeout_ms: 5000\n    retry: { max_attempts: 1 }\n    result_tokens: 2000\n";
    with_tool(&home, &command(&argv, "read_only", more), "{}");
    let ended = home.run(["run", "agent.yaml", "go"]);
    assert!(ended.out.contains("more; `systole show` has them"), "{}", ended.out);
    let tale = |text: &str| text.lines().filter(|line| line.starts_with("      line")).count();
    assert!(tale(&ended.out) < 11, "{}", ended.out);
    let shown = home.run(["show", "last"]);
    assert!(tale(&shown.out) > 11, "{}", shown.out);
}

#[test]
fn tries_are_counted_within_rounds_that_are_named() {
    let home = Home::new();
    talker(&home);
    home.write("rehearsal.yaml", "rules:\n  - fail: { status: 503, times: 4 }\n    say: hello\n");
    let ended = home.run(["run", "agent.yaml", "go", "--json"]);
    ended.answer();
    let counts = ended.err.lines().filter_map(|line| line.split(['(', ')']).nth(1));
    let counts: Vec<_> = counts.collect();
    assert_eq!(counts, ["2 of 3", "3 of 3", "2 of 3, round 2"], "{}", ended.err);
}

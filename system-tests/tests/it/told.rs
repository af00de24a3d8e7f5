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
        ended.err.contains("trying again in") && ended.err.contains("(2 of 3)"),
        "{}",
        ended.err
    );
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

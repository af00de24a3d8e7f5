//! What is told about a rehearsal file that is wrong.

use expect_test::expect;
use rehearsal::case::Sheet;
use rehearsal::script::Script;

#[test]
fn every_problem_of_a_file_is_told_at_once() {
    let text = r#"
pace: { tokens_per_second: fast }
rules:
  - when: { last: robot, user_matches: '(', turn: { abov: 1 } }
    say: "Hello {{usr.name}} {{user"
  - say: "{{observed}}"
    calls: [{ arguments: { a: "{{}}" } }]
  - when: { observed: { t: { x: { matches: 5 } } } }
  - fail: { retry_after: 2 }
    finish: never
  - say: always
  - say: hidden
    sey: typo
"#;
    let problems = Script::parse("rehearsal.yaml", text).unwrap_err();
    let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
    expect![[r#"
        rehearsal.yaml:2:28: pace.tokens_per_second: expected a number from 0.1 to 100000; found "fast". Fix: write such a number without quotes
        rehearsal.yaml:4:19: rules[0].when.last: expected one of user, tool; found "robot". Fix: write one of them
        rehearsal.yaml:4:40: rules[0].when.user_matches: expected a regular expression; found unclosed group. Fix: correct it; write it in 'single quotes'
        rehearsal.yaml:4:53: rules[0].when.turn.abov: expected a known field; found an unknown field. Fix: did you mean `above`? Else leave it out
        rehearsal.yaml:5:10: rules[0].say: expected text with `{{path}}` for values; found `{{usr.name}}`, which begins with none of user, input, observed, turn, open. Fix: use user, input.path, observed.tool.path or turn
        rehearsal.yaml:6:10: rules[1].say: expected text with `{{path}}` for values; found `{{observed}}`, which is not a whole path. Fix: use user, input.path, observed.tool.path or turn
        rehearsal.yaml:7:13: rules[1].calls[0].tool: expected the tool to call; found nothing. Fix: add `tool: …`
        rehearsal.yaml:7:31: rules[1].calls[0].arguments.a: expected text with `{{path}}` for values; found `{{}}`, which begins with none of user, input, observed, turn, open. Fix: use user, input.path, observed.tool.path or turn
        rehearsal.yaml:8:5: rules[2]: expected a rule that does something; found only its condition. Fix: add `say: …`, `calls: […]` or `fail: …`
        rehearsal.yaml:8:44: rules[2].when.observed.t.x.matches: expected text; found 5. Fix: write text, in quotes if it looks like a number
        rehearsal.yaml:9:11: rules[3].fail: expected either `status` or `cut_after`; found a map of retry_after. Fix: write one of the two
        rehearsal.yaml:10:13: rules[3].finish: expected one of stop, tool_calls, length; found "never". Fix: write one of them
        rehearsal.yaml:12:5: rules[5]: expected a rule that can be reached; found one behind rules[4], which fits every request. Fix: move it in front of that one
        rehearsal.yaml:13:5: rules[5].sey: expected a known field; found an unknown field. Fix: did you mean `say`? Else leave it out"#]].assert_eq(&lines.join("\n"));
}

#[test]
fn the_examples_of_the_page_load() {
    let page = include_str!("../../../../docs/rehearsals.md");
    let examples: Vec<&str> = page.split("```yaml\n").skip(1).collect();
    assert_eq!(examples.len(), 2);
    for example in examples {
        let text = example.split("```").next().unwrap();
        Sheet::parse("r.yaml", text).unwrap_or_else(|problems| panic!("{}", problems[0]));
    }
}

#[test]
fn a_file_needs_rules() {
    for (text, found) in [
        (
            "{}",
            "rehearsal.yaml:1:1: rules: expected a list of rules; found nothing. Fix: add `rules: …`",
        ),
        (
            "rules: []",
            "rehearsal.yaml:1:8: rules: expected at least one rule; found a list of 0. Fix: add `- when: { last: user }` with `say: …`",
        ),
        (
            "- say: a",
            "rehearsal.yaml:1:1: expected a map of fields; found a list of 1. Fix: write `name: value` lines here",
        ),
    ] {
        let problems = Script::parse("rehearsal.yaml", text).unwrap_err();
        assert_eq!(problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [found]);
    }
}

//! `systole rehearse`: rehearsals as tests.

use std::path::PathBuf;

use serde_json::json;

use crate::agents::{command, with_tool};
use crate::home::{Home, finish};

fn shipped(agent: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../agents");
    path.canonicalize().unwrap().join(agent).join("agent.yaml").display().to_string()
}

/// An agent whose one tool would leave a trace, with a case.
fn with_case(home: &Home, case: &str) {
    let tool = command(
        "[\"/bin/sh\", \"-c\", \"echo done >> effects; echo done\"]",
        "irreversible",
        "    timeout_ms: 5000\n",
    );
    with_tool(home, &tool, "{}");
    home.write("rehearsals/all.yaml", &format!("cases:\n  - name: one\n    input: go\n{case}"));
}

#[test]
fn the_ready_agents_do_what_their_cases_say() {
    for (agent, cases) in [("ops", 6), ("code", 4)] {
        let home = Home::new();
        let ended = home.run(["rehearse", &shipped(agent)]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let words = format!("{cases} of {cases} cases as expected");
        assert!(ended.out.contains(&words), "{}", ended.out);
        assert!(!home.store().exists(), "each case has a store of its own");
    }
}

#[test]
fn a_stand_in_speaks_and_the_tool_is_not_started() {
    let home = Home::new();
    with_case(
        &home,
        "    tools: { probe: all good }\n    expect: { answer: { matches: all good } }\n",
    );
    let ended = home.run(["rehearse", "agent.yaml"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(home.read("effects"), "");
}

#[test]
fn an_irreversible_tool_without_a_stand_in_is_dry() {
    let home = Home::new();
    with_case(&home, "    expect: { answer: { matches: DRY RUN } }\n");
    let ended = home.run(["rehearse", "agent.yaml"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(home.read("effects"), "");
}

#[test]
fn a_difference_is_shown_and_fails() {
    let home = Home::new();
    with_case(
        &home,
        "    tools: { probe: all good }\n    expect: { calls: [other], answer: 'It said: all bad' }\n",
    );
    let ended = home.run(["rehearse", "agent.yaml"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for part in [
        "✗ one  rehearsals/all.yaml:2",
        "- call other",
        "+ call probe",
        "- answer equals \"It said: all bad\"",
        "+ answer is \"It said: all good\"",
        "0 of 1 cases as expected",
    ] {
        assert!(ended.out.contains(part), "`{part}` is missing:\n{}", ended.out);
    }
    let told = home.run(["rehearse", "agent.yaml", "--json"]).last();
    assert_eq!((&told["passed"], &told["outcome"]), (&json!(false), &json!("answered")), "{told}");
}

#[test]
fn a_rehearsal_without_a_matching_rule_says_which_message_no_rule_matched() {
    let home = Home::new();
    with_case(&home, "    tools: { probe: all good }\n");
    let rules = home.read("rehearsal.yaml");
    let (first, _) = rules.split_once("  - when: { last: tool }").unwrap();
    home.write("rehearsal.yaml", first);
    let ended = home.run(["rehearse", "agent.yaml"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for part in ["no rule of the rehearsal fits", "an observation of probe", "all good"] {
        assert!(ended.out.contains(part), "`{part}` is missing:\n{}", ended.out);
    }
}

#[test]
fn mistakes_in_files_are_told_and_nothing_is_played() {
    let home = Home::new();
    with_case(&home, "    expcet: {}\n");
    let wrong = home.run(["rehearse", "agent.yaml"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(wrong.err.contains("rehearsals/all.yaml:4:"), "{}", wrong.err);
    assert!(wrong.err.contains("did you mean `expect`"), "{}", wrong.err);
    with_case(&home, "    tools: { prob: hi }\n");
    let unknown = home.run(["rehearse", "agent.yaml"]);
    assert_eq!(unknown.code, Some(2), "{unknown:?}");
    assert!(unknown.err.contains("does not have: prob"), "{}", unknown.err);
    std::fs::remove_dir_all(home.path().join("rehearsals")).unwrap();
    let none = home.run(["rehearse", "agent.yaml"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.err.contains("there is no case"), "{}", none.err);
}

#[test]
fn the_user_of_a_case_may_speak_while_the_run_is_under_way() {
    let home = Home::new();
    with_case(
        &home,
        "    steer: [{ during: 1, text: louder }]\n    tools: { probe: all good }\n    \
         expect: { turns: 2, calls: [probe], answer: LOUD }\n",
    );
    let rules = home.read("rehearsal.yaml");
    let rule = "rules:\n  - when: { user_matches: louder }\n    say: LOUD\n";
    home.write("rehearsal.yaml", &rules.replace("rules:\n", rule));
    let ended = home.run(["rehearse", "agent.yaml"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    with_case(&home, "    steer: [{ during: soon, text: louder }]\n");
    let wrong = home.run(["rehearse", "agent.yaml"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
    assert!(
        wrong.err.contains("rehearsals/all.yaml:4:") && wrong.err.contains("during"),
        "{wrong:?}"
    );
}

#[test]
fn a_rehearsal_alone_is_played_by_the_agent_beside_it() {
    let home = Home::new();
    with_case(&home, "    tools: { probe: all good }\n    expect: { calls: [probe] }\n");
    for file in ["rehearsals/all.yaml", "rehearsal.yaml"] {
        home.write("rehearsal.yaml", &with_cases(&home));
        let ended = home.run(["rehearse", file]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.out.contains("1 of 1 cases as expected"), "{}", ended.out);
    }
    home.write("elsewhere/some.yaml", &home.read("rehearsals/all.yaml"));
    let ended = home.run(["rehearse", "elsewhere/some.yaml"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let fix = "systole rehearse AGENT elsewhere/some.yaml";
    assert!(ended.err.contains(fix), "{}", ended.err);
}

/// The agent's rehearsal with the cases in it.
fn with_cases(home: &Home) -> String {
    let rules = home.read("rehearsal.yaml");
    let (rules, _) = rules.split_once("cases:").unwrap_or((&rules, ""));
    format!("{rules}{}", home.read("rehearsals/all.yaml"))
}

#[test]
fn a_copied_folder_is_changed_and_the_original_is_not() {
    let home = Home::new();
    let tool = "    description: Appends a line to the notes and shows all of them.\n    \
                effect: idempotent\n    timeout_ms: 5000\n    parameters: {}\n    run:\n      \
                command: [/bin/sh, -c, 'echo more >> $NOTES/notes; cat $NOTES/notes']\n      \
                env: [NOTES]\n";
    with_tool(&home, tool, "{}");
    home.write("notes/notes", "first\n");
    home.write(
        "rehearsals/all.yaml",
        "cases:\n  - name: one\n    input: go\n    copies: { NOTES: ../notes }\n    \
         expect: { answer: { matches: '(?s)first.more' } }\n",
    );
    let mut command = home.command(["rehearse", "agent.yaml"]);
    command.env("TMPDIR", home.path());
    let ended = finish(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(home.read("notes/notes"), "first\n");
    let left = std::fs::read_dir(home.path()).unwrap();
    let names = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(!names.into_iter().any(|name| name.starts_with("systole-")), "nothing is left behind");
}

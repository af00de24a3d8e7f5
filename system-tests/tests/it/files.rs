//! Wrong files and wrong words: what is told, and exit code 2.

use crate::agents::{command, talker, with_tool};
use crate::home::Home;

fn refusal(home: &Home, arguments: &[&str]) -> String {
    let ended = home.run(arguments);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(ended.out, "");
    assert!(!home.store().exists(), "nothing was started");
    ended.err
}

#[test]
fn a_wrong_agent_file_is_told_with_line_field_and_fix() {
    let home = Home::new();
    home.write("agent.yaml", "name: a b\nrole: r\nmodel: m\ntools: []\nlimits: { max_turns: 0 }\n");
    let told = refusal(&home, &["run", "agent.yaml", "go"]);
    assert!(told.contains("agent.yaml:1:7: name: expected"), "{told}");
    assert!(told.contains("agent.yaml:5:22: limits.max_turns: expected"), "{told}");
    assert!(told.contains("Fix:"), "{told}");
}

#[test]
fn a_wrong_manifest_is_told_with_line_field_and_fix() {
    let home = Home::new();
    with_tool(&home, &command("[\"/bin/true\"]", "harmless", ""), "{}");
    let told = refusal(&home, &["run", "agent.yaml", "go"]);
    assert!(told.contains("tools.yaml:4:13: tools[0].effect: expected"), "{told}");
}

#[test]
fn a_wrong_rehearsal_is_told_with_line_field_and_fix() {
    let home = Home::new();
    talker(&home);
    home.write("rehearsal.yaml", "rules:\n  - sey: hello\n");
    let told = refusal(&home, &["run", "agent.yaml", "go"]);
    assert!(told.contains("rehearsal.yaml:2:"), "{told}");
}

#[test]
fn a_missing_file_and_a_missing_tool_are_named() {
    let home = Home::new();
    let told = refusal(&home, &["run", "nowhere.yaml", "go"]);
    assert!(told.contains("nowhere.yaml: there is no such file"), "{told}");
    with_tool(&home, &command("[\"/bin/true\"]", "read_only", ""), "{}");
    home.write("agent.yaml", "name: a\nrole: r\nmodel: m\ntools: [prob]\n");
    let told = refusal(&home, &["run", "agent.yaml", "go"]);
    assert!(told.contains("agent.yaml:4:9: tools[0]") && told.contains("`probe`"), "{told}");
}

#[test]
fn without_a_model_and_without_words_nothing_starts() {
    let home = Home::new();
    home.write("agent.yaml", "name: a\nrole: r\nmodel: m\ntools: []\n");
    let told = refusal(&home, &["run", "agent.yaml", "go"]);
    assert!(told.contains("OPENAI_API_KEY"), "{told}");
    talker(&home);
    let ended = home.run(["run", "agent.yaml"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("no unfinished run"), "{}", ended.err);
}

#[test]
fn a_failure_is_an_event_for_programs() {
    let home = Home::new();
    let ended = home.run(["run", "nowhere.yaml", "go", "--json"]);
    assert_eq!(ended.code, Some(2));
    let last = ended.last();
    assert_eq!((last["type"].as_str(), last["code"].as_str()), (Some("error"), Some("not_found")));
}

#[test]
fn tools_check_tells_mistakes_and_advice() {
    let home = Home::new();
    with_tool(&home, &command("[\"/bin/true\"]", "read_only", ""), "{}");
    let good = home.run(["tools", "check", "tools.yaml", "agent.yaml", "rehearsal.yaml"]);
    assert_eq!(good.code, Some(0), "{good:?}");
    assert!(good.out.contains("3 files, 1 tool: 0 wrong"), "{}", good.out);
    assert!(good.out.contains("timeout_ms"), "advice about the timeout: {}", good.out);
    home.write("bad.yaml", "tools:\n  - name: a\n    efect: read_only\n");
    let bad = home.run(["tools", "check", "bad.yaml", "--json"]);
    assert_eq!(bad.code, Some(2), "{bad:?}");
    let told = bad.last();
    assert_eq!(told["problems"][0]["file"], "bad.yaml", "{told}");
    assert!(told["problems"][0]["line"].as_u64().unwrap() > 0, "{told}");
}

#[test]
fn the_ready_agents_are_clean() {
    let home = Home::new();
    let agents = concat!(env!("CARGO_MANIFEST_DIR"), "/../agents/ops");
    let files =
        ["agent.yaml", "tools.yaml", "rehearsal.yaml"].map(|file| format!("{agents}/{file}"));
    let mut arguments = vec!["tools".to_owned(), "check".to_owned()];
    arguments.extend(files);
    let checked = home.run(&arguments);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.out.contains("0 wrong, 0 pieces of advice"), "{}", checked.out);
}

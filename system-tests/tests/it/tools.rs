//! Tools that misbehave: each becomes an observation, and the run lives.

use crate::agents::{command, with_tool};
use crate::deployment::Node;
use crate::home::{Ended, Home};

fn observed(argv: &str, more: &str) -> (serde_json::Value, Ended) {
    let home = Home::new();
    with_tool(
        &home,
        &command(argv, "read_only", &format!("    retry: {{ max_attempts: 1 }}\n{more}")),
        "{}",
    );
    let ended = home.run(["run", "agent.yaml", "go", "--json"]);
    ended.answer();
    (ended.observation_of("probe"), ended)
}

/// A run whose model asks for what the agent does not have. A run refuses such a rehearsal, so an
/// endpoint plays it.
fn run_of_a_model_that_errs(home: &Home) -> Ended {
    let words = ["rehearse", "serve", "rehearsal.yaml", "--listen", "127.0.0.1:0"];
    let model = Node::start(home, "model", &words);
    home.run(["run", "agent.yaml", "go", "--json", "--base-url", &model.url()])
}

fn content(observation: &serde_json::Value) -> &str {
    observation["content"].as_str().unwrap()
}

#[test]
fn a_tool_that_hangs_is_ended_at_its_limit() {
    let (observation, _) = observed("[\"/bin/sleep\", \"600\"]", "    timeout_ms: 500\n");
    assert_eq!(observation["code"], "timed_out", "{observation}");
}

#[test]
fn a_tool_that_floods_is_cut_and_memory_stays_bounded() {
    let home = Home::new();
    let argv = "[\"/bin/sh\", \"-c\", \"head -c 1073741824 /dev/zero | tr '\\\\0' x; echo end\"]";
    with_tool(&home, &command(argv, "read_only", "    timeout_ms: 60000\n"), "{}");
    let mut running = home.start(["run", "agent.yaml", "go", "--json"]);
    let mut most = 0;
    while !running.is_over() {
        most = most.max(running.most_memory().unwrap_or(0));
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let ended = running.end();
    ended.answer();
    let observation = ended.observation_of("probe");
    assert_eq!(observation.get("code"), None, "{observation}");
    assert!(content(&observation).len() < 10_000);
    assert!(most > 0 && most < 400 * 1024 * 1024, "{most} bytes of memory");
}

#[test]
fn a_tool_that_crashes_says_so() {
    let (observation, _) = observed("[\"/bin/sh\", \"-c\", \"echo before; kill -SEGV $$\"]", "");
    assert_eq!(observation["code"], "tool_crashed", "{observation}");
    assert!(content(&observation).contains("before"), "{observation}");
}

#[test]
fn an_effect_that_was_cut_off_is_in_doubt_and_not_repeated() {
    let home = Home::new();
    let argv = "[\"/bin/sh\", \"-c\", \"echo once >> effects; kill -SEGV $$\"]";
    with_tool(&home, &command(argv, "irreversible", ""), "{}");
    let ended = home.run(["run", "agent.yaml", "go", "--json"]);
    ended.answer();
    assert_eq!(ended.observation_of("probe")["code"], "in_doubt", "{}", ended.out);
    assert_eq!(home.read("effects"), "once\n");
}

#[test]
fn a_tool_that_fails_tells_why() {
    let (observation, _) = observed("[\"/bin/sh\", \"-c\", \"echo no such host >&2; exit 3\"]", "");
    assert_eq!(observation["code"], "tool_failed", "{observation}");
    assert!(content(&observation).contains("no such host"), "{observation}");
}

#[test]
fn a_tool_that_is_not_there_was_never_started() {
    let (observation, _) = observed("[not-there-at-all]", "");
    assert_eq!(observation["code"], "tool_not_started", "{observation}");
}

#[test]
fn invalid_text_and_half_an_emoji_become_text() {
    let (observation, _) = observed("[\"/usr/bin/printf\", \"a\\\\377b\\\\360\\\\237\"]", "");
    let content = content(&observation);
    assert!(content.contains("a\u{fffd}b\u{fffd}"), "{content:?}");
    assert!(content.contains("not valid UTF-8"), "{content:?}");
}

#[test]
fn invalid_arguments_are_told_with_field_rule_and_fix_and_nothing_runs() {
    let home = Home::new();
    let parameters =
        "    parameters: { city: { type: string, required: true, description: A city. } }\n";
    let tool = command("[\"/usr/bin/touch\", \"ran\"]", "irreversible", "")
        .replace("    parameters: {}\n", parameters);
    with_tool(&home, &tool, "{ town: Bonn }");
    let ended = run_of_a_model_that_errs(&home);
    ended.answer();
    let events = ended.events();
    let observation = events.iter().find(|event| event["type"] == "observation").unwrap();
    assert_eq!(observation["code"], "invalid_arguments", "{observation}");
    assert!(content(observation).contains("city"), "{observation}");
    assert!(!home.path().join("ran").exists());
}

#[test]
fn an_unknown_tool_is_an_observation() {
    let home = Home::new();
    with_tool(&home, &command("[\"/bin/true\"]", "read_only", ""), "{}");
    let script = home.read("rehearsal.yaml").replace("- tool: probe", "- tool: prober");
    home.write("rehearsal.yaml", &script);
    let ended = run_of_a_model_that_errs(&home);
    let events = ended.events();
    let observation = events.iter().find(|event| event["type"] == "observation").unwrap();
    assert_eq!(observation["code"], "unknown_tool", "{observation}");
    ended.answer();
}

#[test]
fn a_long_result_is_shortened_as_the_tool_file_says() {
    let home = Home::new();
    let script = "seq -f '{\\\"id\\\":%g,\\\"words\\\":\\\"long long long\\\"}' -s, 1 200";
    let argv = format!(
        "[\"/bin/sh\", \"-c\", \"printf '{{\\\"status\\\":\\\"up\\\",\\\"items\\\":['; {script}; printf ']}}'\"]"
    );
    let more = "    result_tokens: 60\n    shape: { keep: [/status, /items/*/id], rows: 3 }\n";
    with_tool(&home, &command(&argv, "read_only", more), "{}");
    let ended = home.run(["run", "agent.yaml", "go", "--json"]);
    let observation = ended.observation_of("probe");
    let content = observation["content"].as_str().unwrap();
    for part in ["[Kept of the result: /status, /items/*/id.]", "[items: 3 of 200 items shown]"] {
        assert!(content.contains(part), "{content}");
    }
    assert!(
        content.contains(r#"{"items":[{"id":1},{"id":100},{"id":200}],"status":"up"}"#),
        "{content}"
    );
}

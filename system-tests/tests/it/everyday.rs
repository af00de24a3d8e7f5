//! A new agent, lists, completions, manual pages, recordings.

use std::fs;

use crate::agents::{command, with_tool};
use crate::home::{Home, finish};

#[test]
fn a_new_agent_runs_at_once_and_its_rehearsals_are_green() {
    let home = Home::new();
    let made = home.run(["new", "agent", "greeter"]);
    assert_eq!(made.code, Some(0), "{made:?}");
    assert!(made.out.contains("run agents/greeter/agent.yaml \"Greet Ada.\""), "{}", made.out);
    let agent = "agents/greeter/agent.yaml";
    let answer = home.run(["run", agent, "Greet Ada.", "--json"]).answer();
    assert_eq!(answer, "Hello, Ada! How is London?");
    let rehearsed = home.run(["rehearse", agent]);
    assert_eq!(rehearsed.code, Some(0), "{rehearsed:?}");
    assert!(rehearsed.out.contains("4 of 4 cases as expected"), "{}", rehearsed.out);
    let checked = home.run(["agents", "check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    assert!(checked.out.contains("0 wrong"), "{}", checked.out);
    let advice = home.run(["tools", "check", "agents/greeter/tools.yaml"]);
    assert!(advice.out.contains("0 wrong, 0 pieces of advice"), "{}", advice.out);
}

#[test]
fn new_agents_share_a_dev_and_a_clash_is_found_by_the_check() {
    let home = Home::new();
    for name in ["alpha", "be-ta"] {
        assert_eq!(home.run(["new", "agent", name]).code, Some(0));
    }
    let checked = home.run(["agents", "check"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let mut dev = home.start(["dev", "--json"]);
    dev.until_printed("dev_started");
    let answer = home.run(["run", "agents/be-ta", "Greet Ada.", "--json"]).answer();
    assert_eq!(answer, "Hello, Ada! How is London?");
    dev.signal(rustix::process::Signal::INT);
    assert_eq!(dev.end().code, Some(0));
    for file in ["agent.yaml", "tools.yaml", "rehearsal.yaml"] {
        let path = format!("agents/be-ta/{file}");
        home.write(&path, &home.read(&path).replace("be_ta_look_up", "alpha_look_up"));
    }
    let clash = home.run(["agents", "check"]);
    assert_eq!(clash.code, Some(2), "{clash:?}");
    for words in ["of the name alpha_look_up", "(of alpha)", "(of be-ta)", "1 wrong"] {
        assert!(clash.out.contains(words), "{words} in {}", clash.out);
    }
}

#[test]
fn a_folder_stands_for_the_agent_file_in_it() {
    let home = Home::new();
    home.run(["new", "agent", "greeter", "--dir", "."]);
    let mut run = home.command(["run", ".", "Greet Ada.", "--json"]);
    run.current_dir(home.path().join("greeter"));
    assert_eq!(finish(run).answer(), "Hello, Ada! How is London?");
    let rehearsed = home.run(["rehearse", "greeter"]);
    assert_eq!(rehearsed.code, Some(0), "{rehearsed:?}");
    let none = home.run(["run", "agents", "Greet Ada."]);
    assert_eq!(none.code, Some(2), "{none:?}");
}

#[test]
fn a_new_agent_replaces_nothing_and_needs_a_name_that_can_be_one() {
    let home = Home::new();
    home.write("agents/mine/agent.yaml", "mine");
    let there = home.run(["new", "agent", "mine"]);
    assert_eq!(there.code, Some(2), "{there:?}");
    assert!(there.err.contains("is there already"), "{}", there.err);
    assert_eq!(home.read("agents/mine/agent.yaml"), "mine");
    let wrong = home.run(["new", "agent", "../up"]);
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn agents_and_tools_are_listed() {
    let home = Home::new();
    home.run(["new", "agent", "greeter"]);
    let agents = home.run(["agents", "list"]);
    assert!(agents.out.contains("greeter") && agents.out.contains("look_up"), "{agents:?}");
    let agent = home.run(["agents", "list", "--json"]).last();
    assert_eq!(agent["file"], "agents/greeter/agent.yaml", "{agent}");
    let tools = home.run(["tools", "list"]);
    assert!(tools.out.contains("look_up") && tools.out.contains("read_only"), "{tools:?}");
    let tool = home.run(["tools", "list", "agents/greeter/tools.yaml", "--json"]).last();
    assert_eq!(tool["tool"]["name"], "greeter_look_up", "{tool}");
    home.write("agents/broken/agent.yaml", "name: a b\n");
    let broken = home.run(["agents", "list"]);
    assert_eq!(broken.code, Some(2), "{broken:?}");
    assert!(broken.out.contains("greeter") && broken.err.contains("agents/broken"), "{broken:?}");
}

#[test]
fn shells_and_man_know_every_command() {
    let home = Home::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = home.run(["completions", shell]);
        assert_eq!(script.code, Some(0), "{script:?}");
        for word in ["rehearse", "approve", "--dry-run"] {
            let bare = word.trim_start_matches('-');
            assert!(script.out.contains(bare), "{shell} does not know {word}");
        }
    }
    assert_eq!(home.run(["man", "pages"]).code, Some(0));
    for page in ["systole", "systole-run", "systole-tools-check", "systole-new-agent"] {
        let text = home.read(&format!("pages/{page}.1"));
        assert!(text.contains(".SH NAME"), "{page}: {text}");
    }
    assert!(!home.path().join("pages/systole-demo-tool.1").exists(), "hidden commands have none");
}

const SECRET: &str = "swordfish-4711";

/// An agent whose words, arguments and results all hold secrets.
fn leaking(home: &Home) {
    let script = format!(
        "[\"/bin/sh\", \"-c\", \"echo seen; echo 'note: {SECRET}'; echo done >> effects\", \"{{key}}\"]"
    );
    let tool = command(&script, "irreversible", "    approval: always\n    timeout_ms: 5000\n");
    let tool = tool.replace(
        "parameters: {}",
        "parameters: { key: { type: string }, password: { type: string } }",
    );
    with_tool(home, &tool, "{ key: 'it is {{user}}', password: hunter2x }");
    let rules = home.read("rehearsal.yaml").replace(
        "It said: {{observed.probe|nothing}}",
        "It said {{observed.probe}} with sk-abcdefghijklmnop1234 and {{open}}braces}}",
    );
    home.write("rehearsal.yaml", &rules);
}

#[test]
fn a_recorded_run_has_no_secret_and_is_a_rehearsal_that_passes() {
    let home = Home::new();
    leaking(&home);
    let mut run = home.command(["run", "agent.yaml", "use ghp_abcdefghijklmnopqrst1234", "--json"]);
    run.args(["--approve", "probe", "--record", "rehearsals/kept.yaml"]);
    run.env("MY_SERVICE_TOKEN", SECRET);
    fs::create_dir(home.path().join("rehearsals")).unwrap();
    let ended = finish(run);
    let answer = ended.answer();
    assert!(
        answer.contains("sk-abcdefghijklmnop1234") && answer.contains("{{braces}}"),
        "{answer}"
    );
    let kept = home.read("rehearsals/kept.yaml");
    for secret in ["ghp_abcdefg", "hunter2x", "sk-abcdefgh", SECRET] {
        assert!(!kept.contains(secret), "{secret} is in the recording:\n{kept}");
    }
    assert_eq!(home.read("effects"), "done\n");
    let rehearsed = home.run(["rehearse", "agent.yaml", "rehearsals/kept.yaml"]);
    assert_eq!(rehearsed.code, Some(0), "{rehearsed:?}\n{kept}");
    assert_eq!(home.read("effects"), "done\n", "a rehearsal starts nothing");
}

#[test]
fn a_recording_replaces_no_file_and_is_not_made_of_a_failure() {
    let home = Home::new();
    leaking(&home);
    home.write("kept.yaml", "mine");
    let there = home.run(["run", "agent.yaml", "go", "--record", "kept.yaml"]);
    assert_eq!(there.code, Some(2), "{there:?}");
    assert_eq!(home.read("kept.yaml"), "mine");
    home.write("rehearsal.yaml", "rules:\n  - when: { turn: 9 }\n    say: never\n");
    let failed = home.run(["run", "agent.yaml", "go", "--record", "other.yaml"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.out.contains("not recorded"), "{}", failed.out);
    assert!(!home.path().join("other.yaml").exists());
}

/// Words that come while a run is under way begin the next one together.
#[test]
fn a_run_that_read_several_messages_is_recorded_with_all_of_them() {
    let home = Home::new();
    let script = "[\"/bin/sh\", \"-c\", \"touch began; while [ ! -e go ]; do sleep 0.01; done\"]";
    with_tool(&home, &command(script, "read_only", "    timeout_ms: 60000\n"), "{}");
    let rules = home.read("rehearsal.yaml");
    let rule = "rules:\n  - when: { user_matches: third }\n    say: 'I heard it all: {{user}}'\n";
    home.write("rehearsal.yaml", &rules.replace("rules:\n", rule));
    let mut dev = home.start(["dev", "agent.yaml", "--json"]);
    dev.until_printed("dev_started");
    let first = home.start(["run", "agent.yaml", "first", "--json"]);
    crate::home::until("the tool has begun", || home.path().join("began").exists());
    let text = "second, with sk-abcdefghijklmnop1234";
    let second = home.start(["run", "agent.yaml", text, "--thread", "last", "--json"]);
    dev.until_printed("second, with");
    let words =
        ["run", "agent.yaml", "third", "--thread", "last", "--json", "--record", "kept.yaml"];
    let third = home.start(words);
    dev.until_printed("\"third\"");
    home.write("go", "");
    for run in [first, second] {
        assert_eq!(run.end().code, Some(0));
    }
    assert_eq!(third.end().answer(), "I heard it all: third");
    let kept = home.read("kept.yaml");
    assert!(!kept.contains("sk-abc"), "{kept}");
    for part in ["input: \"second, with [redacted", "\"during\":0", "\"text\":\"third\""] {
        assert!(kept.contains(part), "{part} in {kept}");
    }
    dev.signal(rustix::process::Signal::INT);
    dev.end();
    let played = home.run(["rehearse", "agent.yaml", "kept.yaml"]);
    assert_eq!(played.code, Some(0), "{played:?}\n{kept}");
    assert!(played.out.contains("1 of 1 cases as expected"), "{}", played.out);
}

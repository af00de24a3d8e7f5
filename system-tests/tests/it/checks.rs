//! `tools check`: what it finds across files, each mistake once.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::agents::{command, with_tool};
use crate::home::Home;

/// What is told about files, which has to be something.
fn told(home: &Home, files: &[&str]) -> String {
    let ended = home.run(["tools", "check"].iter().chain(files));
    assert_eq!(ended.code, Some(2), "{ended:?}");
    ended.out.replace(&home.path().canonicalize().unwrap().display().to_string(), "HOME")
}

fn agent(home: &Home, argv: &str) {
    with_tool(home, &command(argv, "read_only", "    timeout_ms: 5000\n"), "{}");
}

#[test]
fn a_program_that_cannot_be_started_is_told_with_what_to_do() {
    let home = Home::new();
    agent(&home, "[\"./look up.sh\"]");
    let field = "tools.yaml:7:22: tools[0].run.command[0]: expected";
    let missing = told(&home, &["tools.yaml"]);
    let fix = "Fix: make HOME/look up.sh, then chmod +x 'HOME/look up.sh'";
    assert!(missing.contains(field) && missing.contains(fix), "{missing}");
    home.write("look-up.sh", "#!/bin/sh\n");
    assert!(told(&home, &["tools.yaml"]).contains("Fix: write `./look-up.sh`"));
    home.write("look up.sh", "#!/bin/sh\n");
    let plain = told(&home, &["tools.yaml"]);
    assert!(plain.contains("not executable. Fix: chmod +x 'HOME/look up.sh'"), "{plain}");
    let path = home.path().join("look up.sh");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(home.run(["tools", "check", "tools.yaml"]).code, Some(0));
    for (text, word) in [("echo\n", "begin it with `#!"), ("#!/bin/nonesuch\n", "/bin/nonesuch")] {
        home.write("look up.sh", text);
        assert!(told(&home, &["tools.yaml"]).contains(word), "{text}");
    }
    home.write("look up.sh", "#!/bin/sh\r\n");
    assert!(told(&home, &["tools.yaml"]).contains("end its lines with LF"));
}

#[test]
fn a_script_that_another_program_is_to_read_has_to_be_there() {
    let home = Home::new();
    for (argv, script) in
        [("[sh, ./look.sh]", "look.sh"), ("[python3, tools/look.py]", "tools/look.py")]
    {
        agent(&home, argv);
        let missing = told(&home, &["agent.yaml"]);
        let place = format!(
            "tools[0].run.command[1]: expected a script that is there; found no file HOME/{script}"
        );
        assert!(missing.contains(&place), "{missing}");
        assert!(missing.contains(&format!("Fix: make HOME/{script}")), "{missing}");
        // Not executable: it is only read.
        home.write(script, "print\n");
        assert_eq!(home.run(["agents", "check", "agent.yaml"]).code, Some(0));
    }
    for argv in [
        "[sh, -c, \"./look.sh\"]",
        "[python3, -m, look.py]",
        "[sh, \"{path}\"]",
        "[cat, ./look2.sh]",
    ] {
        agent(&home, argv);
        let ended = home.run(["tools", "check", "tools.yaml"]);
        assert!(!ended.out.contains("a script that is there"), "{argv}: {}", ended.out);
    }
}

#[test]
fn what_a_check_calls_wrong_is_not_run_and_told_in_the_same_words() {
    let wrong = |home: &Home| -> Vec<String> {
        let told = home.run(["agents", "check", "agent.yaml"]).out;
        told.lines().filter_map(|line| line.strip_prefix("wrong ").map(str::to_owned)).collect()
    };
    let refused = |home: &Home| {
        let wrong = wrong(home);
        assert!(!wrong.is_empty());
        for words in [&["run", "agent.yaml", "go"][..], &["dev", "agent.yaml"]] {
            let ended = home.run(words);
            assert_eq!(ended.code, Some(2), "{words:?}: {ended:?}");
            for line in &wrong {
                assert!(ended.err.contains(line), "{words:?}: `{line}` is missing: {}", ended.err);
            }
        }
        assert!(!home.path().join(".systole").exists(), "nothing was begun");
    };
    let home = Home::new();
    agent(&home, "[\"./nothing.sh\"]");
    refused(&home);
    agent(&home, "[sh, ./nothing.sh]");
    refused(&home);
    agent(&home, "[\"/bin/true\"]");
    home.write("tools.yaml", &format!("{}    permissions: [ops]\n", home.read("tools.yaml")));
    refused(&home);
    agent(&home, "[\"/bin/true\"]");
    let rules = "rules:\n  - when: { last: user }\n    calls: [{ tool: prob, arguments: {} }]\n  - say: done\n";
    home.write("rehearsal.yaml", rules);
    refused(&home);
}

#[test]
fn a_bare_name_is_looked_up_in_the_path_and_beside_the_file() {
    let home = Home::new();
    agent(&home, "[look-it-up]");
    let advised = home.run(["tools", "check", "tools.yaml"]);
    assert_eq!(advised.code, Some(0), "{advised:?}");
    assert!(advised.out.contains("not in PATH"), "{}", advised.out);
    home.write("look-it-up", "#!/bin/sh\n");
    assert!(told(&home, &["tools.yaml"]).contains("write `./look-it-up`"));
}

#[test]
fn each_mistake_is_told_once_whatever_names_the_file() {
    let home = Home::new();
    agent(&home, "[\"/bin/true\"]");
    home.write("tools.yaml", &home.read("tools.yaml").replace("read_only", "harmless"));
    for files in [&["agent.yaml", "tools.yaml"], &["./tools.yaml", "agent.yaml"]] {
        let told = told(&home, files);
        assert_eq!(told.matches("tools[0].effect").count(), 1, "{told}");
        assert!(told.contains("1 wrong"), "{told}");
    }
}

#[test]
fn what_a_file_is_its_name_tells_when_it_says_nothing() {
    let home = Home::new();
    home.write("agent.yaml", "");
    home.write("rehearsal.yaml", "");
    home.write("rehearsal2.yaml", "rule:\n  - say: a\n");
    home.write("other.yaml", "");
    let told = |file: &str| told(&home, &[file]);
    assert!(told("agent.yaml").contains("agent.yaml:1:1: expected a map of fields"));
    assert!(told("rehearsal.yaml").contains("rehearsal.yaml:1:1: expected a map of fields"));
    assert!(told("rehearsal2.yaml").contains("did you mean `rules`?"));
    let other = told("other.yaml");
    for kind in ["an agent file", "a tool file", "a rehearsal"] {
        assert!(other.contains(kind), "{other}");
    }
}

#[test]
fn a_file_that_an_agent_names_and_that_is_not_there_is_told_at_its_place() {
    let home = Home::new();
    agent(&home, "[\"/bin/true\"]");
    let text = home.read("agent.yaml");
    home.write("agent.yaml", &format!("{text}manifest: tols.yaml\nrehearsal: rehersal.yaml\n"));
    let told = told(&home, &["agent.yaml"]);
    assert!(told.contains("agent.yaml:6:11: manifest: expected a tool file"), "{told}");
    assert!(told.contains("Fix: write `tools.yaml`"), "{told}");
    assert!(told.contains("Fix: write `rehearsal.yaml`"), "{told}");
    let run = home.run(["run", "agent.yaml", "go"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("agent.yaml:6:11: manifest"), "{}", run.err);
    let near = home.run(["run", "agnet.yaml", "go"]);
    assert!(near.err.contains("did you mean agent.yaml?"), "{}", near.err);
}

#[test]
fn a_tool_file_is_not_run_as_an_agent() {
    let home = Home::new();
    agent(&home, "[\"/bin/true\"]");
    let run = home.run(["run", "tools.yaml", "go"]);
    assert_eq!(run.code, Some(2));
    assert!(run.err.contains("tools.yaml is a tool file, not an agent file"), "{}", run.err);
}

#[test]
fn a_rehearsal_and_permissions_are_held_against_the_agent() {
    let home = Home::new();
    agent(&home, "[\"/bin/true\"]");
    let tools = home.read("tools.yaml").replace(
        "parameters: {}",
        "parameters: { host: { type: string, required: true, description: Which. } }\n    permissions: [ops]",
    );
    home.write("tools.yaml", &tools);
    home.write(
        "rehearsal.yaml",
        "rules:\n  - when: { last: user, not_called: [prob], user_matches: '(?P<name>a)' }\n    \
         say: \"{{user.nam}}\"\n    calls: [{ tool: probe, arguments: { hosts: a } }]\n  - say: done\n",
    );
    let first = told(&home, &["agent.yaml"]);
    assert!(first.contains("agent.yaml:4:9: tools[0]: expected a tool that the agent may call"));
    assert!(first.contains("rehearsal.yaml:3:10: rules[0].say"), "{first}");
    assert!(first.contains("write `{{user.name}}`"), "{first}");
    home.write("rehearsal.yaml", &home.read("rehearsal.yaml").replace("user.nam}", "user.name}"));
    let second = told(&home, &["agent.yaml"]);
    for part in [
        "rehearsal.yaml:2:38: rules[0].when.not_called[0]: expected a tool of the agent: probe; found `prob`. Fix: write `probe`",
        "rehearsal.yaml:4:41: rules[0].calls[0].arguments.hosts: expected an argument of probe: host; found `hosts`. Fix: write `host`",
        "rules[0].calls[0].arguments: expected every argument that probe requires; found no `host`",
    ] {
        assert!(second.contains(part), "`{part}` is missing:\n{second}");
    }
}

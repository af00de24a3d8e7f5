//! Commands that are printed can be pasted into a shell and go on the same way; values that come
//! from variables are told by the variable's name.

use std::fs::File;
use std::process::Command;

use rustix::process::Signal;

use crate::agents::{command, talker, with_tool};
use crate::home::{Ended, Home, finish};

fn slow(argv: &str) -> String {
    command(argv, "read_only", "    timeout_ms: 60000\n    approval: always\n")
}

/// Pastes a printed command into a shell.
fn pasted(home: &Home, line: &str) -> Ended {
    let mut shell = Command::new("bash");
    shell.args(["-c", line]).current_dir(home.path()).env_clear();
    shell.env("PATH", "/usr/bin:/bin").env("SYSTOLE_REHEARSAL_PACE", "0");
    finish(shell)
}

#[test]
fn the_printed_command_goes_on_the_same_way_whatever_the_paths_hold() {
    let home = Home::new();
    let folder = home.path().join("it's größe");
    let move_in = || {
        std::fs::create_dir_all(&folder).unwrap();
        for file in ["agent.yaml", "tools.yaml", "rehearsal.yaml"] {
            std::fs::rename(home.path().join(file), folder.join(file)).unwrap();
        }
    };
    with_tool(&home, &slow("[/bin/sleep, \"30\"]"), "{}");
    move_in();
    let words = ["--store", "a b/$HOME.db", "run", "it's größe/agent.yaml", "go", "--json"];
    let more = ["--approve", "probe", "--complexity", "2", "--rehearsed"];
    let mut running = home.start(words.iter().chain(&more));
    running.until_printed("\"tool_call\"");
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(4), "{ended:?}");
    let last = ended.last();
    let line = last["continue"].as_str().unwrap();
    for flag in ["--approve probe", "--complexity 2", "--rehearsed", "--json"] {
        assert!(line.contains(flag), "{flag} is needed: {line}");
    }
    with_tool(&home, &slow("[/bin/echo, late]"), "{}");
    move_in();
    let again = pasted(&home, line);
    // The tool is another one than the call was checked against: told, not run.
    assert!(again.answer().contains("another version"), "{again:?}");
    assert_eq!(again.last()["thread"], last["thread"]);
}

#[test]
fn hints_are_commands_that_work() {
    let home = Home::new();
    talker(&home);
    home.write("my agent/agent.yaml", &home.read("agent.yaml"));
    home.write("my agent/rehearsal.yaml", "rules:\n  - say: hello\n");
    let ended = home.run(["run", "my agent/agent.yaml", "go"]);
    let hint = |name: &str| {
        let line = ended.out.lines().find_map(|line| line.trim().strip_prefix(name));
        line.unwrap_or_else(|| panic!("{name} in {}", ended.out)).trim().to_owned()
    };
    let shown = pasted(&home, &hint("look back:"));
    assert!(shown.out.contains("hello"), "{shown:?}");
    let more = pasted(&home, &hint("go on:").replace('…', "and now?"));
    assert!(more.out.contains("and now?"), "{more:?}");
}

#[test]
fn the_last_thread_is_called_so_everywhere() {
    let home = Home::new();
    talker(&home);
    home.write("rehearsal.yaml", "rules:\n  - say: hello\n");
    let first = home.run(["run", "agent.yaml", "go", "--json"]).last()["thread"].clone();
    let id = first.as_str().unwrap();
    for word in ["last", &id[20..], &id[20..].to_lowercase(), id] {
        let more = home.run(["run", "agent.yaml", "--thread", word, "more", "--json"]);
        assert_eq!(more.last()["thread"], first, "{word}: {more:?}");
    }
    let missing = home.run(["run", "agent.yaml", "--thread", "ZZZZZZ", "more"]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.err.contains("no thread `ZZZZZZ`"), "{}", missing.err);
}

#[test]
fn an_empty_variable_is_an_unset_one() {
    let home = Home::new();
    talker(&home);
    let mut command = home.command(["run", "agent.yaml", "go", "--json"]);
    for name in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "SYSTOLE_MODEL"] {
        command.env(name, "");
    }
    finish(command).answer();
}

#[test]
fn a_wrong_variable_is_told_by_its_name() {
    let home = Home::new();
    talker(&home);
    for (name, value) in [
        ("SYSTOLE_REHEARSAL_PACE", "-1"),
        ("SYSTOLE_LOG", "verbose"),
        ("SYSTOLE_STORE_MAX_BYTES", "much"),
    ] {
        let mut command = home.command(["run", "agent.yaml", "go"]);
        command.env(name, value);
        let ended = finish(command);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(ended.err.contains(&format!("environment variable {name}")), "{}", ended.err);
    }
    let typed = home.run(["--log", "verbose", "run", "agent.yaml", "go"]);
    assert_eq!(typed.code, Some(2));
    assert!(!typed.err.contains("environment variable"), "{}", typed.err);
}

#[test]
fn an_approval_of_a_tool_that_is_not_there_is_refused_with_the_nearest() {
    let home = Home::new();
    with_tool(&home, &slow("[/bin/echo, done]"), "{}");
    let ended = home.run(["run", "agent.yaml", "go", "--approve", "prob"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert!(ended.err.contains("did you mean --approve probe?"), "{}", ended.err);
}

#[test]
fn an_empty_text_is_the_same_from_everywhere() {
    let home = Home::new();
    talker(&home);
    let typed = home.run(["run", "agent.yaml", " "]);
    let piped = home.run(["run", "agent.yaml", "-"]);
    assert_eq!((typed.code, &typed.err), (Some(2), &piped.err));
    assert_eq!(piped.code, Some(2));
}

#[test]
fn an_output_that_is_full_is_told_on_standard_error() {
    let home = Home::new();
    talker(&home);
    home.write("rehearsal.yaml", "rules:\n  - say: hello\n");
    let into_full = |words: &[&str]| {
        let mut command = home.command(words);
        command.stdout(File::create("/dev/full").unwrap());
        let output = command.output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(err.contains("standard output: No space left"), "{words:?}: {err}");
        (output.status.code(), err)
    };
    let (code, err) = into_full(&["run", "agent.yaml", "go"]);
    assert_eq!(code, Some(4));
    assert!(err.contains("go on with:") && err.contains("--thread"), "{err}");
    assert_eq!(into_full(&["run", "agent.yaml", "go", "--json"]).0, Some(4));
    assert_eq!(into_full(&["show"]).0, Some(1));
    assert_eq!(into_full(&["show", "last"]).0, Some(1));
    assert_eq!(into_full(&["tools", "check", "agent.yaml"]).0, Some(1));
    assert_eq!(into_full(&["--version"]).0, Some(1));
}

//! `systole show`.

use crate::home::Home;

#[test]
fn a_thread_is_listed_shown_and_taken_apart() {
    let home = Home::new();
    let thread = home.run(["demo", "--json"]).last()["thread"].as_str().unwrap().to_owned();
    let list = home.run(["show"]);
    assert!(list.out.contains(&thread) && list.out.contains("answered"), "{}", list.out);
    let end = &thread[20..];
    let transcript = home.run(["show", end]);
    assert!(transcript.out.contains("✓ restart_service"), "{}", transcript.out);
    let events = home.run(["show", "last", "--json"]);
    assert_eq!(events.last()["type"], "run_finished");
    let journal = home.run(["show", "last", "--journal"]);
    for kind in ["message", "turn started", "turn completed", "start ", "obs ", "run finished"] {
        assert!(journal.out.contains(kind), "`{kind}` is missing:\n{}", journal.out);
    }
    let records = home.run(["show", "last", "--journal", "--json"]).events();
    assert_eq!(records[0]["envelope"]["body"]["kind"], "input");
}

#[test]
fn a_prompt_is_the_request_as_it_was_sent_with_its_tokens() {
    let home = Home::new();
    home.run(["demo", "--json"]).answer();
    let first = home.run(["show", "last", "--prompt", "--turn", "1"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    for part in ["request of run 1, turn 1", "── role", "on-call engineer", "[user]", "tokens"]
    {
        assert!(first.out.contains(part), "`{part}` is missing:\n{}", first.out);
    }
    assert!(!first.out.contains("[call "), "{}", first.out);
    let last = home.run(["show", "last", "--prompt", "--json"]).last();
    assert!(last["tokens"].as_u64().unwrap() < last["limit"].as_u64().unwrap(), "{last}");
    assert_eq!(last["request"]["model"], "gpt-5-mini");
}

#[test]
fn what_is_meant_by_a_thread_or_a_turn_that_is_not_there_is_told() {
    let home = Home::new();
    crate::agents::talker(&home);
    home.write("rehearsal.yaml", "rules:\n  - say: hello\n");
    home.run(["run", "agent.yaml", "go", "--json"]).answer();
    let told = |words: &[&str], parts: &[&str]| {
        let ended = home.run(words);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        for part in parts {
            assert!(ended.err.contains(part), "{part} in {}", ended.err);
        }
    };
    told(&["show", "abc"], &["`abc` is too short", "last 4 characters", "`last`"]);
    told(&["show", "zzzz"], &["there is no thread `zzzz`", "by its end", "systole threads"]);
    told(
        &["show", "last", "--prompt", "--turn", "9"],
        &["has no turn 9", "It has the turns 1 to 1", "--prompt"],
    );
}

#[test]
fn the_answer_of_an_object_is_told_once() {
    let home = Home::new();
    crate::agents::talker(&home);
    home.write("agent.yaml", &format!("{}protocol: contract\n", home.read("agent.yaml")));
    home.write("rehearsal.yaml", "rules:\n  - say: It is forty-two.\n");
    let shown = home.run(["run", "agent.yaml", "go"]);
    let again = home.run(["show", "last"]);
    for ended in [&shown, &again] {
        assert_eq!(ended.out.matches("  It is forty-two.\n").count(), 1, "{ended:?}");
        assert_eq!(ended.out.matches("forty-two").count(), 1, "{ended:?}");
    }
    let told = home.run(["show", "last", "--json"]);
    assert_eq!(told.answer(), "It is forty-two.");
    let is_turn = |event: &&serde_json::Value| event["type"] == "turn_completed";
    let turn = told.events().iter().find(is_turn).cloned().unwrap();
    assert_eq!(turn["text"], "It is forty-two.");
    assert_eq!(turn["reasoning"].as_str().unwrap_or_default(), "");
}

#[test]
fn a_store_can_be_looked_at_while_a_process_runs_on_it() {
    let home = Home::new();
    crate::agents::talker(&home);
    let mut command = home.command(["run", "agent.yaml", "go", "--json"]);
    command.env("SYSTOLE_REHEARSAL_PACE", "1").stdout(std::process::Stdio::null());
    let mut child = command.spawn().unwrap();
    crate::home::until("the thread is there", || home.run(["show"]).out.contains("running"));
    child.kill().unwrap();
    child.wait().unwrap();
    let left = home.run(["threads", "--json"]).last();
    assert_eq!(left["state"], "interrupted", "{left}");
}

#[test]
fn a_run_whose_process_was_killed_is_interrupted_and_its_command_is_told() {
    let home = Home::new();
    let script = "[\"/bin/sh\", \"-c\", \"touch began; sleep 60\"]";
    let tool = crate::agents::command(script, "read_only", "    timeout_ms: 60000\n");
    crate::agents::with_tool(&home, &tool, "{}");
    let running = home.start(["run", "agent.yaml", "go", "--json"]);
    crate::home::until("the tool has begun", || home.path().join("began").exists());
    assert!(home.run(["threads"]).out.contains("running"));
    assert!(home.run(["show", "last"]).out.contains("is under way"));
    running.kill();
    for words in [["threads", "--limit", "9"], ["show", "last", "--color=never"]] {
        let told = home.run(words).out;
        assert!(told.contains("interrupted: nothing runs on this store"), "{told}");
        assert!(told.contains(" run agent.yaml --thread "), "{told}");
        assert!(!told.contains("is under way") && !told.contains("running acting"), "{told}");
    }
    assert_eq!(home.run(["threads", "--state", "running"]).out, "no threads\n");
}

#[test]
fn what_is_not_there_is_named() {
    let home = Home::new();
    let ended = home.run(["show"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("nothing has run here yet"), "{}", ended.err);
    home.run(["demo", "--json"]).answer();
    let ended = home.run(["show", "01ARZ3NDEKTSV4RRFFQ69G5FAV"]);
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("there is no thread"), "{}", ended.err);
}

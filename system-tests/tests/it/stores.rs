//! Stores that are held, damaged or full.

use std::fs;

use crate::agents::talker;
use crate::home::Home;

#[test]
fn a_second_process_on_the_same_file_is_refused_and_nothing_is_lost() {
    let home = Home::new();
    talker(&home);
    let mut command = home.command(["run", "agent.yaml", "go", "--json"]);
    command.env("SYSTOLE_REHEARSAL_PACE", "1").stdout(std::process::Stdio::null());
    let mut first = command.spawn().unwrap();
    crate::home::until("the first one runs", || home.run(["show"]).out.contains("running"));
    let second = home.run(["run", "agent.yaml", "other words", "--json"]);
    assert_eq!(second.code, Some(5), "{second:?}");
    assert!(second.err.contains(&format!("process {}", first.id())), "{}", second.err);
    assert_eq!(second.last()["code"], "store_locked");
    first.kill().unwrap();
    first.wait().unwrap();
    home.run(["run", "agent.yaml", "go", "--json"]).answer();
}

#[test]
fn a_damaged_file_is_refused_and_left_as_it_is() {
    let home = Home::new();
    home.run(["demo", "--json"]).answer();
    let mut bytes = fs::read(home.store()).unwrap();
    assert!(bytes.len() > 16384);
    for byte in &mut bytes[4096..12288] {
        *byte ^= 0x5a;
    }
    fs::write(home.store(), &bytes).unwrap();
    let ended = home.run(["demo", "--json"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_eq!(ended.last()["code"], "store_corrupt");
    assert_eq!(fs::read(home.store()).unwrap(), bytes);
}

#[test]
fn a_log_of_writes_that_was_removed_is_missed() {
    let home = Home::new();
    talker(&home);
    let mut command = home.command(["run", "agent.yaml", "go", "--json"]);
    command.env("SYSTOLE_REHEARSAL_PACE", "1");
    let mut run = home.start_command(command);
    run.until_printed("\"delta\"");
    assert!(run.kill());
    for ending in ["-wal", "-shm"] {
        let mut path = home.store().into_os_string();
        path.push(ending);
        fs::remove_file(path).unwrap();
    }
    home.write("rehearsal.yaml", "rules:\n  - say: hello\n");
    let next = home.run(["run", "agent.yaml", "go", "--json"]);
    assert!(next.err.contains("systole.db-wal) is gone"), "{}", next.err);
    assert!(next.err.contains("the records since the last checkpoint are lost"), "{}", next.err);
    next.answer();
    assert_eq!(home.run(["run", "agent.yaml", "more", "--json"]).err, "", "told once");
}

#[test]
fn a_file_of_another_program_is_refused() {
    let home = Home::new();
    home.write(".systole/systole.db", "these are my notes, not a store; keep them\n");
    let ended = home.run(["demo"]);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert!(home.read(".systole/systole.db").starts_with("these are my notes"));
}

#[test]
fn a_full_store_says_so_and_the_run_goes_on_when_there_is_room() {
    let home = Home::new();
    talker(&home);
    home.run(["run", "agent.yaml", "first", "--json"]).answer();
    let size = fs::metadata(home.store()).unwrap().len();
    home.write("words", &"many words ".repeat(20_000));
    let mut command = home.command(["run", "agent.yaml", "-", "--json"]);
    command.stdin(fs::File::open(home.path().join("words")).unwrap());
    command.env("SYSTOLE_STORE_MAX_BYTES", (size + 4096).to_string());
    let ended = crate::home::finish(command);
    assert_eq!(ended.code, Some(5), "{ended:?}");
    assert_eq!(ended.last()["code"], "store_full");
    home.run(["run", "agent.yaml", "second", "--json"]).answer();
}

//! The program on a terminal of its own: questions are asked in place, calls are drawn anew.

use crate::agents::{command, with_tool};
use crate::home::{Ended, Home, finish, program};

/// Runs a program on a new terminal and answers its questions. Python opens the terminal, because
/// that takes code which this workspace forbids.
const TERMINAL: &str = r#"
import fcntl, os, pty, struct, sys, termios
columns, answer = int(sys.argv[1]), sys.argv[2].encode()
early = os.environ.pop("TYPED_EARLY", "").encode()
child, terminal = pty.fork()
if child == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    os.execv(sys.argv[3], sys.argv[3:])
seen = b""
while True:
    try:
        piece = os.read(terminal, 65536)
    except OSError:
        break
    if not piece:
        break
    seen += piece
    if b"turn 1" in seen and early:
        assert b"[y/N]" not in seen
        os.write(terminal, early)
        early = b""
    if b"[y/N]" in seen and answer:
        os.write(terminal, answer)
        answer = b""
sys.stdout.buffer.write(seen)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"#;

fn on_terminal(home: &Home, columns: u16, answer: &str, arguments: &[&str]) -> Ended {
    typed_on_terminal(home, columns, ("", answer), arguments)
}

/// With something typed before there is a question, in a run that takes its time until then.
fn typed_on_terminal(
    home: &Home,
    columns: u16,
    (early, answer): (&str, &str),
    arguments: &[&str],
) -> Ended {
    let columns = columns.to_string();
    let mut words = vec!["python3", "-c", TERMINAL, &columns, answer];
    let program = program().display().to_string();
    words.push(&program);
    words.extend(arguments);
    let mut python = std::process::Command::new("/usr/bin/env");
    python.args(words).current_dir(home.path()).env("TERM", "xterm-256color");
    python.env("SYSTOLE_REHEARSAL_PACE", if early.is_empty() { "0" } else { "8" });
    python.env("TYPED_EARLY", early);
    for name in ["NO_COLOR", "OPENAI_API_KEY", "OPENAI_BASE_URL", "SYSTOLE_STORE", "SYSTOLE_LOG"] {
        python.env_remove(name);
    }
    finish(python)
}

fn dangerous(home: &Home) {
    let argv = "[\"/bin/sh\", \"-c\", \"echo done >> effects; sleep 0.4; echo done\"]";
    with_tool(home, &command(argv, "irreversible", "    approval: always\n"), "{}");
}

#[test]
fn a_yes_lets_the_call_go() {
    let home = Home::new();
    dangerous(&home);
    let ended = on_terminal(&home, 80, "y\n", &["run", "agent.yaml", "go"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("probe needs your approval"), "{}", ended.out);
    assert!(ended.out.contains("irreversible"), "{}", ended.out);
    assert_eq!(home.read("effects"), "done\n");
    assert!(ended.out.contains("\u{1b}[1A"), "the call is drawn anew: {:?}", ended.out);
}

#[test]
fn what_was_typed_before_the_question_is_no_answer_to_it() {
    let home = Home::new();
    dangerous(&home);
    let arguments = ["run", "agent.yaml", "go"];
    let denied = typed_on_terminal(&home, 80, ("y\n", "n\n"), &arguments);
    assert_eq!(denied.code, Some(0), "{denied:?}");
    assert!(denied.out.contains("denied"), "{}", denied.out);
    assert_eq!(home.read("effects"), "");
    // Half a line before, the rest behind it.
    let denied = typed_on_terminal(&home, 80, ("y", "\n"), &arguments);
    assert!(denied.out.contains("denied"), "{}", denied.out);
    assert_eq!(home.read("effects"), "");
}

#[test]
fn anything_else_denies_it() {
    let home = Home::new();
    dangerous(&home);
    let ended = on_terminal(&home, 40, "\n", &["run", "agent.yaml", "go"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains("denied"), "{}", ended.out);
    assert_eq!(home.read("effects"), "");
}

#[test]
fn the_end_of_the_input_is_no_answer_and_the_question_has_a_line_of_its_own() {
    let home = Home::new();
    dangerous(&home);
    let ended = on_terminal(&home, 80, "\u{4}", &["--color", "never", "run", "agent.yaml", "go"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines: Vec<&str> = ended.out.lines().map(str::trim_end).collect();
    let asked = lines.iter().position(|line| line.contains("[y/N]")).unwrap();
    assert_eq!(lines[asked], "  approve probe within 15 min? [y/N]", "{}", ended.out);
    assert_eq!(lines[asked + 1], "no answer: input ended", "{}", ended.out);
    assert!(ended.out.contains("denied"), "{}", ended.out);
    assert_eq!(home.read("effects"), "");
}

#[test]
fn colours_can_be_forbidden() {
    let home = Home::new();
    dangerous(&home);
    let plain = on_terminal(&home, 80, "n\n", &["--color", "never", "run", "agent.yaml", "go"]);
    assert!(!plain.out.contains("\u{1b}[1m"), "{:?}", plain.out);
    let coloured = on_terminal(&home, 80, "n\n", &["run", "agent.yaml", "again"]);
    assert!(coloured.out.contains("\u{1b}[1m"), "{:?}", coloured.out);
}

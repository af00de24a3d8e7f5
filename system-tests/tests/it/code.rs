//! The code agent on a copy of its repository, in both protocols: the file is really changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::home::{Ended, Home, finish};

pub(crate) const TASK: &str =
    "add a complete Props interface to Button.tsx, consistent with its JSDoc";
const BUTTON: &str = "code/work/src/components/Button.tsx";
const INTERFACE: &str = r#"export interface ButtonProps {
  label: string;
  variant?: "primary" | "secondary" | "danger";
  disabled?: boolean;
  icon?: ReactNode;
  onClick: (event: MouseEvent<HTMLButtonElement>) => void;
}
"#;

fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../agents/code")
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The agent with a fresh copy of its repository.
pub(crate) fn agent(protocol: &str) -> Home {
    let home = Home::new();
    let shipped = shipped();
    copy(&shipped.join("repo"), &home.path().join("code/repo"));
    copy(&shipped.join("repo"), &home.path().join("code/work"));
    for file in ["tools.yaml", "rehearsal.yaml", "check_props.py", "show_diff.py"] {
        fs::copy(shipped.join(file), home.path().join("code").join(file)).unwrap();
    }
    let agent = fs::read_to_string(shipped.join("agent.yaml")).unwrap();
    assert_eq!(agent.matches("protocol: native").count(), 1);
    home.write(
        "code/agent.yaml",
        &agent.replace("protocol: native", &format!("protocol: {protocol}")),
    );
    home
}

fn run(home: &Home, task: &str) -> Ended {
    let mut command = home.command(["run", "code/agent.yaml", task, "--json"]);
    command.env("SYSTOLE_CODE_DIR", home.path().join("code/work"));
    finish(command)
}

fn check(home: &Home, file: &str) -> Value {
    let mut command = Command::new("python3");
    command.args(["check_props.py", "--", file]).current_dir(home.path().join("code"));
    command.env_remove("SYSTOLE_CODE_DIR");
    let ended = finish(command);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    serde_json::from_str(&ended.out).unwrap()
}

/// The tools in the order of their calls.
fn called(ended: &Ended) -> Vec<String> {
    let events = ended.events();
    let calls = events.iter().filter(|event| event["type"] == "tool_call");
    calls.map(|call| call["tool"].as_str().unwrap().to_owned()).collect()
}

fn right() -> Value {
    json!({"ok": true, "exists": true, "problems": []})
}

fn button_is_completed(protocol: &str) {
    let home = agent(protocol);
    let ended = run(&home, TASK);
    assert_button_is_complete(&home, &ended);
}

/// The run was answered, and the file is right.
pub(crate) fn assert_button_is_complete(home: &Home, ended: &Ended) {
    let before = home.read("code/repo/src/components/Button.tsx");
    let answer = ended.answer();
    let after = home.read(BUTTON);
    assert_eq!(after.matches(INTERFACE).count(), 1, "{after}");
    assert!(!after.contains("any"), "{after}");
    assert_eq!(after.split_once("/**").unwrap().1, before.split_once("/**").unwrap().1);
    assert_eq!(check(home, "src/components/Button.tsx"), right());
    for part in [
        "--- a/src/components/Button.tsx",
        "-export type ButtonProps = any;",
        "+  icon?: ReactNode;",
    ] {
        assert!(answer.contains(part), "`{part}` is missing: {answer}");
    }
    let expected = [
        "list_files",
        "search_files",
        "read_file",
        "check_props",
        "edit_file",
        "check_props",
        "show_diff",
    ];
    assert_eq!(called(ended), expected);
}

#[test]
fn the_button_gets_its_interface_in_native() {
    button_is_completed("native");
}

#[test]
fn the_button_gets_its_interface_in_contract() {
    button_is_completed("contract");
}

fn a_prop_more_is_repaired(protocol: &str) {
    let home = agent(protocol);
    let documented = " * @prop {boolean} [disabled=false]";
    let text = home.read(BUTTON);
    home.write(
        BUTTON,
        &text.replace(documented, &format!(" * @prop {{string}} [title] - A tip.\n{documented}")),
    );
    let ended = run(&home, TASK);
    let answer = ended.answer();
    assert_eq!(called(&ended).iter().filter(|tool| *tool == "edit_file").count(), 2);
    assert_eq!(check(&home, "src/components/Button.tsx"), right());
    assert!(home.read(BUTTON).contains("  title?: string;\n"), "{}", home.read(BUTTON));
    assert!(answer.contains("+  title?: string;"), "{answer}");
}

#[test]
fn a_check_that_fails_leads_to_a_repair_in_native() {
    a_prop_more_is_repaired("native");
}

#[test]
fn a_check_that_fails_leads_to_a_repair_in_contract() {
    a_prop_more_is_repaired("contract");
}

#[test]
fn what_is_complete_or_absent_is_left_alone() {
    let home = agent("native");
    let untouched = home.read(BUTTON);
    for (task, told) in [
        ("complete the props of Card.tsx", "There is nothing to do"),
        ("complete the props of Dialog.tsx", "`src/components/Dialog.tsx` does not exist"),
    ] {
        let ended = run(&home, task);
        let answer = ended.answer();
        assert!(answer.contains(told), "{answer}");
        assert!(!called(&ended).contains(&"edit_file".to_owned()), "{}", ended.out);
    }
    assert_eq!(home.read(BUTTON), untouched);
}

#[test]
fn the_check_sees_names_types_optional_marks_and_whether_the_component_uses_them() {
    let home = agent("native");
    let card = home.read("code/work/src/components/Card.tsx");
    for (old, new, problem) in [
        ("  title: string;\n", "", "`title` is in the JSDoc and not in the interface"),
        (
            "  title: string;\n",
            "  title: string;\n  size: number;\n",
            "`size` is in the interface and not in the JSDoc",
        ),
        ("title: string;", "title: any;", "`title` is `any`; the JSDoc says `string`"),
        ("footer?:", "footer:", "`footer` has to be optional, as the JSDoc says"),
        ("title: string;", "title?: string;", "`title` has to be required, as the JSDoc says"),
        ("}: CardProps)", "}: any)", "`Card` does not take `CardProps`"),
        ("footer }: ", "footer, size }: ", "`Card` uses `size`, which the JSDoc does not name"),
        ("export interface", "interface", "`CardProps` is not exported"),
    ] {
        assert_eq!(card.matches(old).count(), 1, "{old}");
        home.write("code/work/src/components/Card.tsx", &card.replace(old, new));
        let told = check(&home, "src/components/Card.tsx");
        assert_eq!((&told["ok"], &told["problems"]), (&json!(false), &json!([problem])), "{new}");
    }
}

//! Every branch of the code agent's rehearsal.

use std::collections::BTreeSet;
use std::path::Path;

use argument_check::ArgumentCheck;
use definitions::agent_file::AgentFile;
use definitions::lint::lint;
use definitions::manifest::Manifest;
use definitions::run::{Surroundings, Unset};
use rehearsal::engine::Form;
use rehearsal::script::Script;
use serde_json::json;

use crate::play::{Play, Run};

const AGENT: &str = include_str!("../../../../agents/code/agent.yaml");
const TOOLS: &str = include_str!("../../../../agents/code/tools.yaml");
const REHEARSAL: &str = include_str!("../../../../agents/code/rehearsal.yaml");
const BUTTON: &str = include_str!("../../../../agents/code/repo/src/components/Button.tsx");
const CARD: &str = include_str!("../../../../agents/code/repo/src/components/Card.tsx");

const TASK: &str = "add a complete Props interface to Button.tsx, consistent with its JSDoc";
const DIFF: &str = "--- a/src/components/Button.tsx\n+++ b/src/components/Button.tsx";

const RIGHT: &str = r#"{"ok":true,"exists":true,"problems":[]}"#;
const ALIAS: &str =
    r#"{"ok":false,"exists":true,"problems":["it is any"],"fix":{"old":"a","new":"b"}}"#;
const INCOMPLETE: &str = r#"{"ok":false,"exists":true,"problems":["`title` is missing"],"fix":{"old":"the old {","new":"the new {"}}"#;
const UNCLEAR: &str = r#"{"ok":false,"exists":true,"problems":["the JSDoc names no props"]}"#;
const ABSENT: &str =
    r#"{"ok":false,"exists":false,"problems":["`src/components/Button.tsx` does not exist"]}"#;
const UNUSABLE: &str = "tool_not_started: there is no python3";

const LOOK: [&str; 4] = ["list_files", "search_files", "read_file", "check_props"];

fn manifest() -> Manifest {
    let around = Surroundings {
        folder: Path::new("/agents/code"),
        variable: &|_| None,
        unset: Unset::Problem,
        document: &definitions::run::no_document,
    };
    Manifest::parse("tools.yaml", TOOLS, &around).unwrap()
}

/// What the tools answer.
struct Tools<'a> {
    list: &'a str,
    file: &'a str,
    /// One answer a call; the last one goes on.
    checks: &'a [&'a str],
    edit: &'a str,
}

impl Default for Tools<'_> {
    fn default() -> Self {
        Self {
            list: "src/\nsrc/components/\nsrc/components/Button.tsx (863 bytes)\n",
            file: BUTTON,
            checks: &[ALIAS, RIGHT],
            edit: "edited src/components/Button.tsx at line 3",
        }
    }
}

impl Tools<'_> {
    fn answer(&self, tool: &str, nth: usize) -> String {
        let answer = match tool {
            "list_files" => self.list,
            "search_files" => "src/components/Card.tsx:3: export interface CardProps {",
            "read_file" => self.file,
            "check_props" => self.checks[nth.min(self.checks.len() - 1)],
            "edit_file" => self.edit,
            "show_diff" => DIFF,
            other => panic!("the manifest has no {other}"),
        };
        answer.to_owned()
    }

    /// Plays the task in both protocols: the answers and calls have to be the same.
    fn play(&self, task: &str) -> Run {
        let script = Script::parse("rehearsal.yaml", REHEARSAL).unwrap();
        let play = |form| {
            let mut play = Play::new(&script, form);
            play.user(task);
            play.run(&|tool, nth| self.answer(tool, nth))
        };
        let native = play(Form::Native);
        assert_eq!(native, play(Form::Contract));
        assert_calls_are_valid(&native);
        native
    }
}

fn assert_calls_are_valid(run: &Run) {
    let manifest = manifest();
    for (name, arguments) in &run.calls {
        let tool = manifest.tools.iter().find(|tool| tool.contract.name.as_str() == name);
        let check = ArgumentCheck::new(&tool.unwrap().contract.parameters).unwrap();
        assert_eq!(check.check_value(arguments), Ok(()), "{name}");
    }
}

fn names(run: &Run) -> Vec<&str> {
    run.calls.iter().map(|(name, _)| name.as_str()).collect()
}

fn after_looking(more: &[&'static str]) -> Vec<&'static str> {
    [&LOOK, more].concat()
}

#[test]
fn the_files_fit_together_and_only_the_edit_without_approval_gets_advice() {
    let agent = AgentFile::parse("agent.yaml", AGENT).unwrap();
    let manifest = manifest();
    let known: BTreeSet<_> = manifest.tools.iter().map(|tool| tool.contract.name.clone()).collect();
    assert_eq!(agent.unknown_tools(&known), []);
    let advice = lint(&manifest);
    let about: Vec<_> =
        advice.iter().map(|advice| (advice.tool.as_str(), advice.field.as_str())).collect();
    assert_eq!(about, [("edit_file", "approval")]);
}

#[test]
fn the_button_is_read_edited_checked_and_shown() {
    let run = Tools::default().play(TASK);
    assert_eq!(names(&run), after_looking(&["edit_file", "check_props", "show_diff"]));
    assert_eq!(run.calls[1].1, json!({"pattern": r"Props\b|<Button\b", "path": "src"}));
    for at in [2, 3, 5] {
        assert_eq!(run.calls[at].1, json!({"path": "src/components/Button.tsx"}));
    }
    assert_eq!(
        run.answer,
        format!(
            "The Props interface of Button.tsx is complete and consistent with its JSDoc; the \
             check passes.\n\n```diff\n{DIFF}\n```"
        )
    );
}

#[test]
fn the_edit_fits_the_file_that_is_shipped() {
    let run = Tools::default().play(TASK);
    let edit = &run.calls[4].1;
    assert_eq!(BUTTON.matches(edit["old"].as_str().unwrap()).count(), 1);
    let new = edit["new"].as_str().unwrap();
    assert!(new.starts_with("export interface ButtonProps {\n  label: string;\n"), "{new}");
    assert!(new.ends_with(";\n}"), "{new}");
}

#[test]
fn a_component_that_is_complete_is_left_alone() {
    let run = Tools { file: CARD, checks: &[RIGHT], ..Tools::default() }.play("complete Card.tsx");
    assert_eq!(names(&run), LOOK);
    assert_eq!(
        run.answer,
        "There is nothing to do: the Props interface of Card.tsx is complete and consistent with \
         its JSDoc. I changed nothing."
    );
}

#[test]
fn a_check_that_still_fails_is_followed_by_one_repair() {
    let run = Tools { checks: &[ALIAS, INCOMPLETE, RIGHT], ..Tools::default() }.play(TASK);
    let expected =
        after_looking(&["edit_file", "check_props", "edit_file", "check_props", "show_diff"]);
    assert_eq!(names(&run), expected);
    assert_eq!(
        run.calls[6].1,
        json!({"path": "src/components/Button.tsx", "old": "the old {", "new": "the new {"})
    );
    assert!(run.answer.contains("the check passes") && run.answer.contains(DIFF), "{}", run.answer);
}

#[test]
fn a_repair_that_does_not_help_is_not_called_done() {
    let edits = ["edited src/components/Button.tsx at line 3", "`old` does not occur", "in_doubt"];
    for edit in edits {
        let run = Tools { checks: &[ALIAS, INCOMPLETE], edit, ..Tools::default() }.play(TASK);
        let expected =
            after_looking(&["edit_file", "check_props", "edit_file", "check_props", "show_diff"]);
        assert_eq!(names(&run), expected);
        let start = "The task is not done. The check says: `title` is missing.";
        assert!(run.answer.starts_with(start) && run.answer.contains(DIFF), "{}", run.answer);
    }
}

#[test]
fn an_edit_that_cannot_be_checked_is_shown_and_not_called_done() {
    for check in [UNUSABLE, "", UNCLEAR] {
        let run = Tools { checks: &[ALIAS, check], ..Tools::default() }.play(TASK);
        assert_eq!(names(&run), after_looking(&["edit_file", "check_props", "show_diff"]));
        assert!(run.answer.starts_with("The task is not done."), "{}", run.answer);
        assert!(run.answer.contains(DIFF), "{}", run.answer);
    }
}

#[test]
fn another_component_is_brought_in_line_with_what_the_check_found() {
    let tools = Tools { file: CARD, checks: &[INCOMPLETE, RIGHT], ..Tools::default() };
    let run = tools.play("make the props of src/components/Card.tsx complete");
    assert_eq!(names(&run), after_looking(&["edit_file", "check_props", "show_diff"]));
    assert_eq!(
        run.calls[4].1,
        json!({"path": "src/components/Card.tsx", "old": "the old {", "new": "the new {"})
    );
}

#[test]
fn nothing_is_changed_when_nobody_knows_what_is_right() {
    for (check, told) in [
        (
            ABSENT,
            "I changed nothing: `src/components/Button.tsx` does not exist. The repository has",
        ),
        (UNCLEAR, "I changed nothing, for the JSDoc does not settle what is right"),
        (UNUSABLE, "I changed nothing, for I could not check the file: tool_not_started"),
    ] {
        let run = Tools { checks: &[check], ..Tools::default() }.play(TASK);
        assert_eq!(names(&run), LOOK);
        assert!(run.answer.starts_with(told), "{}", run.answer);
    }
}

#[test]
fn without_a_repository_nothing_is_read() {
    let list = "the tool's root folder `/agents/code/work` cannot be opened: No such file";
    let run = Tools { list, ..Tools::default() }.play(TASK);
    assert_eq!(names(&run), ["list_files", "search_files"]);
    assert!(run.answer.contains("there is no repository to work on"), "{}", run.answer);
}

#[test]
fn a_task_that_names_no_component_is_asked_about() {
    let run = Tools::default().play("make it better");
    assert_eq!(names(&run), Vec::<&str>::new());
    assert!(run.answer.starts_with("Which component do you mean?"), "{}", run.answer);
}

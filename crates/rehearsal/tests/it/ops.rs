//! Every branch of the ops demo's rehearsal.

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

const AGENT: &str = include_str!("../../../../agents/ops/agent.yaml");
const TOOLS: &str = include_str!("../../../../agents/ops/tools.yaml");
const REHEARSAL: &str = include_str!("../../../../agents/ops/rehearsal.yaml");
const ALERT: &str = include_str!("../../../../agents/ops/alert.json");

const ILL: &str = r#"{"healthy":false,"status":500,"error_rate":0.8,"uptime_s":61,"pid":4711}"#;
const WELL: &str = r#"{"healthy":true,"status":200,"error_rate":0,"uptime_s":2,"pid":4712}"#;
const RESTARTED: &str = r#"{"restarted":true,"pid":4712}"#;

fn manifest() -> Manifest {
    let around = Surroundings {
        folder: Path::new("/agents/ops"),
        variable: &|_| None,
        unset: Unset::Problem,
        document: &definitions::run::no_document,
    };
    Manifest::parse("tools.yaml", TOOLS, &around).unwrap()
}

/// Runs the demo in both protocols: the answers and calls have to be the same.
fn run(probes: &[&str], restart: &str) -> Run {
    let script = Script::parse("rehearsal.yaml", REHEARSAL).unwrap();
    let tool = |tool: &str, nth: usize| match tool {
        "probe_service" => probes[nth.min(probes.len() - 1)].to_owned(),
        "read_log" => "03:12:01 ERROR pool exhausted\n03:12:02 ERROR pool exhausted".to_owned(),
        "restart_service" => restart.to_owned(),
        "write_postmortem" => "created `postmortem.md`, 900 bytes".to_owned(),
        other => panic!("the manifest has no {other}"),
    };
    let play = |form| {
        let mut play = Play::new(&script, form);
        play.user(ALERT);
        play.run(&tool)
    };
    let native = play(Form::Native);
    assert_eq!(native, play(Form::Contract));
    assert_calls_are_valid(&native);
    native
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

fn postmortem(run: &Run) -> &str {
    let (_, arguments) = run.calls.iter().find(|(name, _)| name == "write_postmortem").unwrap();
    arguments["content"].as_str().unwrap()
}

fn claims_a_repair(text: &str) -> bool {
    text.replace("not fixed", "").contains("fixed")
}

#[test]
fn the_files_fit_together_and_need_no_advice() {
    let agent = AgentFile::parse("agent.yaml", AGENT).unwrap();
    let manifest = manifest();
    let known: BTreeSet<_> = manifest.tools.iter().map(|tool| tool.contract.name.clone()).collect();
    assert_eq!(agent.unknown_tools(&known), []);
    assert_eq!(lint(&manifest), []);
}

#[test]
fn an_ill_service_is_restarted_verified_and_written_up() {
    let run = run(&[ILL, WELL], RESTARTED);
    let expected =
        ["probe_service", "read_log", "restart_service", "probe_service", "write_postmortem"];
    assert_eq!(names(&run), expected);
    assert_eq!(run.calls[2].1, json!({"reason": "HighErrorRate, error rate 0.8"}));
    assert_eq!(
        run.answer,
        "checkout is fixed. It was failing, I restarted it once (pid 4712), and a probe afterwards \
         was healthy: status 200, error rate 0. The cause is still open. Post-mortem: created \
         `postmortem.md`, 900 bytes"
    );
    assert!(postmortem(&run).contains("**Outcome: fixed.**"));
    assert!(postmortem(&run).contains("03:12:02 ERROR pool exhausted"));
}

#[test]
fn a_service_that_is_healthy_at_the_start_is_left_alone() {
    let run = run(&[WELL], RESTARTED);
    assert_eq!(names(&run), ["probe_service", "read_log"]);
    assert_eq!(
        run.answer,
        "checkout is already healthy: status 200, error rate 0. I changed nothing and did not \
         restart it."
    );
}

#[test]
fn a_restart_that_does_not_happen_is_never_called_a_repair() {
    for restart in [
        r#"{"restarted":false,"error":"the new process did not start"}"#,
        "denied: nobody approved the call",
        "in_doubt: nobody can tell whether the restart happened",
        "",
    ] {
        let run = run(&[ILL, ILL], restart);
        assert_eq!(
            names(&run),
            ["probe_service", "read_log", "restart_service", "write_postmortem"]
        );
        for text in [run.answer.as_str(), postmortem(&run)] {
            assert!(text.contains("not fixed"), "{text}");
            assert!(!claims_a_repair(text), "{text}");
        }
    }
}

#[test]
fn a_restart_in_doubt_is_looked_at_and_never_repeated() {
    let doubt = "IN DOUBT: attempt 1 began on host a and left no result.";
    let expected =
        ["probe_service", "read_log", "restart_service", "probe_service", "write_postmortem"];
    let well = run(&[ILL, WELL], doubt);
    assert_eq!(names(&well), expected);
    assert!(postmortem(&well).contains("the restart is in doubt"));
    assert!(
        well.answer.contains("is healthy") && !claims_a_repair(&well.answer),
        "{}",
        well.answer
    );
    let ill = run(&[ILL], doubt);
    assert_eq!(names(&ill), expected);
    assert!(ill.answer.contains("not fixed"), "{}", ill.answer);
}

#[test]
fn a_restart_that_does_not_help_is_never_called_a_repair() {
    for second in [ILL, "timed_out: the probe did not answer", r#"{"healthy":null}"#] {
        let run = run(&[ILL, second], RESTARTED);
        let expected =
            ["probe_service", "read_log", "restart_service", "probe_service", "write_postmortem"];
        assert_eq!(names(&run), expected);
        for text in [run.answer.as_str(), postmortem(&run)] {
            assert!(text.contains("not fixed"), "{text}");
            assert!(!claims_a_repair(text), "{text}");
        }
    }
}

#[test]
fn nothing_is_restarted_on_a_guess() {
    let run = run(&["unavailable: no worker took the call"], RESTARTED);
    assert_eq!(names(&run), ["probe_service", "read_log"]);
    assert!(run.answer.contains("not fixed") && !claims_a_repair(&run.answer), "{}", run.answer);
}

#[test]
fn a_second_alert_in_the_same_thread_is_looked_at_anew() {
    let script = Script::parse("rehearsal.yaml", REHEARSAL).unwrap();
    let mut play = Play::new(&script, Form::Native);
    let first = |tool: &str, nth: usize| match (tool, nth) {
        ("probe_service", 0) => ILL.to_owned(),
        ("restart_service", _) => RESTARTED.to_owned(),
        _ => WELL.to_owned(),
    };
    play.user(ALERT);
    assert!(claims_a_repair(&play.run(&first).answer));
    play.user(ALERT);
    let second = play.run(&|_, _| WELL.to_owned());
    assert_eq!(names(&second), ["probe_service", "read_log"]);
}

#[test]
fn words_that_are_no_alert_work_too() {
    let script = Script::parse("rehearsal.yaml", REHEARSAL).unwrap();
    let mut play = Play::new(&script, Form::Native);
    play.user("checkout is slow, please look");
    let run = play.run(&|_, _| WELL.to_owned());
    assert!(run.answer.starts_with("The service is already healthy"), "{}", run.answer);
}

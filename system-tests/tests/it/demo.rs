//! The ops demo, branch by branch.

use crate::home::{Home, until};

/// What was done to the service, in order: `start` and `restart`.
pub(crate) fn effects(home: &Home) -> Vec<String> {
    let log = home.read(".systole/demo-ops/effects.log");
    log.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

fn is_service_gone(home: &Home) -> bool {
    let pid = home.read(".systole/demo-ops/service.pid");
    !std::path::Path::new(&format!("/proc/{}/exe", pid.trim())).exists()
}

#[test]
fn a_failing_service_is_restarted_once_verified_and_written_down() {
    let home = Home::new();
    let ended = home.run(["demo", "ops", "--json"]);
    let answer = ended.answer();
    assert!(answer.contains("is fixed") && !answer.contains("not fixed"), "{answer}");
    assert_eq!(effects(&home), ["start", "restart", "start"]);
    let post_mortem = home.read(".systole/demo-ops/out/postmortem.md");
    assert!(post_mortem.contains("Outcome: fixed"), "{post_mortem}");
    assert!(post_mortem.contains("connection pool exhausted"), "{post_mortem}");
    until("the service is gone", || is_service_gone(&home));
}

#[test]
fn a_healthy_service_is_left_alone() {
    let home = Home::new();
    let answer = home.run(["demo", "--scenario", "healthy", "--json"]).answer();
    assert!(answer.contains("already healthy"), "{answer}");
    assert_eq!(effects(&home), ["start"]);
    assert_eq!(home.read(".systole/demo-ops/out/postmortem.md"), "");
}

#[test]
fn programs_see_every_phase_and_what_is_waited_for() {
    let home = Home::new();
    let ended = home.run(["demo", "--scenario", "healthy", "--json"]);
    ended.answer();
    let events = ended.events();
    let phases = events.iter().filter(|event| event["type"] == "phase");
    let told: Vec<String> = phases
        .map(|event| {
            let phase = event["phase"].as_str().unwrap();
            event["waiting_for"]
                .as_str()
                .map_or_else(|| phase.into(), |what| format!("{phase} {what}"))
        })
        .collect();
    assert_eq!(told[..2], ["initializing", "observing"], "{told:?}");
    assert_eq!(told.last().unwrap(), "terminating");
    for (entered, from) in [
        ("reasoning waiting_for_reasoning", "observing"),
        ("reasoning waiting_for_tool_calls", "reasoning waiting_for_reasoning"),
        ("acting waiting_for_observation", "reasoning waiting_for_tool_calls"),
        ("evaluating", "acting waiting_for_observation"),
        ("observing", "evaluating"),
    ] {
        let passed = told.windows(2).any(|pair| pair[0] == from && pair[1] == entered);
        assert!(passed, "never from {from} to {entered}: {told:?}");
    }
}

#[test]
fn a_restart_that_fails_is_never_called_fixed() {
    let home = Home::new();
    let answer = home.run(["demo", "--scenario", "restart-fails", "--json"]).answer();
    assert!(answer.contains("not fixed"), "{answer}");
    assert_eq!(effects(&home), ["start", "restart"]);
    let post_mortem = home.read(".systole/demo-ops/out/postmortem.md");
    assert!(post_mortem.contains("Outcome: not fixed"), "{post_mortem}");
}

#[test]
fn a_second_demo_is_a_new_run() {
    let home = Home::new();
    let first = home.run(["demo", "--json"]).last()["thread"].clone();
    let second = home.run(["demo", "--json"]).last()["thread"].clone();
    assert_ne!(first, second);
    assert_eq!(effects(&home), ["start", "restart", "start"]);
}

#[test]
fn people_see_the_approval_the_calls_and_a_summary() {
    let home = Home::new();
    let ended = home.run(["demo"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for part in [
        "restart_service is approved beforehand",
        "── turn 1",
        "✓ probe_service",
        "✓ restart_service",
        "✓ write_postmortem",
        "✓ answered",
        "systole show",
    ] {
        assert!(ended.out.contains(part), "`{part}` is missing:\n{}", ended.out);
    }
    assert!(!ended.out.contains('\u{1b}'), "no escapes in a pipe:\n{}", ended.out);
    assert_eq!(ended.err, "");
}

#[test]
fn an_interrupt_ends_the_service_and_the_same_command_goes_on_with_one_that_fails_again() {
    let home = Home::new();
    let mut command = home.command(["demo"]);
    command.env("SYSTOLE_REHEARSAL_PACE", "0.3");
    let mut running = home.start_command(command);
    running.until_printed("── turn 1");
    running.signal(rustix::process::Signal::INT);
    let ended = running.end();
    assert_eq!(ended.code, Some(4), "{ended:?}");
    assert!(ended.out.contains("the service was ended"), "{}", ended.out);
    until("the service is gone", || is_service_gone(&home));
    let again = home.run(["demo", "--scenario", "healthy"]);
    assert!(again.out.contains("its scenario stays: failing"), "{}", again.out);
    assert!(again.out.contains("the service runs again"), "{}", again.out);
    assert!(again.out.contains("checkout is fixed"), "{}", again.out);
    assert_eq!(effects(&home), ["start", "start", "restart", "start"]);
}

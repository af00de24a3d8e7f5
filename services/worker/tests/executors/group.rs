//! Process groups that an earlier life of the worker recorded.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use worker::executor::group::{GroupFate, kill_group};

use crate::support::*;

/// A process group with a child in it; only the child's end of standard output stays open.
fn leftover(call: &str) -> (Child, i32) {
    let child = Command::new("sh")
        .args(["-c", "sleep 1000 & sleep 1000"])
        .env("SYSTOLE_TOOL_CALL_ID", call)
        .process_group(0)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let group = i32::try_from(child.id()).unwrap();
    (child, group)
}

#[test]
fn a_recorded_group_is_killed_only_if_it_is_the_calls() {
    let (mut child, group) = leftover(CALL);
    let others = "zzzzzzzzz".parse().unwrap();
    assert_eq!(kill_group(group, &others), GroupFate::NotOurs);
    assert!(lives(group));
    assert_eq!(kill_group(group, &CALL.parse().unwrap()), GroupFate::Killed);
    child.wait().unwrap();
    assert_eq!(kill_group(group, &CALL.parse().unwrap()), GroupFate::Gone);
}

#[test]
fn a_group_is_recognised_by_any_of_its_processes() {
    let child = Command::new("sh")
        .args(["-c", "SYSTOLE_TOOL_CALL_ID=abc123xyz sleep 1000 & exec sleep 1000"])
        .process_group(0)
        .spawn();
    let mut child = child.unwrap();
    let group = i32::try_from(child.id()).unwrap();
    let call = CALL.parse().unwrap();
    let fate = eventually("the child has its environment", || match kill_group(group, &call) {
        GroupFate::NotOurs => None,
        fate @ (GroupFate::Killed | GroupFate::Gone | GroupFate::Lingers) => Some(fate),
    });
    assert_eq!(fate, GroupFate::Killed);
    child.wait().unwrap();
}

//! Ends the process group that an earlier life of this worker recorded and may have left behind.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use proto::ids::ToolCallId;
use rustix::process::{Pid, Signal, getpgrp, kill_process_group};

/// The variable by which a tool's processes are recognised.
pub(crate) const CALL_ID: &str = "SYSTOLE_TOOL_CALL_ID";

/// What became of a recorded process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupFate {
    /// No process of it lives.
    Gone,
    /// It lived, and was killed.
    Killed,
    /// It was killed and a process still lingers, for example in a disk that does not answer.
    Lingers,
    /// The number belongs to others by now, or to a process that hides its environment; it was
    /// left alone.
    NotOurs,
}

/// Kills `group` if one of its processes carries `call` in its environment: numbers are used again,
/// and a group of strangers must not die. Between the look and the kill the kernel could in theory
/// give the number away; numbers are handed out in turn, so that takes thousands of starts.
///
/// Blocks, for at most two seconds, until the processes are gone.
pub fn kill_group(group: i32, call: &ToolCallId) -> GroupFate {
    let Some(pid) = killable(group) else { return GroupFate::NotOurs };
    let members = members(group);
    if members.is_empty() {
        return GroupFate::Gone;
    }
    if !members.iter().any(|member| carries(*member, call)) {
        return GroupFate::NotOurs;
    }
    match kill_process_group(pid, Signal::KILL) {
        Ok(()) | Err(rustix::io::Errno::SRCH) => wait_until_gone(group),
        Err(_) => GroupFate::NotOurs,
    }
}

/// Number 1 would mean every process there is.
fn killable(group: i32) -> Option<Pid> {
    (group > 1).then(|| Pid::from_raw(group))?.filter(|group| *group != getpgrp())
}

fn wait_until_gone(group: i32) -> GroupFate {
    for _ in 0..400 {
        if members(group).is_empty() {
            return GroupFate::Killed;
        }
        thread::sleep(Duration::from_millis(5));
    }
    GroupFate::Lingers
}

/// The living processes of a group. One that is dead and only waits to be reaped does not count.
pub(crate) fn members(group: i32) -> Vec<i32> {
    let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
    let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers.filter(|number| is_member(*number, group)).collect()
}

fn is_member(process: i32, group: i32) -> bool {
    let stat = fs::read_to_string(Path::new("/proc").join(process.to_string()).join("stat"));
    stat.is_ok_and(|stat| living_group(&stat) == Some(group))
}

/// The group in a line of `/proc/<pid>/stat`; `None` for a dead process. The name of the program,
/// in parentheses, may contain anything, so the fields are counted behind the last one.
fn living_group(stat: &str) -> Option<i32> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace();
    let state = fields.next()?;
    let group = fields.nth(1)?;
    (!["Z", "X"].contains(&state)).then(|| group.parse().ok())?
}

fn carries(process: i32, call: &ToolCallId) -> bool {
    let environment = fs::read(Path::new("/proc").join(process.to_string()).join("environ"));
    let wanted = format!("{CALL_ID}={call}");
    environment.is_ok_and(|all| all.split(|byte| *byte == 0).any(|one| one == wanted.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_is_read_behind_any_program_name() {
        assert_eq!(living_group("12 (a) Z) 9 (b) S 1 34 34 0 -1"), Some(34));
        assert_eq!(living_group("12 (sh) Z 1 34 34 0 -1"), None);
        assert_eq!(living_group(""), None);
    }

    #[test]
    fn everybody_and_oneself_are_never_killed() {
        let call = ToolCallId::new("abcdefghi").unwrap();
        let own = getpgrp().as_raw_nonzero().get();
        for group in [-1, 0, 1, own] {
            assert_eq!(kill_group(group, &call), GroupFate::NotOurs, "{group}");
        }
    }
}

//! Waiting until a service says that it is well, as its health check in the file asks.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::plan::Health;
use super::programs::on_path;
use crate::process::Stopwatch;

const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits; fails when the service ends or its check failed `retries` times in a row.
pub(super) fn wait(service: &str, health: &Health, child: &mut Child) -> Result<()> {
    let Some((program, args)) = health.words.split_first() else {
        bail!("docker-compose.yml: {service} has an empty health check");
    };
    let program = on_path(program)
        .with_context(|| format!("the health check of {service} needs `{program}`: install it"))?;
    let mut why = String::new();
    for _ in 0..health.retries {
        if let Some(status) = child.try_wait()? {
            bail!("{service} ended: {status}");
        }
        let mut command = Command::new(&program);
        match ask(command.args(args), health.timeout)? {
            None => return Ok(()),
            Some(failed) => why = failed,
        }
        sleep(health.interval);
    }
    bail!("{service} was asked {} times and is not well: {why}", health.retries)
}

/// Asks once; what was wrong, if anything.
fn ask(command: &mut Command, timeout: Duration) -> Result<Option<String>> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut asking = command.spawn().context("the health check")?;
    let watch = Stopwatch::start();
    let status = loop {
        if let Some(status) = asking.try_wait()? {
            break status;
        }
        if watch.elapsed() > timeout {
            asking.kill()?;
            asking.wait()?;
            return Ok(Some(format!("no answer within {timeout:?}")));
        }
        sleep(LOOK_EVERY);
    };
    if status.success() {
        return Ok(None);
    }
    let mut words = String::new();
    if let Some(mut stderr) = asking.stderr.take() {
        stderr.read_to_string(&mut words).context("the health check's words")?;
    }
    Ok(Some(format!("{status} {}", words.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(words: &[&str], retries: u32) -> Health {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let (interval, timeout) = (Duration::from_millis(5), Duration::from_millis(300));
        Health { words, interval, timeout, retries }
    }

    fn asked(words: &[&str], command: &str) -> String {
        let mut child = Command::new("sh").args(["-c", command]).spawn().unwrap();
        let outcome = wait("it", &health(words, 2), &mut child);
        child.kill().unwrap();
        child.wait().unwrap();
        outcome.map_or_else(|error| format!("{error:#}"), |()| "well".to_owned())
    }

    #[test]
    fn a_check_says_well_ill_late_or_absent() {
        let live = "exec sleep 60";
        assert_eq!(asked(&["true"], live), "well");
        assert_eq!(
            asked(&["sh", "-c", "echo ill >&2; exit 3"], live),
            "it was asked 2 times and is not well: exit status: 3 ill"
        );
        assert!(asked(&["sleep", "60"], live).ends_with("no answer within 300ms"));
        assert!(asked(&["no-such-program"], live).contains("needs `no-such-program`"));
    }

    #[test]
    fn a_service_that_ended_is_not_waited_for() {
        let mut child = Command::new("false").spawn().unwrap();
        child.wait().unwrap();
        let error = wait("it", &health(&["true"], 100), &mut child).unwrap_err();
        assert_eq!(error.to_string(), "it ended: exit status: 1");
    }
}

//! Where a command tool runs: program, working folder, environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use definitions::run::CommandRun;

use super::super::group::CALL_ID;
use super::super::secrets::Secrets;
use super::super::settings::ExecutorSettings;
use super::super::{Job, NotStarted};

/// What every tool may see of its worker's environment.
const ALWAYS: [&str; 3] = ["PATH", "HOME", "LANG"];

/// The working folder, which must be there.
pub(super) fn folder(run: &CommandRun, settings: &ExecutorSettings) -> Result<PathBuf, NotStarted> {
    let base = &settings.manifest_folder;
    let folder = run.folder.as_ref().map_or_else(|| base.clone(), |folder| base.join(folder));
    if folder.is_dir() {
        Ok(folder)
    } else {
        let why = format!("the tool's working folder `{}` is not there", folder.display());
        Err(NotStarted { why, retryable: false })
    }
}

/// The tool's whole environment.
pub(super) fn environment(
    run: &CommandRun,
    settings: &ExecutorSettings,
    job: &Job,
) -> BTreeMap<OsString, OsString> {
    let named = run.env.iter().filter_map(|name| {
        let name = OsString::from(name);
        let value = settings.environment.get(&name)?.clone();
        Some((name, value))
    });
    let own = ours(job).into_iter().map(|(name, value)| (name.into(), value.into()));
    inherited(&settings.environment).into_iter().chain(named).chain(own).collect()
}

/// What every process of a tool may see.
pub(in crate::executor) fn inherited(
    all: &BTreeMap<OsString, OsString>,
) -> BTreeMap<OsString, OsString> {
    let allowed = ALWAYS.into_iter().map(OsString::from);
    allowed.filter_map(|name| all.get(&name).cloned().map(|value| (name, value))).collect()
}

/// Parts of names of variables whose values are secrets.
const SECRET_NAMES: [&str; 7] = ["KEY", "TOK", "SECRET", "PASS", "PWD", "CRED", "AUTH"];

/// The secrets among what the manifest hands over by name.
pub(super) fn secrets(run: &CommandRun, environment: &[(OsString, OsString)]) -> Secrets {
    let is_secret = |name: &str| {
        let name = name.to_uppercase();
        SECRET_NAMES.iter().any(|part| name.contains(part))
    };
    let named = run.env.iter().filter(|name| is_secret(name));
    let values = named.filter_map(|wanted| {
        let (_, value) = environment.iter().find(|(name, _)| name == wanted.as_str())?;
        value.to_str().map(str::to_owned)
    });
    Secrets::new(values.collect())
}

/// What a tool may want to know about the call it serves. The last two are in milliseconds: a Unix
/// time in the bus's clock, and a span.
fn ours(job: &Job) -> [(&'static str, String); 6] {
    [
        (CALL_ID, job.call.tool_call_id.to_string()),
        ("SYSTOLE_ATTEMPT", job.attempt.to_string()),
        ("SYSTOLE_IDEMPOTENCY_KEY", job.call.idempotency_key.clone()),
        ("SYSTOLE_THREAD", job.thread.to_string()),
        ("SYSTOLE_DEADLINE_MS", job.call.deadline.to_string()),
        ("SYSTOLE_TIMEOUT_MS", job.call.terms.timeout_ms.to_string()),
    ]
}

/// The file to execute: our own for `systole`, a path relative to the manifest's folder for one
/// with a `/`, else the first match in the tool's `PATH`.
pub(in crate::executor) fn program(
    name: &str,
    settings: &ExecutorSettings,
    path: Option<&OsString>,
) -> Result<PathBuf, NotStarted> {
    if name == CommandRun::SELF {
        return Ok(settings.self_exe.clone());
    }
    let found = if name.contains('/') {
        Some(settings.manifest_folder.join(name)).filter(|file| is_program(file))
    } else {
        in_path(name, path.map(OsString::as_os_str).unwrap_or_default())
    };
    found.ok_or_else(|| NotStarted { why: missing(name, settings), retryable: false })
}

fn in_path(name: &str, path: &OsStr) -> Option<PathBuf> {
    let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(name)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

fn missing(name: &str, settings: &ExecutorSettings) -> String {
    let folder = settings.manifest_folder.display();
    let file = settings.manifest_folder.join(name);
    if name.contains('/') && file.is_file() {
        let quoted = file.display().to_string().replace('\'', r"'\''");
        format!(
            "the tool's program `{name}` is not executable; make it so with: chmod +x '{quoted}'"
        )
    } else if name.contains('/') {
        format!("the tool's program `{name}` is not an executable file in `{folder}`")
    } else {
        format!("the tool's program `{name}` is not in the worker's PATH")
    }
}

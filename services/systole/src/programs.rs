//! Whether the programs that a manifest names can be started, before anybody calls them.

use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use argument_check::nearest;
use definitions::lint::Advice;
use definitions::manifest::{Manifest, ProgramPlace, ToolDefinition};
use definitions::problem::Problem;
use definitions::run::CommandRun;

use crate::agent_files::names_in;
use crate::shell;

/// Expected, found, fix.
type Fault = (&'static str, String, String);

/// Programs with a path that cannot be started, and scripts that are not there.
pub(crate) fn problems<'t>(
    file: &str,
    folder: &Path,
    tools: impl IntoIterator<Item = &'t ToolDefinition>,
) -> Vec<Problem> {
    let all = tools.into_iter().flat_map(|tool| &tool.stated.programs);
    let faulty = all.filter_map(|place| Some((place, fault(place, folder)?)));
    let problem = |(place, (expected, found, fix)): (&ProgramPlace, Fault)| Problem {
        file: file.to_owned(),
        line: place.line,
        column: place.column,
        field: place.field.clone(),
        expected: expected.to_owned(),
        found,
        fix,
    };
    faulty.map(problem).collect()
}

/// Programs without a path that are not on this machine, which may not be the one that runs them.
pub(crate) fn advice(manifest: &Manifest, path: Option<&OsStr>) -> Vec<Advice> {
    let missing = |tool: &&ToolDefinition| {
        tool.stated.programs.iter().any(|place| is_bare(place) && !is_in(path, &place.program))
    };
    let advise = |tool: &ToolDefinition| Advice {
        file: manifest.file.clone(),
        line: tool.stated.line,
        tool: tool.contract.name.to_string(),
        field: "run".to_owned(),
        weakness: "starts a program that is not in PATH here".to_owned(),
        fix: "install it where the tool runs, or write its path".to_owned(),
    };
    manifest.tools.iter().filter(missing).map(advise).collect()
}

fn is_bare(place: &ProgramPlace) -> bool {
    !place.is_script && !place.program.contains('/') && place.program != CommandRun::SELF
}

fn is_in(path: Option<&OsStr>, program: &str) -> bool {
    let mut folders = path.into_iter().flat_map(std::env::split_paths);
    folders.any(|folder| folder.join(program).metadata().is_ok_and(|found| may_run(&found)))
}

fn may_run(found: &Metadata) -> bool {
    found.is_file() && found.permissions().mode() & 0o111 != 0
}

fn fault(place: &ProgramPlace, folder: &Path) -> Option<Fault> {
    if place.is_script {
        return script_fault(place);
    }
    if is_bare(place) {
        let beside = folder.join(&place.program);
        let is_script = beside.is_file() && !place.program.is_empty();
        return is_script.then(|| {
            let found =
                "a name, which is looked up in PATH, and a file of that name beside this one";
            let fix = format!("write `./{}` if that file is meant", place.program);
            ("a program that is there", found.to_owned(), fix)
        });
    }
    if !place.program.contains('/') {
        return None;
    }
    let path = PathBuf::from(&place.program);
    let found = match path.metadata() {
        Ok(found) => found,
        Err(error) => {
            let make = format!("make {}, then {}", path.display(), chmod(&path));
            let wanted = ("a program that is there", make);
            return Some(missing(&path, &place.written, &error, wanted));
        }
    };
    if found.is_dir() {
        let found = format!("the folder {}", path.display());
        return Some(("a program", found, "name the file in it".to_owned()));
    }
    if !may_run(&found) {
        let found = format!("{}, which is not executable", path.display());
        return Some(("a program that may be started", found, chmod(&path)));
    }
    first_line(&path)
}

fn script_fault(place: &ProgramPlace) -> Option<Fault> {
    let path = Path::new(&place.program);
    match path.metadata() {
        Ok(found) if found.is_dir() => {
            let found = format!("the folder {}", path.display());
            Some(("a script", found, "name the file in it".to_owned()))
        }
        Ok(_) => None,
        Err(error) => {
            let make = format!("make {}", path.display());
            Some(missing(path, &place.written, &error, ("a script that is there", make)))
        }
    }
}

/// What makes a file a program.
pub(crate) fn chmod(path: &Path) -> String {
    format!("chmod +x {}", shell::word(path))
}

fn missing(
    path: &Path,
    written: &str,
    error: &std::io::Error,
    (expected, make): (&'static str, String),
) -> Fault {
    let folder = path.parent().unwrap_or_else(|| Path::new("/"));
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let names = names_in(folder);
    let fix = match nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("write `{}`", written.replace(name, near)),
        None => make,
    };
    let found = if error.kind() == std::io::ErrorKind::NotFound {
        format!("no file {}", path.display())
    } else {
        format!("{}, which cannot be looked at: {error}", path.display())
    };
    (expected, found, fix)
}

/// The longest first line that is looked at.
const FIRST_LINE: u64 = 256;

/// A script has to name what reads it, and that has to be there.
fn first_line(path: &Path) -> Option<Fault> {
    let mut head = Vec::new();
    // What cannot be read here may still be run.
    File::open(path).ok()?.take(FIRST_LINE).read_to_end(&mut head).ok()?;
    if head.starts_with(b"\x7fELF") {
        return None;
    }
    let text = String::from_utf8_lossy(&head);
    let Some(rest) = text.strip_prefix("#!") else {
        let found = format!("{}, which does not begin with `#!`", path.display());
        let fix = "begin it with `#!/bin/sh` or what reads it";
        return Some(("a program or a script that says what reads it", found, fix.to_owned()));
    };
    // CR stays: the system takes it for a part of the name.
    let line = rest.split('\n').next().unwrap_or_default();
    let reader = line.trim_start().split([' ', '\t']).next().unwrap_or_default();
    if Path::new(reader).exists() {
        return None;
    }
    let what = if line.ends_with('\r') {
        "end its lines with LF: CR counts as part of the name"
    } else {
        "install it, or correct the first line"
    };
    let found = format!("{}, which is read by {reader:?}, and that is not there", path.display());
    Some(("a script whose reader is there", found, what.to_owned()))
}

//! How a tool runs: the `run:` part of a manifest.

use std::path::PathBuf;

/// What a worker does when the tool is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// A process of its own, started from an argument vector, never through a shell.
    Command(CommandRun),
    /// A tool that the worker brings along.
    Builtin(BuiltinRun),
}

/// A process: arguments as JSON on its standard input, the result on its standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRun {
    /// Program and arguments. `{name}` stands for the argument `name`; a template fills exactly one
    /// element and never splits. A program with a `/` is relative to the manifest's folder.
    pub argv: Vec<String>,
    /// Working folder; the manifest's folder when absent.
    pub folder: Option<PathBuf>,
    /// Names of environment variables that the process may see, besides `PATH`, `HOME`, `LANG`.
    pub env: Vec<String>,
    /// Bytes of output that are kept; the rest is read, counted and dropped.
    pub max_output_bytes: u64,
}

/// A builtin with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltinRun {
    /// Which.
    pub builtin: Builtin,
    /// The folder that file builtins may not leave; absolute after loading.
    pub root: Option<PathBuf>,
}

/// The tools that a worker brings along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Builtin {
    /// `list_files {path?, depth?}`.
    ListFiles,
    /// `read_file {path, from_line?, lines?}`.
    ReadFile,
    /// `search_files {pattern, path?, glob?, max?}`: a regular expression over text files.
    SearchFiles,
    /// `write_file {path, content}`: creates or replaces; written aside and renamed.
    WriteFile,
    /// `edit_file {path, old, new}`: `old` must occur exactly once.
    EditFile,
    /// `clock {}`: the current time.
    Clock,
}

impl Builtin {
    /// All of them with the word used in manifests.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("list_files", Self::ListFiles),
        ("read_file", Self::ReadFile),
        ("search_files", Self::SearchFiles),
        ("write_file", Self::WriteFile),
        ("edit_file", Self::EditFile),
        ("clock", Self::Clock),
    ];
}

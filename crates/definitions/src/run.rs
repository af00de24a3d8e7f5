//! How a tool runs: the `run:` part of a manifest.

use std::path::{Path, PathBuf};

use crate::http::HttpRun;
use crate::mcp::McpRun;

/// What a worker does when the tool is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Run {
    /// A process of its own, started from an argument vector, never through a shell.
    Command(CommandRun),
    /// A request to an HTTP server.
    Http(HttpRun),
    /// A tool of an MCP server.
    Mcp(McpRun),
    /// A tool that the worker brings along.
    Builtin(BuiltinRun),
}

/// A process: arguments as JSON on its standard input, the result on its standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandRun {
    /// Program and arguments. `{name}` stands for the argument `name`; a template fills exactly one
    /// element and never splits, see [`crate::template`]. A program written with a `/` is
    /// relative to the manifest's folder and absolute after loading. The program `systole` is the
    /// running executable itself.
    pub argv: Vec<String>,
    /// Working folder; the manifest's folder unless the manifest names one. Absolute after loading.
    pub folder: Option<PathBuf>,
    /// Names of environment variables that the process may see, besides `PATH`, `HOME`, `LANG`.
    pub env: Vec<String>,
    /// Bytes of output that are kept; the rest is read, counted and dropped.
    pub max_output_bytes: u64,
}

impl CommandRun {
    /// The word in `argv[0]` that stands for the running executable.
    pub const SELF: &'static str = "systole";

    /// Whether the program is the running executable.
    pub fn is_self(&self) -> bool {
        self.argv.first().is_some_and(|program| program == Self::SELF)
    }
}

/// A builtin with its settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuiltinRun {
    /// Which.
    pub builtin: Builtin,
    /// The folder that file builtins may not leave; absolute after loading, the manifest's folder
    /// unless the manifest names one. Absent for builtins without files.
    pub root: Option<PathBuf>,
    /// Whether `fetch_url` may go to private networks and to this machine.
    pub private: bool,
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
    /// `fetch_url {url}`: a page as text.
    FetchUrl,
    /// `expand {artifact, from?, bytes?, search?}`: pages a result that was too long to show.
    Expand,
    /// `remember {text, kind?}`: keeps something in long-term memory.
    Remember,
    /// `recall {question, limit?}`: finds what is remembered.
    Recall,
    /// `forget {id}`: removes one memory.
    Forget,
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
        ("fetch_url", Self::FetchUrl),
        ("expand", Self::Expand),
        ("remember", Self::Remember),
        ("recall", Self::Recall),
        ("forget", Self::Forget),
    ];

    /// Whether it works on files under a root.
    pub fn has_root(self) -> bool {
        match self {
            Self::ListFiles
            | Self::ReadFile
            | Self::SearchFiles
            | Self::WriteFile
            | Self::EditFile => true,
            Self::Clock
            | Self::FetchUrl
            | Self::Expand
            | Self::Remember
            | Self::Recall
            | Self::Forget => false,
        }
    }
}

/// What a manifest is read against: its folder and the variables it may name.
pub struct Surroundings<'a> {
    /// The folder of the file, absolute.
    pub folder: &'a Path,
    /// The value of `${NAME}`, if it has one.
    pub variable: &'a dyn Fn(&str) -> Option<String>,
    /// What becomes of `${NAME}` without a value.
    pub unset: Unset,
    /// The text of a file that the manifest names, or why it cannot be had.
    pub document: &'a dyn Fn(&Path) -> Result<String, String>,
}

/// For manifests that name no other file.
pub fn no_document(_: &Path) -> Result<String, String> {
    Err("no other file can be read here".to_owned())
}

/// What becomes of `${NAME}` when the variable is not set and no `:-otherwise` stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unset {
    /// It is a problem: the file is about to be used.
    Problem,
    /// Something of the right shape: the file is only checked, and may be used elsewhere.
    StandIn,
}

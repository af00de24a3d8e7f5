//! A manifest: the tools that a worker serves.

use std::collections::BTreeMap;

use proto::hash;
use proto::ids::ToolName;
use proto::tool::ToolContract;
use serde_json::{Value, json};

use crate::policy::Policy;
use crate::problem::{Problem, Report};
use crate::run::{Run, Surroundings};
use crate::sources;
use crate::tool_reader;
use crate::yaml::{self, Kind, Node, Place};

/// The tools of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// The file as the user named it.
    pub file: String,
    /// Its tools, in the order of the file; every name once.
    pub tools: Vec<ToolDefinition>,
}

/// One tool: what it promises and how it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolDefinition {
    /// What planners and models see.
    pub contract: ToolContract,
    /// How it runs.
    pub run: Run,
    /// How to find out whether its effect happened; there for every checkable tool.
    pub probe: Option<Run>,
    /// What its workers keep to around it.
    pub policy: Policy,
    /// What the file says and what was filled in.
    pub stated: Stated,
}

/// What the file says about a tool in its own words; everything else is a default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated {
    /// The line of the tool.
    pub line: u32,
    /// Whether it says what repeating does.
    pub effect: bool,
    /// Whether it limits an attempt.
    pub timeout: bool,
    /// Where it names the programs that it starts: its own and its probe's.
    pub programs: Vec<ProgramPlace>,
}

/// A program that a tool starts, or the script that such a program reads, with its place in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramPlace {
    /// The program; absolute if it was written with a `/`.
    pub program: String,
    /// As it is written.
    pub written: String,
    /// From 1.
    pub line: u32,
    /// From 1.
    pub column: u32,
    /// Such as `tools[0].run.command[0]`.
    pub field: String,
    /// Whether the program in front of it reads it: then it has to be there, but not executable.
    pub is_script: bool,
}

impl ToolDefinition {
    /// The same tool with the hash of its implementation, such as that of the program's file, in
    /// its fingerprint: a changed program is another tool.
    #[must_use]
    pub fn with_implementation_hash(mut self, implementation: &str) -> Self {
        let both = format!("{} {implementation}", self.contract.fingerprint);
        self.contract.fingerprint = hash::fingerprint(&both);
        self
    }
}

impl Manifest {
    /// Reads a manifest; everything that is wrong with it is told at once.
    pub fn parse(file: &str, text: &str, around: &Surroundings<'_>) -> Result<Self, Vec<Problem>> {
        let root = yaml::read(file, text)?;
        let mut report = Report::new(file);
        let tools = tools(&root, around, &mut report);
        report.finish(tools.map(|tools| Self { file: file.to_owned(), tools }))
    }

    /// The tool of that name.
    pub fn tool(&self, name: &ToolName) -> Option<&ToolDefinition> {
        self.tools.iter().find(|tool| tool.contract.name == *name)
    }
}

/// `tools: [...]` with or without `sources: [...]`, a bare list, or a file that is one tool.
fn tools(
    root: &Node,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Vec<ToolDefinition>> {
    let mut tools = Tools::default();
    let whole = Place::root(root);
    match &root.kind {
        Kind::List(_) => {
            for place in whole.child("tools", root).list(report)? {
                tools.add(&place, around, report);
            }
        }
        Kind::Map(_) if is_one_tool(root) => tools.add(&whole, around, report),
        Kind::Map(_) => {
            let mut fields = crate::fields::Fields::of(&whole, report)?;
            let sources = fields.get("sources");
            let own = match &sources {
                Some(_) => fields.get("tools"),
                None => fields.required("tools", "a list of tools", report),
            };
            fields.close(report);
            for place in own.map_or(Some(Vec::new()), |own| own.list(report))? {
                tools.add(&place, around, report);
            }
            if let Some(sources) = sources {
                sources::read(&sources, around, report, &mut |place, report| {
                    tools.add(place, around, report);
                });
            }
        }
        Kind::Null | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {
            report.wrong(
                &whole,
                "`tools:` with a list of tools",
                "write `tools:` and one `- name: …` each",
            );
            return None;
        }
    }
    Some(tools.read)
}

fn is_one_tool(root: &Node) -> bool {
    root.get("tools").is_none() && root.get("sources").is_none() && root.get("name").is_some()
}

/// Tools that were read, every name once.
#[derive(Default)]
struct Tools {
    read: Vec<ToolDefinition>,
    seen: BTreeMap<ToolName, u32>,
}

impl Tools {
    fn add(&mut self, place: &Place<'_>, around: &Surroundings<'_>, report: &mut Report) {
        let Some(tool) = tool_reader::read(place, around, report) else { return };
        let name = tool.contract.name.clone();
        if let Some(line) = self.seen.insert(name.clone(), place.node().line) {
            let found = format!("`{name}`, which line {line} has already");
            report.broken(place, "a name of its own for each tool", found, "rename one of them");
        }
        self.read.push(tool);
    }
}

/// The fingerprint of a contract with all that a worker does for it, as the file says it: the same
/// on every machine, whatever folder the file lies in.
pub(crate) fn fingerprint(
    contract: &ToolContract,
    run: &[&Value],
    rest: &Value,
) -> proto::ids::Fingerprint {
    let mut value = serde_json::to_value(contract).unwrap_or(Value::Null);
    if let Some(object) = value.as_object_mut() {
        object.remove("fingerprint");
    }
    hash::fingerprint(&hash::canonical(&json!({ "contract": value, "run": run, "rest": rest })))
}

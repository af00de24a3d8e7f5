//! Cases: what an agent is asked, what its tools say, and what has to come of it.

use definitions::problem::{Problem, Report};
use definitions::yaml;
use serde_json::{Map, Value};

use crate::case_reader;
use crate::compare::value_at;
use crate::matcher::Matcher;
use crate::script::Script;

/// A file of rehearsals: rules, cases, or both.
#[derive(Clone, Debug)]
pub struct Sheet {
    /// Its rules; without them the agent's own rehearsal answers.
    pub script: Option<Script>,
    /// Its cases, in the order of the file.
    pub cases: Vec<Case>,
}

impl Sheet {
    /// Reads a file; everything that is wrong with it is told at once.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Problem>> {
        let root = yaml::read(file, text)?;
        let mut report = Report::new(file);
        let sheet = case_reader::sheet(file, &root, &mut report);
        report.finish(sheet)
    }
}

/// One rehearsed run and what is expected of it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name, once in its file.
    pub name: String,
    /// The line of the file it begins at.
    pub line: u32,
    /// What the agent is asked.
    pub input: Input,
    /// What the user says later.
    pub steer: Vec<Steer>,
    /// Tools whose approval is given beforehand.
    pub approve: Vec<String>,
    /// Folders, relative to the file, of which the run gets a fresh copy, by the environment
    /// variable that names the copy.
    pub copies: Vec<(String, String)>,
    /// Tools that run for real although they must not happen twice.
    pub real: Vec<String>,
    /// What tools say in place of running.
    pub tools: Vec<(String, Vec<StandIn>)>,
    /// What has to come of it.
    pub expect: Expect,
}

/// Words that come while the run is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steer {
    /// The turn during which they come, so that the next one reads them; 0 is before the first.
    pub during: u32,
    /// The words.
    pub text: String,
}

/// Where the words come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// These.
    Text(String),
    /// The text of a file, relative to this one.
    File(String),
}

/// What a tool says when it is called.
#[derive(Clone, Debug)]
pub struct StandIn {
    /// For calls with such arguments; for any when empty.
    pub arguments: Vec<(String, Matcher)>,
    /// What it says.
    pub says: Says,
}

impl StandIn {
    /// Whether it is for a call with these arguments.
    pub fn fits(&self, arguments: &Map<String, Value>) -> bool {
        let arguments = Value::Object(arguments.clone());
        self.arguments.iter().all(|(path, test)| test.accepts(value_at(&arguments, path)))
    }
}

/// How a stand-in answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Says {
    /// The tool's result.
    Result(String),
    /// The tool fails, with these words.
    Failure(String),
}

/// What has to come of a case. What is not said is not looked at, except that a run is answered.
#[derive(Clone, Debug)]
pub struct Expect {
    /// How the run ends.
    pub outcome: &'static str,
    /// The run's error code.
    pub code: Option<String>,
    /// How many turns it takes.
    pub turns: Vec<Matcher>,
    /// The calls, all of them, in the order in which the model asked for them.
    pub calls: Option<Vec<ExpectedCall>>,
    /// The answer.
    pub answer: Vec<Matcher>,
}

impl Default for Expect {
    fn default() -> Self {
        Self { outcome: "answered", code: None, turns: Vec::new(), calls: None, answer: Vec::new() }
    }
}

/// A call that has to be made.
#[derive(Clone, Debug)]
pub struct ExpectedCall {
    /// The tool.
    pub tool: String,
    /// Its arguments, by dotted path.
    pub arguments: Vec<(String, Matcher)>,
    /// The code of its observation, or `ok`.
    pub code: Option<String>,
}

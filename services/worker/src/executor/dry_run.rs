//! A tool that only says what it would do.

use std::path::{Path, PathBuf};

use async_trait::async_trait;
use definitions::run::{BuiltinRun, CommandRun, Run};
use proto::observation::Receipt;
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{Ended, Executor, Job, NotStarted, Output, Prepared, command, http, mcp};

/// Fills the tool's templates as a real attempt does, and starts nothing.
pub struct DryRun {
    run: Run,
    folder: PathBuf,
}

impl DryRun {
    /// The tool of a manifest in `folder`, dry.
    pub fn new(run: &Run, folder: &Path) -> Self {
        Self { run: run.clone(), folder: folder.to_owned() }
    }

    fn told(&self, arguments: &Map<String, Value>) -> Result<String, String> {
        match &self.run {
            Run::Command(run) => command_words(run, &self.folder, arguments),
            Run::Http(run) => Ok(format!("send {}", http::words(run, arguments)?)),
            Run::Mcp(run) => Ok(mcp::words(run, arguments)),
            Run::Builtin(run) => Ok(builtin_words(run, arguments)),
        }
    }
}

fn command_words(
    run: &CommandRun,
    folder: &Path,
    arguments: &Map<String, Value>,
) -> Result<String, String> {
    let argv = command::fill(&run.argv, arguments)?;
    let argv = serde_json::to_string(&argv).unwrap_or_default();
    let folder = run.folder.as_deref().unwrap_or(folder);
    Ok(format!("run {argv} in {}", folder.display()))
}

fn builtin_words(run: &BuiltinRun, arguments: &Map<String, Value>) -> String {
    let mut names = definitions::run::Builtin::ALL.iter();
    let name = names.find(|(_, builtin)| *builtin == run.builtin).map_or("a builtin", |(n, _)| n);
    let root = run.root.as_ref().map(|root| format!(" under {}", root.display()));
    let arguments = Value::Object(arguments.clone());
    format!("do {name} with {arguments}{}", root.unwrap_or_default())
}

#[async_trait]
impl Executor for DryRun {
    async fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>, NotStarted> {
        let told = self.told(&job.call.arguments);
        let told = told.map_err(|why| NotStarted { why, retryable: false })?;
        let tool = &job.call.tool;
        Ok(Box::new(Words(format!(
            "DRY RUN: nothing was started, so nothing has changed. {tool} would {told}."
        ))))
    }
}

struct Words(String);

#[async_trait]
impl Prepared for Words {
    fn process_group(&self) -> Option<i32> {
        None
    }

    async fn run(self: Box<Self>, _: Instant, cancel: CancellationToken) -> Ended {
        if cancel.is_cancelled() {
            let receipt = Receipt::NeverStarted;
            return Ended::Cancelled { output: Output::default(), receipt };
        }
        Ended::Done(Output::from(self.0))
    }
}

#[cfg(test)]
mod tests {
    use definitions::manifest::Manifest;
    use definitions::run::{Surroundings, Unset};
    use serde_json::json;

    use super::*;

    fn tool(run: &str) -> DryRun {
        let text = format!(
            "tools:\n  - name: t\n    description: Does what the test asks for.\n    \
             effect: irreversible\n    timeout_ms: 1000\n    parameters: {{ a: {{ type: string }} }}\n    run: {run}\n"
        );
        let around = Surroundings {
            folder: Path::new("/tools"),
            variable: &|_| None,
            unset: Unset::Problem,
            document: &definitions::run::no_document,
        };
        let manifest = Manifest::parse("t.yaml", &text, &around).unwrap();
        DryRun::new(&manifest.tools[0].run, Path::new("/tools"))
    }

    fn told(run: &str, arguments: &Value) -> String {
        tool(run).told(arguments.as_object().unwrap()).unwrap_or_else(|why| format!("no: {why}"))
    }

    #[test]
    fn a_command_is_told_as_it_would_start() {
        let run = "{ command: [./bin/x, \"--a={a}\"] }";
        assert_eq!(told(run, &json!({"a": "b c"})), r#"run ["/tools/bin/x","--a=b c"] in /tools"#);
    }

    #[test]
    fn a_request_is_told_with_its_address_and_body_and_without_headers() {
        let run = "{ http: { method: POST, url: \"https://h.example/x/{a}\", headers: { Authorization: \"k\" } } }";
        assert_eq!(
            told(run, &json!({"a": "b c"})),
            r#"send POST https://h.example/x/b%20c with {"a":"b c"}"#
        );
    }

    #[test]
    fn what_could_not_start_is_not_told_as_if_it_could() {
        assert!(told("{ command: [x, \"{a}\"] }", &json!({"a": "-rf"})).starts_with("no: "));
    }
}

//! Calls, settings and patience.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use definitions::run::{Builtin, BuiltinRun, CommandRun, Run};
use ports::clock::Clock;
use proto::call::{Terms, ToolCall};
use proto::ids::{ArgumentsHash, Fingerprint, Partition, TenantId, ThreadId, ThreadRef};
use proto::time::Timestamp;
use proto::tool::{Effect, Retry};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use worker::executor::{
    Ended, Executor, ExecutorSettings, Job, McpServers, NotStarted, Output, from_run,
};

pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin";
pub(crate) const CALL: &str = "abc123xyz";

pub(crate) struct FixedClock;

impl Clock for FixedClock {
    fn now(&self) -> Timestamp {
        Timestamp(1_709_164_800_000)
    }
}

/// Settings with a guard.
pub(crate) fn settings(folder: &Path) -> ExecutorSettings {
    let environment = [("PATH", PATH), ("HOME", "/nowhere"), ("SECRET", "s"), ("ALLOWED", "a")];
    ExecutorSettings {
        guard: Some(PathBuf::from(env!("CARGO_BIN_EXE_tool-guard"))),
        self_exe: PathBuf::from("/bin/echo"),
        manifest_folder: folder.to_owned(),
        environment: environment.map(|(name, value)| (name.into(), value.into())).into(),
        clock: Arc::new(FixedClock),
        artifacts: None,
        memory: None,
        mcp: McpServers::default(),
    }
}

pub(crate) fn without_guard(folder: &Path) -> ExecutorSettings {
    ExecutorSettings { guard: None, ..settings(folder) }
}

pub(crate) fn command(argv: &[&str]) -> CommandRun {
    CommandRun {
        argv: argv.iter().map(|element| (*element).to_owned()).collect(),
        folder: None,
        env: vec!["ALLOWED".to_owned(), "UNSET".to_owned()],
        max_output_bytes: 1_000_000,
    }
}

/// A command tool with a guard.
pub(crate) fn tool(folder: &Path, argv: &[&str]) -> Arc<dyn Executor> {
    from_run(&Run::Command(command(argv)), &settings(folder))
}

/// A shell script as a command tool with a guard; `$0` and on are the further elements.
pub(crate) fn script(folder: &Path, text: &str) -> Arc<dyn Executor> {
    tool(folder, &["sh", "-c", text])
}

pub(crate) fn builtin(root: &Path, builtin: Builtin) -> Arc<dyn Executor> {
    let run = BuiltinRun { builtin, root: Some(root.to_owned()), private: false };
    from_run(&Run::Builtin(run), &settings(Path::new("/")))
}

pub(crate) fn job(arguments: Value) -> Job {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let zeros = "0".repeat(64);
    Job {
        thread: ThreadRef {
            partition: Partition(0),
            tenant: TenantId::new("acme").unwrap(),
            thread: ThreadId::from_parts(0, 0),
        },
        call: ToolCall {
            tool_call_id: CALL.parse().unwrap(),
            run: 1,
            turn: 1,
            position: 0,
            tool: "tool".parse().unwrap(),
            arguments,
            arguments_hash: ArgumentsHash::new(zeros.clone()).unwrap(),
            terms: Terms {
                effect: Effect::Irreversible,
                fingerprint: Fingerprint::new(zeros).unwrap(),
                timeout_ms: 3000,
                retry: Retry::default(),
                deadlines: proto::tool::Deadlines::default(),
            },
            start_by: Timestamp(1_000_000),
            deadline: Timestamp(2_000_000),
            idempotency_key: "key-1".to_owned(),
            approved: None,
            opaque: None,
        },
        attempt: 2,
    }
}

/// Far away for a test that is to end by itself.
pub(crate) fn soon_enough() -> Instant {
    Instant::now() + Duration::from_mins(1)
}

/// Prepares and runs to the end.
pub(crate) async fn run(executor: &Arc<dyn Executor>, arguments: Value) -> Ended {
    match executor.prepare(&job(arguments)).await {
        Ok(prepared) => prepared.run(soon_enough(), CancellationToken::new()).await,
        Err(why) => Ended::NotStarted(why),
    }
}

pub(crate) fn output(text: impl AsRef<[u8]>) -> Output {
    let bytes = text.as_ref().to_vec();
    Output { total: u64::try_from(bytes.len()).unwrap(), bytes: bytes.into() }
}

pub(crate) fn done(text: impl AsRef<[u8]>) -> Ended {
    Ended::Done(output(text))
}

pub(crate) fn not_started(why: &str) -> Ended {
    Ended::NotStarted(NotStarted { why: why.to_owned(), retryable: false })
}

pub(crate) fn failed(why: &str) -> Ended {
    Ended::Failed { output: Output::default(), why: why.to_owned(), retryable: false }
}

/// The text that an attempt ended well with.
pub(crate) fn text(ended: Ended) -> String {
    let Ended::Done(output) = ended else { panic!("not done: {ended:?}") };
    String::from_utf8(output.bytes.to_vec()).unwrap()
}

/// Waits until `condition` gives something, for half a minute at most.
pub(crate) fn eventually<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    for _ in 0..6000 {
        if let Some(value) = condition() {
            return value;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("waited in vain until {what}");
}

/// The number in a file, once it is written with its line end.
pub(crate) fn number_in(file: &Path) -> Option<i32> {
    fs::read_to_string(file).ok()?.strip_suffix('\n')?.trim().parse().ok()
}

/// Waits for a number in a file.
pub(crate) async fn number_from(file: PathBuf) -> i32 {
    let wait = move || eventually(&format!("{} is written", file.display()), || number_in(&file));
    tokio::task::spawn_blocking(wait).await.unwrap()
}

pub(crate) fn lives(process: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with(['Z', 'X']))
}

pub(crate) fn wait_until_gone(process: i32) {
    eventually(&format!("{process} is gone"), || (!lives(process)).then_some(()));
}

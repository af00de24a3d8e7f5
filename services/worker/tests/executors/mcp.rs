//! Tools of MCP servers: the reference servers, and one that does what a test asks for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use definitions::manifest::{Manifest, ToolDefinition};
use definitions::run::{Surroundings, Unset, no_document};
use proto::observation::Receipt;
use proto::tool::Effect;
use serde_json::{Value, json};
use testkit::memory::{Config, MemoryBus};
use testkit::servers::{find_npm, require_server};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use worker::executor::{Ended, Executor, ExecutorSettings, McpServers, McpSource, from_run};
use worker::{Tool, Tools};

use crate::support::{job, settings, soon_enough};

/// Tools of one source, ready to be called.
struct World {
    tools: Tools,
    definitions: Vec<(ToolDefinition, ExecutorSettings)>,
    settings: ExecutorSettings,
    folder: tempfile::TempDir,
}

fn world(source: &str) -> World {
    let folder = tempfile::tempdir().unwrap();
    let text = source.replace("FOLDER", folder.path().to_str().unwrap());
    let around = Surroundings {
        folder: folder.path(),
        variable: &|_| None,
        unset: Unset::Problem,
        document: &no_document,
    };
    let manifest = Manifest::parse("t.yaml", &text, &around).unwrap_or_else(|problems| {
        panic!("{}", problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
    });
    let own = settings(folder.path());
    let mut environment = own.environment.clone();
    environment.insert("TOKEN_OF_TEST".into(), "sesame-open-42".into());
    let artifacts: Arc<dyn ports::artifacts::Artifacts> =
        Arc::new(MemoryBus::new(Config::default()).handle(&"w1".parse().unwrap()));
    let settings = ExecutorSettings {
        environment,
        artifacts: Some(artifacts),
        mcp: McpServers::default(),
        ..own
    };
    let definitions =
        manifest.tools.into_iter().map(|tool| (tool, settings.clone())).collect::<Vec<_>>();
    let tools = Tools::new();
    for (definition, settings) in &definitions {
        let executor = from_run(&definition.run, settings);
        tools.add(Tool::new(definition.contract.clone(), executor, None).unwrap());
        tools.withdraw(&definition.contract.name);
    }
    World { tools, definitions, settings, folder }
}

impl World {
    async fn resolved(self) -> Self {
        for source in McpSource::of(&self.definitions) {
            source.renew(&self.tools).await.unwrap();
        }
        self
    }

    fn executor(&self, name: &str) -> Arc<dyn Executor> {
        let found = self.definitions.iter().find(|(tool, _)| tool.contract.name.as_str() == name);
        from_run(&found.unwrap().0.run, &self.settings)
    }

    async fn call(&self, name: &str, arguments: Value) -> Ended {
        let executor = self.executor(name);
        let prepared = timeout(Duration::from_secs(30), executor.prepare(&job(arguments))).await;
        let prepared = match prepared.unwrap() {
            Ok(prepared) => prepared,
            Err(not_started) => return Ended::NotStarted(not_started),
        };
        prepared.run(soon_enough(), CancellationToken::new()).await
    }

    fn contract(&self, name: &str) -> proto::tool::ToolContract {
        self.tools.get(&name.parse().unwrap()).unwrap().contract.clone()
    }

    fn marks(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join("marks")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn started(&self) -> usize {
        self.marks().iter().filter(|mark| mark.starts_with("started")).count()
    }
}

fn text(ended: &Ended) -> String {
    let Ended::Done(output) = ended else { panic!("{ended:?}") };
    String::from_utf8_lossy(&output.bytes).into_owned()
}

const EVERYTHING: &str = "@modelcontextprotocol/server-everything/dist/index.js";
const FILES: &str = "@modelcontextprotocol/server-filesystem/dist/index.js";

fn npm(file: &str) -> Option<PathBuf> {
    require_server(file, find_npm(file))
}

fn everything(program: &Path, more: &str) -> String {
    format!(
        "sources:\n- mcp: {{ command: [node, '{}', stdio]{more} }}\n  tools: [echo, get-sum, \
         get-tiny-image, get-structured-content, get-env, get-resource-links, \
         get-resource-reference, trigger-long-running-operation]\n",
        program.display()
    )
}

#[tokio::test]
async fn the_reference_server_answers_with_text_numbers_images_and_structure() {
    let Some(program) = npm(EVERYTHING) else { return };
    let world = world(&everything(&program, "")).resolved().await;
    assert_eq!(text(&world.call("echo", json!({"message": "héllo"})).await), "Echo: héllo");
    assert!(text(&world.call("get-sum", json!({"a": 2, "b": 40})).await).contains("42"));
    let weather = world.call("get-structured-content", json!({"location": "Chicago"})).await;
    let weather: Value = serde_json::from_str(&text(&weather)).unwrap();
    assert!(weather["temperature"].is_number(), "structured content alone: {weather}");
    let image = text(&world.call("get-tiny-image", json!({})).await);
    assert!(image.contains("[image: image/png, ") && image.contains("artifact "), "{image}");
    let address = image.split("artifact ").nth(1).unwrap().split(']').next().unwrap();
    let artifacts = world.settings.artifacts.clone().unwrap();
    let id = proto::ids::ArtifactId::new(address).unwrap();
    let kept = artifacts.get(&job(json!({})).thread, &id).await.unwrap().unwrap();
    assert_eq!(kept.get(1..4), Some(b"PNG".as_slice()));
    let links = text(&world.call("get-resource-links", json!({"count": 2})).await);
    assert_eq!(links.matches("[link ").count(), 2, "{links}");
    let reference =
        world.call("get-resource-reference", json!({"resourceType": "Text", "resourceId": 1}));
    let reference = text(&reference.await);
    assert!(reference.contains("[resource "), "{reference}");
}

#[tokio::test]
async fn what_the_server_says_of_a_tool_is_what_models_see() {
    let Some(program) = npm(EVERYTHING) else { return };
    let plain = world(&everything(&program, "")).resolved().await;
    let echo = plain.contract("echo");
    assert!(echo.parameters["properties"]["message"].is_object(), "{}", echo.parameters);
    assert!(echo.description.len() > 5 && !echo.description.contains("when the worker starts"));
    assert_eq!(echo.effect, Effect::Irreversible, "nobody trusts it");
    assert!(plain.contract("get-structured-content").result_schema.is_some());
    let trusting = world(&everything(&program, ", trust_annotations: true")).resolved().await;
    assert_eq!(trusting.contract("echo").effect, Effect::ReadOnly);
    assert_ne!(trusting.contract("echo").fingerprint, echo.fingerprint);
}

#[tokio::test]
async fn an_error_of_the_tool_is_a_failure_that_the_model_can_read() {
    let Some(program) = npm(EVERYTHING) else { return };
    let world = world(&everything(&program, "")).resolved().await;
    let ended = world.call("get-sum", json!({"a": "two", "b": 1})).await;
    let Ended::Failed { output, why, retryable: false } = ended else { panic!("{ended:?}") };
    let said = format!("{why} {}", String::from_utf8_lossy(&output.bytes));
    assert!(said.contains("number"), "{said}");
    assert!(text(&world.call("echo", json!({"message": "on"})).await).contains("on"));
}

#[tokio::test]
async fn a_server_sees_only_the_variables_that_its_manifest_names() {
    let Some(program) = npm(EVERYTHING) else { return };
    let more = ", env: { NAMED: { env: TOKEN_OF_TEST }, PLAIN: words }";
    let world = world(&everything(&program, more)).resolved().await;
    let seen = text(&world.call("get-env", json!({})).await);
    let seen: Value = serde_json::from_str(&seen).unwrap();
    let names: Vec<&String> = seen.as_object().unwrap().keys().collect();
    assert_eq!(names, ["HOME", "NAMED", "PATH", "PLAIN"]);
    assert_eq!(seen["NAMED"], "[redacted secret]", "what comes back tells no secret");
    assert_eq!(seen["PLAIN"], "words");
}

#[tokio::test]
async fn a_long_operation_is_stopped_at_its_limit_and_by_a_cancel() {
    let Some(program) = npm(EVERYTHING) else { return };
    let world = world(&everything(&program, "")).resolved().await;
    let slow = json!({"duration": 100, "steps": 1000});
    let tool = world.executor("trigger-long-running-operation");
    let prepared = tool.prepare(&job(slow.clone())).await.unwrap();
    let began = Instant::now();
    let ended = prepared.run(began + Duration::from_millis(800), CancellationToken::new()).await;
    let Ended::TimedOut { output } = ended else { panic!("{ended:?}") };
    let said = String::from_utf8_lossy(&output.bytes).into_owned();
    assert!(said.starts_with("[progress ") && said.contains(" of 1000"), "{said}");
    let cancel = CancellationToken::new();
    let prepared = tool.prepare(&job(slow)).await.unwrap();
    let (ended, ()) = tokio::join!(prepared.run(soon_enough(), cancel.clone()), async {
        sleep(Duration::from_millis(300)).await;
        cancel.cancel();
    });
    assert!(matches!(ended, Ended::Cancelled { receipt: Receipt::Unknown, .. }), "{ended:?}");
    assert!(began.elapsed() < Duration::from_secs(20));
    assert!(text(&world.call("echo", json!({"message": "again"})).await).contains("again"));
}

#[tokio::test]
async fn the_filesystem_server_reads_what_its_folder_has_and_nothing_outside() {
    let Some(program) = npm(FILES) else { return };
    let source = format!(
        "sources:\n- mcp: {{ command: [node, '{}', FOLDER] }}\n  prefix: fs_\n  tools:\n    \
         read_text_file: {{ effect: read_only }}\n    write_file: {{ name: put_file }}\n",
        program.display()
    );
    let world = world(&source).resolved().await;
    assert_eq!(world.contract("fs_read_text_file").effect, Effect::ReadOnly);
    let path = world.folder.path().canonicalize().unwrap().join("a.txt");
    let written = world.call("put_file", json!({"path": path, "content": "words"})).await;
    assert!(matches!(written, Ended::Done(_)), "{written:?}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "words");
    let read = world.call("fs_read_text_file", json!({"path": path})).await;
    assert!(text(&read).contains("words"));
    let outside = world.call("fs_read_text_file", json!({"path": "/etc/passwd"})).await;
    assert!(matches!(outside, Ended::Failed { .. }), "{outside:?}");
}

struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

#[tokio::test]
async fn a_server_elsewhere_is_reached_over_streamable_http_and_again_after_it_was_restarted() {
    let Some(program) = npm(EVERYTHING) else { return };
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let start = || {
        let mut command = Command::new("node");
        command.arg(&program).arg("streamableHttp").env("PORT", port.to_string());
        Killed(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    };
    let reachable = || async {
        while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    let server = start();
    timeout(Duration::from_secs(20), reachable()).await.unwrap();
    let source = format!(
        "sources:\n- mcp: {{ url: 'http://127.0.0.1:{port}/mcp' }}\n  tools: [echo, trigger-long-running-operation]\n"
    );
    let world = world(&source).resolved().await;
    assert_eq!(text(&world.call("echo", json!({"message": "a"})).await), "Echo: a");
    let tool = world.executor("trigger-long-running-operation");
    let prepared = tool.prepare(&job(json!({"duration": 100, "steps": 1000}))).await.unwrap();
    let (ended, ()) =
        tokio::join!(prepared.run(soon_enough(), CancellationToken::new()), async move {
            sleep(Duration::from_millis(400)).await;
            drop(server);
        });
    assert!(matches!(ended, Ended::Crashed { .. }), "killed mid-call leaves a doubt: {ended:?}");
    let _server = start();
    timeout(Duration::from_secs(20), reachable()).await.unwrap();
    let mut answered = world.call("echo", json!({"message": "b"})).await;
    for _ in 0..20 {
        if matches!(answered, Ended::Done(_)) {
            break;
        }
        answered = world.call("echo", json!({"message": "b"})).await;
    }
    assert_eq!(text(&answered), "Echo: b");
}

/// A server that does what a test asks for.
fn asked(more: &str) -> World {
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/executors/mcp_server.py");
    world(&format!(
        "sources:\n- mcp: {{ command: [python3, '{server}'], env: {{ MARKS: FOLDER/marks, BROKEN: \
         FOLDER/broken, TOKEN: {{ env: TOKEN_OF_TEST }} }}{more} }}\n  tools: [die, hang, grow, \
         refuse, flood, secret, children, read]\n"
    ))
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_leaves_a_doubt_and_a_fresh_one_takes_its_place() {
    let world = asked("").resolved().await;
    assert_eq!(text(&world.call("read", json!({})).await), "done read");
    assert_eq!(world.started(), 1, "a warm server is used again");
    let ended = world.call("die", json!({})).await;
    let Ended::Crashed { why, .. } = ended else { panic!("{ended:?}") };
    assert!(why.contains("about to die of a test"), "{why}");
    assert_eq!(text(&world.call("read", json!({})).await), "done read");
    assert_eq!(world.started(), 2);
    let calls = world.marks().iter().filter(|mark| *mark == "called die").count();
    assert_eq!(calls, 1, "nobody below the rules for attempts calls it again");
}

#[tokio::test]
async fn a_cancel_is_told_to_the_server_and_then_ends_all_of_it() {
    let world = asked("").resolved().await;
    let cancel = CancellationToken::new();
    let prepared = world.executor("children").prepare(&job(json!({}))).await.unwrap();
    let (ended, ()) = tokio::join!(prepared.run(soon_enough(), cancel.clone()), async {
        while !world.marks().iter().any(|mark| mark.starts_with("child ")) {
            sleep(Duration::from_millis(10)).await;
        }
        cancel.cancel();
    });
    assert!(matches!(ended, Ended::Cancelled { receipt: Receipt::Unknown, .. }), "{ended:?}");
    let marks = world.marks();
    assert!(marks.iter().any(|mark| mark == "cancelled it is not wanted any more"), "{marks:?}");
    let child = marks.iter().find_map(|mark| mark.strip_prefix("child ")).unwrap();
    assert!(
        !Path::new("/proc").join(child).exists(),
        "what it started is gone when the call is over"
    );
}

#[tokio::test]
async fn an_error_of_the_protocol_is_a_failure_and_the_server_lives_on() {
    let world = asked("").resolved().await;
    let ended = world.call("refuse", json!({})).await;
    let Ended::Failed { why, .. } = ended else { panic!("{ended:?}") };
    assert!(why.contains("no such thing"), "{why}");
    assert_eq!(text(&world.call("read", json!({})).await), "done read");
    assert_eq!(world.started(), 1);
}

#[tokio::test]
async fn a_flood_is_cut_and_a_secret_is_not_told() {
    let world = asked(", max_output_bytes: 1000").resolved().await;
    let Ended::Done(output) = world.call("flood", json!({})).await else { panic!() };
    assert_eq!((output.bytes.len(), output.total), (1000, 3_000_000));
    assert_eq!(text(&world.call("secret", json!({})).await), "it is [redacted secret]");
}

#[tokio::test]
async fn a_changed_list_changes_what_is_offered() {
    let world = asked("").resolved().await;
    let before = world.contract("read");
    let source = McpSource::of(&world.definitions).remove(0);
    assert_eq!(text(&world.call("grow", json!({})).await), "done grow");
    source.renew(&world.tools).await.unwrap();
    let after = world.contract("read");
    assert_eq!(after.description, "It reads otherwise now.");
    assert_ne!(before.fingerprint, after.fingerprint);
    assert_eq!(world.contract("hang").fingerprint, world.contract("hang").fingerprint);
}

#[tokio::test]
async fn a_server_that_does_not_start_proves_that_nothing_began() {
    let world = asked("");
    fs::write(world.folder.path().join("broken"), "").unwrap();
    let Ended::NotStarted(why) = world.call("read", json!({})).await else { panic!() };
    assert!(why.retryable && why.why.contains("broken on purpose"), "{why:?}");
    fs::remove_file(world.folder.path().join("broken")).unwrap();
    assert_eq!(text(&world.call("read", json!({})).await), "done read");
}

#[tokio::test]
async fn each_instance_works_on_one_call_and_there_are_no_more_than_the_manifest_says() {
    let world = asked(", instances: 2").resolved().await;
    let hang = world.executor("hang");
    let first = hang.prepare(&job(json!({}))).await.unwrap();
    let second = hang.prepare(&job(json!({}))).await.unwrap();
    let third = timeout(Duration::from_millis(300), hang.prepare(&job(json!({})))).await;
    assert!(third.is_err(), "a third has to wait");
    assert_eq!(world.started(), 2);
    drop(first);
    assert_eq!(world.started(), 2, "one that was not asked for anything is used again");
    let next = job(json!({}));
    let fresh = timeout(Duration::from_secs(20), hang.prepare(&next)).await.unwrap().unwrap();
    drop((second, fresh));
    assert_eq!(world.started(), 2);
}

#[tokio::test]
async fn a_tool_that_the_server_does_not_have_is_told_with_the_one_that_was_meant() {
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/executors/mcp_server.py");
    let world = world(&format!(
        "sources:\n- mcp: {{ command: [python3, '{server}'], env: {{ MARKS: FOLDER/marks }} }}\n  \
         tools: [reed]\n"
    ));
    let source = McpSource::of(&world.definitions).remove(0);
    let why = source.renew(&world.tools).await.unwrap_err();
    assert!(why.contains("has no tool `reed`; did you mean `read`?"), "{why}");
    assert!(!world.tools.is_offered(&"reed".parse().unwrap()));
}

/// The middle of 200 measurements, in microseconds.
fn middle(mut all: Vec<u128>) -> u128 {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

const MEASURED: usize = 200;

/// How long the server itself takes: bytes in, bytes out, nothing in between.
fn own_time() -> u128 {
    use std::io::{BufRead as _, BufReader, Write as _};
    let folder = tempfile::tempdir().unwrap();
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/executors/mcp_server.py");
    let mut command = Command::new("python3");
    command.arg(server).env("MARKS", folder.path().join("marks"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut from, mut line) = (BufReader::new(from), String::new());
    let times = (0..MEASURED).map(|id| {
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "read", "arguments": {}, "_meta": {"progressToken": id}}});
        let began = Instant::now();
        to.write_all(format!("{call}\n").as_bytes()).unwrap();
        line.clear();
        from.read_line(&mut line).unwrap();
        began.elapsed().as_micros()
    });
    let times = times.collect();
    drop(Killed(child));
    middle(times)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_warm_call_starts_no_server_and_tells_what_it_adds() {
    let own = tokio::task::spawn_blocking(own_time).await.unwrap();
    let world = asked("").resolved().await;
    let mut times = Vec::new();
    for _ in 0..MEASURED {
        let began = Instant::now();
        assert_eq!(text(&world.call("read", json!({})).await), "done read");
        times.push(began.elapsed().as_micros());
    }
    let warm = middle(times);
    eprintln!("a warm MCP call: {warm} µs, of which the server takes {own} µs");
    assert_eq!(world.started(), 1);
}

//! What a command tool gets, and what is made of what it does.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use definitions::run::Run;
use proto::observation::Receipt;
use serde_json::{Value, json};
use tempfile::tempdir;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use worker::executor::{Ended, ExecutorSettings, NotStarted, Output, from_run};

use crate::support::*;

#[tokio::test]
async fn standard_input_is_the_arguments_and_nothing_else() {
    let folder = tempdir().unwrap();
    let arguments = json!({"city": "Zürich\n", "n": 3, "list": [null, {"a": "🙂"}]});
    let read = text(run(&tool(folder.path(), &["cat"]), arguments.clone()).await);
    assert_eq!(serde_json::from_str::<Value>(&read).unwrap(), arguments);
}

#[tokio::test]
async fn a_value_is_one_argument_and_no_shell_sees_it() {
    let folder = tempdir().unwrap();
    let tool = tool(folder.path(), &["printf", "[%s]", "--city={city}", "{n}", "{absent}"]);
    let city = "a b; touch pwned $(touch pwned) `touch pwned` 'x' \"y\" *";
    let ended = run(&tool, json!({"city": city, "n": 3})).await;
    assert_eq!(ended, done(format!("[--city={city}][3]")));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_value_that_looks_like_an_option_does_not_start_the_tool() {
    let folder = tempdir().unwrap();
    let tool = tool(folder.path(), &["cat", "{file}"]);
    let why = "the value for `{file}` begins with `-` and would be read as an option: use a value \
               that does not, or let the tool's command have `--` before `{file}`";
    assert_eq!(run(&tool, json!({"file": "--help"})).await, not_started(why));
}

#[tokio::test]
async fn a_secret_that_the_manifest_hands_over_is_not_told_back() {
    let folder = tempdir().unwrap();
    let with = |settings: ExecutorSettings| {
        let mut settings = settings;
        settings.environment.insert("API_TOKEN".into(), "hunter-22".into());
        settings.environment.insert("REGION".into(), "eu-west-1".into());
        settings
    };
    for settings in [with(settings(folder.path())), with(without_guard(folder.path()))] {
        let say = "echo \"$API_TOKEN in $REGION\"; echo \"no $API_TOKEN\" >&2; exit $0";
        let told = |code: &str| {
            let mut run = command(&["sh", "-c", say, code]);
            run.env = vec!["API_TOKEN".to_owned(), "REGION".to_owned()];
            from_run(&Run::Command(run), &settings)
        };
        let said = text(run(&told("0"), json!({})).await);
        assert_eq!(said, "[redacted secret] in eu-west-1\n");
        let failed = format!("{:?}", run(&told("1"), json!({})).await);
        assert!(!failed.contains("hunter") && failed.contains("no [redacted secret]"), "{failed}");
    }
}

#[tokio::test]
async fn the_environment_is_the_call_and_what_the_manifest_allows() {
    let folder = tempdir().unwrap();
    for settings in [settings(folder.path()), without_guard(folder.path())] {
        let tool = from_run(&Run::Command(command(&["env"])), &settings);
        let printed = text(run(&tool, json!({})).await);
        let mut lines: Vec<&str> = printed.lines().collect();
        lines.sort_unstable();
        let expected = [
            "ALLOWED=a",
            "HOME=/nowhere",
            &format!("PATH={PATH}"),
            "SYSTOLE_ATTEMPT=2",
            "SYSTOLE_DEADLINE_MS=2000000",
            "SYSTOLE_IDEMPOTENCY_KEY=key-1",
            "SYSTOLE_THREAD=0/acme/00000000000000000000000000",
            "SYSTOLE_TIMEOUT_MS=3000",
            "SYSTOLE_TOOL_CALL_ID=abc123xyz",
        ];
        assert_eq!(lines, expected);
    }
}

#[tokio::test]
async fn the_working_folder_is_the_manifests_unless_it_names_another() {
    let folder = tempdir().unwrap();
    let real = folder.path().canonicalize().unwrap();
    fs::create_dir(real.join("sub")).unwrap();
    assert_eq!(run(&tool(&real, &["pwd"]), json!({})).await, done(format!("{}\n", real.display())));
    let run_in = |name: &str| {
        let run = definitions::run::CommandRun { folder: Some(name.into()), ..command(&["pwd"]) };
        from_run(&Run::Command(run), &settings(&real))
    };
    let sub = format!("{}/sub\n", real.display());
    assert_eq!(run(&run_in("sub"), json!({})).await, done(sub));
    let why = format!("the tool's working folder `{}/none` is not there", real.display());
    assert_eq!(run(&run_in("none"), json!({})).await, not_started(&why));
}

fn program(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

#[tokio::test]
async fn a_program_with_a_slash_lies_beside_the_manifest() {
    let folder = tempdir().unwrap();
    program(&folder.path().join("hello"), "#!/bin/sh\necho hello $1\n");
    let tool = tool(folder.path(), &["./hello", "{who}"]);
    assert_eq!(run(&tool, json!({"who": "you"})).await, done("hello you\n"));
}

#[tokio::test]
async fn the_program_systole_is_the_running_one() {
    let folder = tempdir().unwrap();
    let tool = tool(folder.path(), &["systole", "probe"]);
    assert_eq!(run(&tool, json!({})).await, done("probe\n"));
}

#[tokio::test]
async fn a_program_that_is_not_there_is_not_started() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("text"), "no program").unwrap();
    for settings in [settings(folder.path()), without_guard(folder.path())] {
        let started = |name: &str| from_run(&Run::Command(command(&[name])), &settings);
        let why = "the tool's program `no-such-program` is not in the worker's PATH";
        assert_eq!(run(&started("no-such-program"), json!({})).await, not_started(why));
        let place = folder.path().display();
        let why = format!(
            "the tool's program `./text` is not executable; make it so with: chmod +x '{place}/./text'"
        );
        assert_eq!(run(&started("./text"), json!({})).await, not_started(&why));
        for name in ["./no-such-program", "/tmp/"] {
            let why = format!("the tool's program `{name}` is not an executable file in `{place}`");
            assert_eq!(run(&started(name), json!({})).await, not_started(&why));
        }
    }
}

#[tokio::test]
async fn a_program_that_the_system_cannot_execute_is_not_started() {
    let folder = tempdir().unwrap();
    let file = folder.path().join("broken");
    program(&file, "#!/no/such/interpreter\n");
    let error = "No such file or directory (os error 2)";
    let why =
        format!("`{}` could not be started: {error}", folder.path().join("./broken").display());
    assert_eq!(run(&tool(folder.path(), &["./broken"]), json!({})).await, not_started(&why));
    let direct = from_run(&Run::Command(command(&["./broken"])), &without_guard(folder.path()));
    let why = format!("the tool could not be started: {error}");
    assert_eq!(run(&direct, json!({})).await, not_started(&why));
}

#[tokio::test]
async fn arguments_that_the_system_does_not_take_are_not_started() {
    let folder = tempdir().unwrap();
    let ended =
        run(&tool(folder.path(), &["echo", "{a}"]), json!({"a": "x".repeat(200_000)})).await;
    let why = "the tool's process could not be made: Argument list too long (os error 7)";
    assert_eq!(ended, not_started(why));
}

#[tokio::test]
async fn a_guard_that_is_missing_or_silent_starts_nothing() {
    let folder = tempdir().unwrap();
    let with = |guard: &str| {
        let settings = ExecutorSettings { guard: Some(guard.into()), ..settings(folder.path()) };
        from_run(&Run::Command(command(&["touch", "began"])), &settings)
    };
    let why = "the tool's process could not be made: No such file or directory (os error 2)";
    assert_eq!(run(&with("/no/guard"), json!({})).await, not_started(why));
    let why = "the tool's guard process does not answer".to_owned();
    let silent = Ended::NotStarted(NotStarted { why, retryable: true });
    assert_eq!(run(&with("/bin/true"), json!({})).await, silent);
    assert!(!folder.path().join("began").exists());
}

#[tokio::test]
async fn an_exit_code_is_a_failure_that_quotes_standard_error() {
    let folder = tempdir().unwrap();
    for (code, retryable) in [(3, false), (75, true), (127, false)] {
        let tool = script(folder.path(), &format!("echo part; echo oh no >&2; exit {code}"));
        let why =
            format!("the tool ended with exit code {code}; its standard error ends with:\noh no");
        let expected = Ended::Failed { output: output("part\n"), why, retryable };
        assert_eq!(run(&tool, json!({})).await, expected);
    }
}

#[tokio::test]
async fn a_long_standard_error_is_quoted_from_its_end() {
    let folder = tempdir().unwrap();
    let tool = script(folder.path(), "yes 🙂 | head -c 1000000 >&2; echo last >&2; exit 1");
    let Ended::Failed { why, .. } = run(&tool, json!({})).await else { panic!("did not fail") };
    assert!(why.ends_with("🙂\nlast"), "{why}");
    assert!(why.len() < 9000, "{}", why.len());
}

#[tokio::test]
async fn a_signal_of_its_own_is_a_crash() {
    let folder = tempdir().unwrap();
    for (signal, name) in [("SEGV", "signal 11 (segmentation fault)"), ("KILL", "signal 9 (kill)")]
    {
        let tool = script(folder.path(), &format!("echo part; kill -{signal} $$"));
        let why = format!("the tool was ended by {name}, and nothing on its standard error");
        assert_eq!(run(&tool, json!({})).await, Ended::Crashed { output: output("part\n"), why });
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_come_through_as_they_are() {
    let folder = tempdir().unwrap();
    let invalid = script(folder.path(), r"printf 'a\377b\000c'");
    assert_eq!(run(&invalid, json!({})).await, done(b"a\xFFb\x00c"));
    let half_an_emoji = script(folder.path(), r"printf 'a\360\237'");
    assert_eq!(run(&half_an_emoji, json!({})).await, done(b"a\xF0\x9F"));
}

/// The most memory this process ever had.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn a_flood_of_a_gigabyte_is_counted_and_dropped() {
    let folder = tempdir().unwrap();
    let run_flood = definitions::run::CommandRun {
        max_output_bytes: 5,
        ..command(&["head", "-c", "1000000000", "/dev/zero"])
    };
    let tool = from_run(&Run::Command(run_flood), &settings(folder.path()));
    let before = peak_kib();
    let ended = run(&tool, json!({})).await;
    assert_eq!(ended, Ended::Done(Output { bytes: vec![0; 5].into(), total: 1_000_000_000 }));
    let grown = peak_kib() - before;
    assert!(grown < 64 * 1024, "{grown} KiB");
}

#[tokio::test]
async fn a_tool_that_does_not_read_its_arguments_blocks_nobody() {
    let folder = tempdir().unwrap();
    let arguments = json!({"a": "x".repeat(3_000_000)});
    assert_eq!(run(&tool(folder.path(), &["true"]), arguments.clone()).await, done(""));
    let counted = text(run(&tool(folder.path(), &["wc", "-c"]), arguments).await);
    assert_eq!(counted.trim(), "3000008");
}

#[tokio::test]
async fn the_process_group_is_known_before_the_effect_and_is_the_tools() {
    let folder = tempdir().unwrap();
    let tool = script(folder.path(), "touch began; echo $$; cut -d ' ' -f 5 /proc/self/stat");
    let prepared = tool.prepare(&job(json!({}))).await.unwrap();
    let group = prepared.process_group().unwrap();
    assert!(lives(group));
    assert!(!folder.path().join("began").exists());
    let ended = prepared.run(soon_enough(), CancellationToken::new()).await;
    assert_eq!(ended, done(format!("{group}\n{group}\n")));
}

#[tokio::test]
async fn attempts_side_by_side_do_not_disturb_each_other() {
    let folder = tempdir().unwrap();
    let tool = tool(folder.path(), &["echo", "{n}"]);
    let runs = (0..40).map(|n| {
        let tool = &tool;
        async move { (n, run(tool, json!({"n": n})).await) }
    });
    for (n, ended) in futures_util::future::join_all(runs).await {
        assert_eq!(ended, done(format!("{n}\n")));
    }
}

#[tokio::test]
async fn cancelled_before_the_release_it_never_begins() {
    let folder = tempdir().unwrap();
    for settings in [settings(folder.path()), without_guard(folder.path())] {
        let tool = from_run(&Run::Command(command(&["touch", "began"])), &settings);
        let prepared = tool.prepare(&job(json!({}))).await.unwrap();
        let group = prepared.process_group();
        let cancel = CancellationToken::new();
        cancel.cancel();
        let receipt = Receipt::StoppedBeforeEffect;
        let expected = Ended::Cancelled { output: Output::default(), receipt };
        assert_eq!(prepared.run(soon_enough(), cancel).await, expected);
        assert!(!folder.path().join("began").exists());
        assert!(!group.is_some_and(lives));
    }
}

#[tokio::test]
async fn past_its_deadline_it_never_begins() {
    let folder = tempdir().unwrap();
    for settings in [settings(folder.path()), without_guard(folder.path())] {
        let tool = from_run(&Run::Command(command(&["touch", "began"])), &settings);
        let prepared = tool.prepare(&job(json!({}))).await.unwrap();
        let why = "the attempt's deadline passed before the tool could begin".to_owned();
        let expected = Ended::NotStarted(NotStarted { why, retryable: true });
        assert_eq!(prepared.run(Instant::now(), CancellationToken::new()).await, expected);
        assert!(!folder.path().join("began").exists());
    }
}

#[tokio::test]
async fn the_clock_tells_the_time_it_is_given() {
    let tool = builtin(Path::new("/"), definitions::run::Builtin::Clock);
    assert_eq!(run(&tool, json!({})).await, done("2024-02-29T00:00:00Z, Thursday"));
}

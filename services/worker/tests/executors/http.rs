//! HTTP tools against servers of every kind.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use definitions::manifest::Manifest;
use definitions::run::{Surroundings, Unset};
use proto::observation::Receipt;
use proto::tool::Effect;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use worker::executor::{Ended, Executor, ExecutorSettings, Job, NotStarted, Output, from_run};

use crate::http_server::{Server, answer, json as json_answer};
use crate::support::{done, job, output, settings, soon_enough, text};

const TOKEN: &str = "tok-12/\"34 secret";

/// An HTTP tool as a manifest has it.
struct Tool {
    executor: Arc<dyn Executor>,
    effect: Effect,
    _folder: TempDir,
}

/// `PORT` in the text is the server's.
fn tool(port: u16, effect: &str, http: &str) -> Tool {
    definition(port, effect, http, "")
}

/// The probe of a tool.
fn probe(port: u16, http: &str) -> Tool {
    let probe = format!("    probe: {{ http: {http} }}\n");
    definition(port, "checkable", "http://localhost/", &probe)
}

fn definition(port: u16, effect: &str, http: &str, probe: &str) -> Tool {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("key"), "file-secret-1\n").unwrap();
    let text = format!(
        "tools:\n  - name: t\n    description: Asks.\n    effect: {effect}\n    parameters: {{ id: \
         string, q: string, n: integer, o: object }}\n    run: {{ http: {http} }}\n{probe}"
    );
    let text = text.replace("PORT", &port.to_string());
    let around = Surroundings {
        folder: folder.path(),
        variable: &|_| None,
        unset: Unset::Problem,
        document: &definitions::run::no_document,
    };
    let manifest = Manifest::parse("tools.yaml", &text, &around).unwrap();
    let environment = [("API_TOKEN".into(), TOKEN.into())].into();
    let settings = ExecutorSettings { environment, ..settings(folder.path()) };
    let definition = manifest.tools.first().unwrap();
    let run = definition.probe.as_ref().unwrap_or(&definition.run);
    let executor = from_run(run, &settings);
    Tool { executor, effect: definition.contract.effect, _folder: folder }
}

impl Tool {
    fn job(&self, arguments: Value) -> Job {
        let mut job = job(arguments);
        job.call.terms.effect = self.effect;
        job
    }

    async fn call(&self, arguments: Value) -> Ended {
        self.call_until(arguments, soon_enough()).await
    }

    async fn call_until(&self, arguments: Value, deadline: Instant) -> Ended {
        match self.executor.prepare(&self.job(arguments)).await {
            Ok(prepared) => prepared.run(deadline, CancellationToken::new()).await,
            Err(why) => Ended::NotStarted(why),
        }
    }
}

async fn get(server: &Server) -> Ended {
    tool(server.port, "read_only", "\"http://127.0.0.1:PORT/\"").call(json!({})).await
}

async fn post(server: &Server) -> Ended {
    tool(server.port, "irreversible", "\"http://127.0.0.1:PORT/\"").call(json!({})).await
}

fn failed(body: &str, why: &str, retryable: bool) -> Ended {
    Ended::Failed { output: output(body), why: why.to_owned(), retryable }
}

fn crashed(body: &str, why: &str) -> Ended {
    Ended::Crashed { output: output(body), why: why.to_owned() }
}

fn why(ended: &Ended) -> &str {
    match ended {
        Ended::Failed { why, .. }
        | Ended::Crashed { why, .. }
        | Ended::NotStarted(NotStarted { why, .. }) => why,
        Ended::Done(_) | Ended::TimedOut { .. } | Ended::Cancelled { .. } => {
            panic!("no reason: {ended:?}")
        }
    }
}

fn in_millis(millis: u64) -> Instant {
    Instant::now() + Duration::from_millis(millis)
}

#[tokio::test]
async fn a_reading_tool_asks_with_path_query_and_headers() {
    let mut server = Server::answering(answer("200 OK", "", "fine")).await;
    let http = "{ url: \"http://127.0.0.1:PORT/a/{id}?n={n}\", query: { q: \"{q}\", o: \"{o}\" },
        headers: { X-Q: \"q {q}\", X-O: \"{o}\" } }";
    let tool = tool(server.port, "read_only", http);
    assert_eq!(tool.call(json!({"id": "1/2", "q": "a&b", "n": 3})).await, done("fine"));
    let asked = server.asked().await;
    let version = env!("CARGO_PKG_VERSION");
    let port = server.port;
    let expected = format!(
        "GET /a/1%2F2?n=3&q=a%26b HTTP/1.1\r\nuser-agent: systole/{version}\r\naccept: */*\r\nx-q: q a&b\r\nhost: 127.0.0.1:{port}\r\n\r\n"
    );
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn a_changing_tool_posts_its_arguments_or_its_template() {
    let mut server = Server::answering(answer("201 Created", "", "made")).await;
    assert_eq!(post(&server).await, done("made"));
    let asked = server.asked().await;
    assert!(asked.starts_with("POST / HTTP/1.1\r\n") && asked.ends_with("\r\n\r\n{}"), "{asked}");
    assert!(asked.contains("content-type: application/json\r\n"), "{asked}");
    assert!(!asked.contains("idempotency-key"), "{asked}");

    let mut server = Server::answering(answer("204 No Content", "", "")).await;
    let http =
        "{ url: \"http://127.0.0.1:PORT/\", body: { n: \"{n}\", q: \"{q}\", s: \"n={n}\" } }";
    let tool = tool(server.port, "idempotent", http);
    assert_eq!(tool.call(json!({"n": 3})).await, done(""));
    let asked = server.asked().await;
    assert!(asked.ends_with("\r\n\r\n{\"n\":3,\"s\":\"n=3\"}"), "{asked}");
    assert!(asked.contains("idempotency-key: key-1\r\n"), "{asked}");
}

#[tokio::test]
async fn a_mapping_keeps_what_it_names() {
    let server = Server::answering(json_answer(r#"{"data": {"id": 7, "x": 1}, "ok": true}"#)).await;
    let mapped = |result: &str| {
        let http = format!("{{ url: \"http://127.0.0.1:PORT/\", result: {result} }}");
        tool(server.port, "read_only", &http)
    };
    assert_eq!(mapped("/data/id").call(json!({})).await, done("7"));
    let both = mapped("[/data/id, /ok]").call(json!({})).await;
    assert_eq!(both, done(r#"{"id":7,"ok":true}"#));
    let missing = mapped("/result").call(json!({})).await;
    let reason = "the server answered 200 OK, but its body has nothing at `/result`: it is an object of data, ok";
    assert_eq!(missing, failed(r#"{"data": {"id": 7, "x": 1}, "ok": true}"#, reason, false));
}

#[tokio::test]
async fn html_where_json_is_expected_is_no_result_whatever_the_status() {
    let page = "<!DOCTYPE html><p>Sign in</p>";
    let server = Server::answering(answer("200 OK", "Content-Type: text/html\r\n", page)).await;
    let http = "{ url: \"http://127.0.0.1:PORT/\", result: /id }";
    let reason = "the server answered 200 OK, but its body is an HTML page where JSON is expected, \
                  perhaps one for people to sign in";
    let read = tool(server.port, "read_only", http).call(json!({})).await;
    assert_eq!(read, failed(page, reason, false));
    let changed = tool(server.port, "irreversible", http).call(json!({})).await;
    assert_eq!(changed, crashed(page, reason));
}

#[tokio::test]
async fn nobody_is_led_to_another_host() {
    let other = Server::answering(answer("200 OK", "", "stolen")).await;
    let target = format!("http://localhost:{}/x?y", other.port);
    let location = format!("Location: {target}\r\n");
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect"] {
        let server = Server::answering(answer(status, &location, "")).await;
        let reason = format!(
            "the server answered {status} and points to {target}, which was not followed: a tool \
             talks to the host it names and to no other"
        );
        assert_eq!(get(&server).await, failed("", &reason, false));
        // After a 301 or 302 it may be done already.
        let posted = post(&server).await;
        let is_open = status != "307 Temporary Redirect";
        assert_eq!(posted, if is_open { crashed("", &reason) } else { failed("", &reason, false) });
    }
    // Another port is another server.
    let location = format!("Location: http://127.0.0.1:{}/\r\n", other.port);
    let server = Server::answering(answer("302 Found", &location, "")).await;
    assert!(why(&get(&server).await).contains("not followed"));
    assert_eq!(other.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn a_get_is_sent_on_by_its_own_host_a_few_times_and_a_post_never() {
    let server = Server::with(|mut stream, request| async move {
        let hops: u32 = request[5..].split(' ').next().unwrap().parse().unwrap_or(5);
        let reply = match hops {
            0 => answer("200 OK", "", "there"),
            _ => answer("302 Found", &format!("Location: /{}\r\n", hops - 1), "on the way"),
        };
        stream.write_all(reply.as_bytes()).await.ok();
    })
    .await;
    assert_eq!(get(&server).await, done("there"));
    assert_eq!(server.seen().len(), 6);
    let far = tool(server.port, "read_only", "\"http://127.0.0.1:PORT/6\"").call(json!({})).await;
    assert!(why(&far).ends_with("was not followed: it was sent on too often"));
    let posted = post(&server).await;
    assert!(why(&posted).ends_with("was not followed: only a GET is sent on"));
    assert_eq!(server.seen().len(), 6 + 6 + 1);
}

#[tokio::test]
async fn a_body_that_never_ends_is_timed_out_with_what_came() {
    let server = Server::with(|mut stream, _| async move {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\nsome").await.ok();
        std::future::pending::<()>().await;
    })
    .await;
    let tool = tool(server.port, "read_only", "\"http://127.0.0.1:PORT/\"");
    let ended = tool.call_until(json!({}), in_millis(500)).await;
    assert_eq!(ended, Ended::TimedOut { output: output("some") });
}

#[tokio::test]
async fn a_gigabyte_is_cut_and_little_of_it_is_kept() {
    const GIGABYTE: usize = 1024 * 1024 * 1024;
    let server = Server::with(|mut stream, _| async move {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {GIGABYTE}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.ok();
        let block = vec![b'x'; 64 * 1024];
        for _ in 0..GIGABYTE / block.len() {
            if stream.write_all(&block).await.is_err() {
                return;
            }
        }
        panic!("somebody read all of it");
    })
    .await;
    let Ended::Done(output) = get(&server).await else { panic!("a large result is no failure") };
    let mebibyte = 1024 * 1024;
    let note = format!(
        "\n[the body went on after {} bytes, and the connection was closed]\n",
        output.total
    );
    assert!(output.bytes.ends_with(note.as_bytes()));
    assert_eq!(output.bytes.len(), mebibyte + note.len());
    assert!((64 * 1024 * 1024..65 * 1024 * 1024).contains(&output.total), "{}", output.total);
}

#[tokio::test]
async fn a_body_longer_than_what_is_kept_is_counted_and_is_no_json() {
    let server = Server::answering(json_answer(&format!("[\"{}\"]", "é".repeat(100)))).await;
    let kept = |more: &str| {
        let http = format!("{{ url: \"http://127.0.0.1:PORT/\", max_output_bytes: 11{more} }}");
        tool(server.port, "read_only", &http)
    };
    let expected = Output { bytes: "[\"éééé".as_bytes().to_vec().into(), total: 204 };
    assert_eq!(kept("").call(json!({})).await, Ended::Done(expected.clone()));
    let reason = "the server answered 200 OK, but its body of 204 bytes or more is too long to be \
                  read as JSON: 11 are kept";
    let ended = Ended::Failed { output: expected, why: reason.to_owned(), retryable: false };
    assert_eq!(kept(", result: /0").call(json!({})).await, ended);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_result() {
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf of it";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\nhalf of it\r\n";
    for bytes in [half, chunked] {
        let server = Server::answering(bytes).await;
        let start = "the server answered 200 OK, but the body broke off after 10 bytes: ";
        let read = get(&server).await;
        assert!(why(&read).starts_with(start), "{read:?}");
        assert!(
            matches!(&read, Ended::Failed { output: kept, retryable: true, .. } if *kept == output("half of it"))
        );
        // What was sent may have had its effect.
        let changed = post(&server).await;
        assert!(why(&changed).starts_with(start), "{changed:?}");
        assert!(
            matches!(&changed, Ended::Crashed { output: kept, .. } if *kept == output("half of it"))
        );
    }
}

#[tokio::test]
async fn a_request_without_an_answer_is_sent_once_and_leaves_a_doubt() {
    let server = Server::answering("").await;
    let changed = post(&server).await;
    let start = format!("127.0.0.1:{} did not answer: ", server.port);
    assert!(
        matches!(&changed, Ended::Crashed { why, .. } if why.starts_with(&start)),
        "{changed:?}"
    );
    assert_eq!(server.seen().len(), 1);
    let read = get(&server).await;
    assert!(matches!(&read, Ended::Failed { retryable: true, .. }), "{read:?}");
    assert_eq!(server.seen().len(), 2);
}

#[tokio::test]
async fn without_a_connection_nothing_began() {
    let free = Server::answering("").await.port;
    let refused = tool(free, "irreversible", "\"http://127.0.0.1:PORT/\"").call(json!({})).await;
    let why = format!("no connection to 127.0.0.1:{free}: ");
    let began = |ended: &Ended, start: &str, passes: bool| {
        let Ended::NotStarted(NotStarted { why, retryable }) = ended else { panic!("{ended:?}") };
        assert!(why.starts_with(start), "{why}");
        assert_eq!(*retryable, passes, "{why}");
    };
    began(&refused, &why, true);
    let unknown = tool(1, "irreversible", "http://nowhere.invalid/").call(json!({})).await;
    began(&unknown, "no connection to nowhere.invalid:80: ", true);
    let plain = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = plain.local_addr().unwrap().port();
    let insecure = tool(port, "irreversible", "\"https://127.0.0.1:PORT/\"");
    let greet = async {
        let (mut stream, _) = plain.accept().await.unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        stream
    };
    let (ended, _stream) = tokio::join!(insecure.call(json!({})), greet);
    began(&ended, &format!("no connection to 127.0.0.1:{port}: "), false);
}

#[tokio::test]
async fn a_connection_that_never_stands_is_no_doubt() {
    let silent = Server::with(|_stream, _| std::future::pending()).await;
    let tool = tool(silent.port, "irreversible", "\"https://127.0.0.1:PORT/\"");
    let why = "no connection stood within the attempt's time limit".to_owned();
    let ended = tool.call_until(json!({}), in_millis(500)).await;
    assert_eq!(ended, Ended::NotStarted(NotStarted { why, retryable: true }));
}

#[tokio::test]
async fn a_cancel_says_how_far_it_came() {
    let mut server = Server::with(|_stream, _| std::future::pending()).await;
    let tool = tool(server.port, "irreversible", "\"http://127.0.0.1:PORT/\"");
    let cancel = CancellationToken::new();
    let prepared = tool.executor.prepare(&tool.job(json!({}))).await.unwrap();
    let stop = async {
        server.asked().await;
        cancel.cancel();
    };
    let (ended, ()) = tokio::join!(prepared.run(soon_enough(), cancel.clone()), stop);
    let cancelled = |receipt| Ended::Cancelled { output: Output::default(), receipt };
    assert_eq!(ended, cancelled(Receipt::Unknown));
    let prepared = tool.executor.prepare(&tool.job(json!({}))).await.unwrap();
    let before = prepared.run(soon_enough(), cancel).await;
    assert_eq!(before, cancelled(Receipt::StoppedBeforeEffect));
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_status_tells_whether_another_try_may_succeed() {
    let cases = [
        ("400 Bad Request", "", false),
        ("404 Not Found", "", false),
        ("429 Too Many Requests", "", true),
        ("500 Internal Server Error", "", true),
        ("503 Service Unavailable", "", true),
    ];
    for (status, headers, retryable) in cases {
        let server = Server::answering(answer(status, headers, "the reason")).await;
        let why = format!("the server answered {status}");
        assert_eq!(get(&server).await, failed("the reason", &why, retryable));
        assert_eq!(post(&server).await, failed("the reason", &why, retryable));
    }
    // What stands behind a gateway may have done it all the same.
    let server = Server::answering(answer("504 Gateway Timeout", "", "")).await;
    let why = "the server answered 504 Gateway Timeout";
    assert_eq!(get(&server).await, failed("", why, true));
    assert_eq!(post(&server).await, crashed("", why));
    let server = Server::answering(answer("404 Not Found", "", "none")).await;
    let http = "{ url: \"http://127.0.0.1:PORT/\", success: [404] }";
    assert_eq!(tool(server.port, "read_only", http).call(json!({})).await, done("none"));
}

#[tokio::test]
async fn only_a_clear_no_tells_a_probe_that_nothing_happened() {
    async fn asked(status: &str, body: &str) -> Ended {
        let server = Server::answering(answer(status, "", body)).await;
        let http = "{ url: \"http://127.0.0.1:PORT/\", result: /id }";
        probe(server.port, http).call(json!({})).await
    }
    assert_eq!(asked("200 OK", "{\"id\": 1}").await, done("1"));
    for (status, body) in [("404 Not Found", ""), ("410 Gone", ""), ("200 OK", "{\"x\": 1}")] {
        let ended = asked(status, body).await;
        assert!(matches!(ended, Ended::Failed { retryable: false, .. }), "{status}: {ended:?}");
    }
    for status in ["401 Unauthorized", "429 Too Many Requests", "500 Internal Server Error"] {
        let ended = asked(status, "").await;
        assert!(matches!(ended, Ended::Crashed { .. }), "{status}: {ended:?}");
    }
    let ended = asked("200 OK", "<html>").await;
    assert!(matches!(ended, Ended::Crashed { .. }), "{ended:?}");
}

#[tokio::test]
async fn a_server_that_asks_for_time_gets_it() {
    let wait = |seconds: u32| {
        let header = format!("Retry-After: {seconds}\r\n");
        answer("503 Service Unavailable", &header, "")
    };
    let server = Server::answering(wait(1)).await;
    let patient = tool(server.port, "read_only", "\"http://127.0.0.1:PORT/\"");
    let why = "the server answered 503 Service Unavailable and asks to wait 1 seconds";
    let asked = Instant::now();
    assert_eq!(patient.call(json!({})).await, failed("", why, true));
    patient.executor.prepare(&patient.job(json!({}))).await.unwrap();
    assert!(asked.elapsed() >= Duration::from_secs(1));
    let server = Server::answering(wait(3600)).await;
    let why = "the server answered 503 Service Unavailable and asks to wait 3600 seconds";
    assert_eq!(get(&server).await, failed("", why, false));
}

#[tokio::test]
async fn secrets_reach_the_server_and_nobody_else() {
    for status in ["200 OK", "500 Internal Server Error"] {
        let mut server = Server::with(move |mut stream, request| async move {
            let quoted = serde_json::to_string(&request).unwrap();
            let reply = answer(status, "", &format!("{request}\n{quoted}"));
            stream.write_all(reply.as_bytes()).await.ok();
        })
        .await;
        let http = "{ url: \"http://127.0.0.1:PORT/\", headers: {
            Authorization: { env: API_TOKEN, prefix: \"Bearer \" }, X-Key: { file: key } } }";
        let ended = tool(server.port, "read_only", http).call(json!({})).await;
        let asked = server.asked().await;
        assert!(asked.contains(&format!("authorization: Bearer {TOKEN}\r\n")), "{asked}");
        assert!(asked.contains("x-key: file-secret-1\r\n"), "{asked}");
        let (Ended::Done(shown) | Ended::Failed { output: shown, .. }) = &ended else {
            panic!("{ended:?}")
        };
        let shown = String::from_utf8(shown.bytes.to_vec()).unwrap();
        assert_eq!(shown.matches("Bearer [redacted secret]").count(), 2, "{shown}");
        assert!(!format!("{ended:?}{shown}").contains("34 secret"), "{shown}");
        assert!(!shown.contains("file-secret"), "{shown}");
    }
}

#[tokio::test]
async fn a_secret_that_the_cut_halves_is_not_shown_in_part() {
    let server = Server::answering(answer("200 OK", "", "key: file-secret-1")).await;
    let http = "{ url: \"http://127.0.0.1:PORT/\", headers: { X-Key: { file: key } }, max_output_bytes: 12 }";
    let Ended::Done(output) = tool(server.port, "read_only", http).call(json!({})).await else {
        panic!("it failed")
    };
    assert_eq!(output, Output { bytes: b"key: ".to_vec().into(), total: 11 });
    // Letters that a secret happens to begin with are letters.
    let server = Server::answering(answer("200 OK", "", "wifi")).await;
    let http = "{ url: \"http://127.0.0.1:PORT/\", headers: { X-Key: { file: key } } }";
    assert_eq!(tool(server.port, "read_only", http).call(json!({})).await, done("wifi"));
}

#[tokio::test]
async fn a_secret_that_is_not_there_is_named_and_nothing_begins() {
    let server = Server::answering("").await;
    let needs = |place: &str| {
        let http = format!("{{ url: \"http://127.0.0.1:PORT/\", headers: {{ X-Key: {place} }} }}");
        tool(server.port, "read_only", &http)
    };
    let ended = needs("{ env: NONE }").call(json!({})).await;
    assert_eq!(why(&ended), "the environment variable NONE, which the tool needs, is not set");
    let ended = needs("{ file: none }").call(json!({})).await;
    assert!(
        why(&ended)
            .ends_with("none`, which the tool needs: No such file or directory (os error 2)")
    );
    assert_eq!(server.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn a_value_never_becomes_a_header() {
    let server = Server::answering("").await;
    let http = "{ url: \"http://127.0.0.1:PORT/\", headers: { X-Q: \"{q}\" } }";
    let ended = tool(server.port, "read_only", http).call(json!({"q": "a\r\nX-Evil: b"})).await;
    let reason = "the value for the header `X-Q` has a line break or a control character in it";
    let refused = NotStarted { why: reason.to_owned(), retryable: false };
    assert_eq!(ended, Ended::NotStarted(refused));
    assert_eq!(server.seen(), Vec::<String>::new());
}

async fn fetch(url: &str) -> Ended {
    fetch_as(url, true).await
}

async fn fetch_as(url: &str, private: bool) -> Ended {
    let run = definitions::run::BuiltinRun {
        builtin: definitions::run::Builtin::FetchUrl,
        root: None,
        private,
    };
    let fetch = from_run(&definitions::run::Run::Builtin(run), &settings(Path::new("/")));
    crate::support::run(&fetch, json!({"url": url})).await
}

#[tokio::test]
async fn a_page_is_fetched_as_text() {
    let page = "<html><head><title>News</title><script>evil()</script></head><p>One &amp; two";
    let server = Server::answering(answer("200 OK", "Content-Type: text/html\r\n", page)).await;
    let at = format!("http://127.0.0.1:{}/", server.port);
    assert_eq!(text(fetch(&at).await), "News\nOne & two\n");
    let plain = Server::answering(answer("200 OK", "Content-Type: text/plain\r\n", "<b>")).await;
    assert_eq!(fetch(&format!("http://127.0.0.1:{}/", plain.port)).await, done("<b>"));
    let image = Server::answering(answer("200 OK", "Content-Type: image/png\r\n", "x")).await;
    let why = "the address leads to image/png, which is not text";
    assert_eq!(fetch(&format!("http://127.0.0.1:{}/", image.port)).await, failed("", why, false));
}

#[tokio::test]
async fn a_page_of_a_private_network_is_fetched_only_where_the_file_allows_it() {
    let server = Server::answering(answer("200 OK", "Content-Type: text/plain\r\n", "x")).await;
    for host in ["127.0.0.1", "localhost", "127.1", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{}/", server.port);
        let Ended::NotStarted(refused) = fetch_as(&url, false).await else { panic!("{url}") };
        assert!(!refused.retryable && refused.why.contains("may not ask"), "{}", refused.why);
    }
    let metadata = fetch("http://169.254.169.254/latest/meta-data/").await;
    assert!(why(&metadata).contains("may not ask"), "{metadata:?}");
    assert_eq!(server.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn only_the_web_is_fetched_and_only_the_host_that_was_asked() {
    let fix = "give one that begins with https:// or http://";
    for url in ["file:///etc/passwd", "ftp://h/x", "gopher://h", "data:text/html,x"] {
        let scheme = url.split(':').next().unwrap();
        let ended = fetch(url).await;
        assert_eq!(why(&ended), format!("argument `url` begins with {scheme}: {fix}"));
    }
    assert!(why(&fetch("/etc/passwd").await).starts_with("argument `url` is no address"));
    assert!(why(&fetch("http://u:p@h/").await).starts_with("argument `url` has a user"));
    let location = "Location: http://169.254.169.254/\r\n";
    let server = Server::answering(answer("302 Found", location, "")).await;
    let ended = fetch(&format!("http://127.0.0.1:{}/", server.port)).await;
    let reason = "the server answered 302 Found and points to http://169.254.169.254/, which was not \
                  followed: a tool talks to the host it names and to no other";
    assert_eq!(ended, failed("", reason, false));
}

#[tokio::test]
async fn no_url_and_no_name_leads_to_this_machine_unless_the_file_allows_it() {
    let server = Server::answering(answer("200 OK", "Content-Type: text/plain\r\n", "mine")).await;
    let port = server.port;
    for host in ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "0.0.0.0"]
    {
        let ended = fetch_as(&format!("http://{host}:{port}/"), false).await;
        let Ended::NotStarted(NotStarted { why, retryable: false }) = ended else {
            panic!("{host}: {ended:?}")
        };
        assert!(why.contains("is this machine, which the tool may not ask"), "{host}: {why}");
    }
    assert_eq!(server.seen(), Vec::<String>::new(), "nothing was sent");
    let named =
        tool(port, "read_only", "{ url: \"http://localhost:PORT/\" }").call(json!({})).await;
    assert_eq!(named, done("mine"), "a file may name its own machine");
}

//! The wire format, and the server on a real socket.

use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use expect_test::expect;
use http_body_util::BodyExt as _;
use rehearsal::script::Script;
use rehearsal::server::Rehearsal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tower::ServiceExt as _;

const RULES: &str = r#"
rules:
  - when: { user_matches: busy }
    fail: { status: 429, retry_after: 2, times: 1 }
    say: at last
  - when: { user_matches: broken }
    fail: { cut_after: 2 }
    say: this is cut off
  - when: { user_matches: act }
    reasoning: "Think \"hard\"."
    say: Now.
    calls: [{ tool: look, arguments: { at: "the \"moon\"" } }, { tool: wait }]
    confidence: 0.5
  - when: { user_matches: answer }
    reasoning: Nothing to do.
    say: It is done.
"#;

fn rehearsal() -> Rehearsal {
    Rehearsal::new(Script::parse("r.yaml", RULES).unwrap())
}

fn asking(text: &str, contract: bool, stream: bool) -> Value {
    let system = if contract { r#"{"reasoning": "", "tool_calls": []}"# } else { "Be brief." };
    let messages =
        json!([{"role": "system", "content": system}, {"role": "user", "content": text}]);
    json!({"model": "m", "messages": messages, "stream": stream, "stream_options": {"include_usage": true}})
}

async fn post(rehearsal: &Rehearsal, body: String) -> (StatusCode, Option<String>, String) {
    let request = Request::post("/v1/chat/completions")
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from(body))
        .unwrap();
    let response = rehearsal.clone().router().oneshot(request).await.unwrap();
    let status = response.status();
    let wait = response.headers().get(header::RETRY_AFTER);
    let wait = wait.map(|value| value.to_str().unwrap().to_owned());
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (status, wait, String::from_utf8(body.to_vec()).unwrap())
}

async fn completion(text: &str, contract: bool) -> Value {
    let (status, _, body) = post(&rehearsal(), asking(text, contract, false).to_string()).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    serde_json::from_str(&body).unwrap()
}

/// What a client puts together from the chunks of a stream.
async fn streamed(text: &str, contract: bool) -> Value {
    let (status, _, body) = post(&rehearsal(), asking(text, contract, true).to_string()).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert!(body.ends_with("data: [DONE]\n\n"));
    let mut whole = json!({"content": "", "reasoning_content": "", "tool_calls": []});
    let chunks = body.split("\n\n").filter_map(|line| line.strip_prefix("data: {"));
    for chunk in chunks {
        let chunk: Value = serde_json::from_str(&format!("{{{chunk}")).unwrap();
        assert_eq!(
            (&chunk["object"], &chunk["model"]),
            (&json!("chat.completion.chunk"), &json!("m"))
        );
        if !chunk["usage"].is_null() {
            whole["usage"] = chunk["usage"].clone();
        }
        let Some(choice) = chunk.pointer("/choices/0") else { continue };
        if !choice["finish_reason"].is_null() {
            whole["finish_reason"] = choice["finish_reason"].clone();
        }
        add(&mut whole, &choice["delta"]);
    }
    whole
}

fn add(whole: &mut Value, delta: &Value) {
    for name in ["content", "reasoning_content"] {
        if let Some(part) = delta[name].as_str() {
            let text = whole[name].as_str().unwrap().to_owned();
            whole[name] = json!(format!("{text}{part}"));
        }
    }
    let Some(entry) = delta.pointer("/tool_calls/0") else { return };
    let calls = whole["tool_calls"].as_array_mut().unwrap();
    let index = usize::try_from(entry["index"].as_u64().unwrap()).unwrap();
    if index == calls.len() {
        calls.push(json!({"name": entry["function"]["name"], "arguments": ""}));
    }
    let text = calls[index]["arguments"].as_str().unwrap().to_owned();
    let part = entry["function"]["arguments"].as_str().unwrap();
    calls[index]["arguments"] = json!(format!("{text}{part}"));
}

#[tokio::test]
async fn a_native_stream_carries_thought_words_calls_and_usage() {
    assert_eq!(
        streamed("act", false).await,
        json!({
            "reasoning_content": "Think \"hard\".",
            "content": "Now.",
            "tool_calls": [
                {"name": "look", "arguments": "{\"at\":\"the \\\"moon\\\"\"}"},
                {"name": "wait", "arguments": "{}"},
            ],
            "finish_reason": "tool_calls",
            "usage": {"prompt_tokens": 3, "completion_tokens": 12, "total_tokens": 15},
        })
    );
}

#[tokio::test]
async fn a_contract_stream_is_one_object_as_text() {
    let whole = streamed("act", true).await;
    let object = r#"{"reasoning":"Think \"hard\".\n\nNow.","tool_calls":[{"name":"look","arguments":{"at":"the \"moon\""}},{"name":"wait","arguments":{}}],"confidence":0.5}"#;
    assert_eq!((&whole["content"], &whole["finish_reason"]), (&json!(object), &json!("stop")));
    assert_eq!(whole["tool_calls"], json!([]));
    let answer = streamed("answer", true).await;
    assert_eq!(answer["content"], json!(r#"{"reasoning":"It is done.","tool_calls":[]}"#));
}

#[tokio::test]
async fn a_whole_completion_says_the_same_as_the_stream() {
    let whole = completion("act", false).await;
    assert_eq!(
        whole["choices"][0],
        json!({
            "index": 0,
            "finish_reason": "tool_calls",
            "message": {
                "role": "assistant",
                "content": "Now.",
                "reasoning_content": "Think \"hard\".",
                "tool_calls": [
                    {"id": "call_rehearsed_0", "type": "function",
                     "function": {"name": "look", "arguments": "{\"at\":\"the \\\"moon\\\"\"}"}},
                    {"id": "call_rehearsed_1", "type": "function",
                     "function": {"name": "wait", "arguments": "{}"}},
                ],
            },
        })
    );
    let answer = completion("answer", true).await;
    assert_eq!(
        answer["choices"][0]["message"]["content"],
        json!(r#"{"reasoning":"It is done.","tool_calls":[]}"#)
    );
}

#[tokio::test]
async fn a_request_without_a_rule_is_refused_with_a_code() {
    let (status, _, body) = post(&rehearsal(), asking("nonsense", false, true).to_string()).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    expect![[r#"{"error":{"code":"no_rule_matched","message":"no rule of the rehearsal fits: turn 1, the last message is the user's: \"nonsense\"; called so far: []","param":null,"type":"invalid_request_error"}}"#]]
        .assert_eq(&body);
}

#[tokio::test]
async fn a_request_that_is_not_json_is_refused() {
    let (status, _, body) = post(&rehearsal(), "{".to_owned()).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(body.contains("invalid_input"), "{body}");
}

#[tokio::test]
async fn a_failure_may_happen_a_number_of_times() {
    let rehearsal = rehearsal();
    let ask = || post(&rehearsal, asking("busy", false, false).to_string());
    let (status, wait, body) = ask().await;
    assert_eq!((status, wait.as_deref()), (StatusCode::TOO_MANY_REQUESTS, Some("2")));
    assert!(body.contains("rate_limit_error"), "{body}");
    let (status, _, body) = ask().await;
    assert_eq!(status, StatusCode::OK);
    assert!(body.contains("at last"), "{body}");
}

#[tokio::test]
async fn a_cut_stream_breaks_without_an_end() {
    let request = Request::post("/v1/chat/completions")
        .body(Body::from(asking("broken", false, true).to_string()))
        .unwrap();
    let response = rehearsal().router().oneshot(request).await.unwrap();
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_pace_is_kept_and_can_be_sped_up() {
    let rules = "{pace: {tokens_per_second: 10, first_token_ms: 1000}, rules: [{say: 'one two'}]}";
    let rehearsal = Rehearsal::new(Script::parse("r.yaml", rules).unwrap());
    let mut times = Vec::new();
    for speed in [1.0, 2.0, f64::INFINITY] {
        let began = tokio::time::Instant::now();
        post(&rehearsal.clone().at_speed(speed), asking("x", false, true).to_string()).await;
        times.push(began.elapsed().as_millis());
    }
    // An opening piece and two words: the first after a second, the others after a beat each.
    assert_eq!(times, [1200, 600, 0]);
}

#[tokio::test]
async fn it_serves_on_a_socket_and_stops_when_told() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let serving = rehearsal().serve(listener, async {
        stopped.await.unwrap();
    });
    let asking = async {
        for path in ["/livez", "/v1/models"] {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
        }
        stop.send(()).unwrap();
    };
    let (served, ()) = tokio::join!(serving, asking);
    served.unwrap();
}

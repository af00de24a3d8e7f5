//! Endpoints that break off, say errors inside a good status, or never stop: the run ends and says
//! why, and what was called before is done once.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use serde_json::json;

use crate::agents::{command, with_tool};
use crate::home::{Ended, Home, finish};

/// Answers each request with the next body; the last one again and again. A body may be cut.
fn serve(bodies: Vec<String>) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (mut stream, body) =
                (stream.unwrap(), bodies[number.min(bodies.len() - 1)].clone());
            thread::spawn(move || {
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                // The body's end is told by its last brace: it is one JSON object.
                while !request.ends_with(b"}") {
                    let read = stream.read(&mut buffer).unwrap_or(0);
                    if read == 0 {
                        return;
                    }
                    request.extend_from_slice(&buffer[..read]);
                }
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
                // Whoever asked may have heard enough.
                drop(
                    stream
                        .write_all(head.as_bytes())
                        .and_then(|()| stream.write_all(body.as_bytes())),
                );
            });
        }
    });
    format!("http://{address}/v1")
}

fn chunk(delta: &serde_json::Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}))
}

fn call(arguments: &str) -> String {
    let function = json!({"name": "probe", "arguments": arguments});
    chunk(&json!({"tool_calls": [{"index": 0, "id": "call_1", "function": function}]}))
}

fn said(words: &str) -> String {
    chunk(&json!({"content": words}))
}

fn done() -> String {
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    format!("data: {end}\n\ndata: [DONE]\n\n")
}

/// A tool that leaves a line behind. Arguments that are not empty are final once they close.
fn home() -> Home {
    let home = Home::new();
    let tool =
        command("[/bin/sh, -c, 'echo once >> effects; echo ok', probe, '{n}']", "idempotent", "");
    let tool = tool.replace(
        "parameters: {}",
        "parameters: { n: { type: integer, required: true, description: Any number. } }",
    );
    with_tool(&home, &tool, "{}");
    home
}

fn run(home: &Home, bodies: Vec<String>) -> Ended {
    let url = serve(bodies);
    finish(home.command(["run", "agent.yaml", "go", "--json", "--base-url", &url]))
}

fn error(message: &str) -> String {
    format!("data: {}\n\n", json!({"error": {"message": message, "type": "server_error"}}))
}

fn seals(ended: &Ended) -> Vec<String> {
    let events = ended.events().into_iter();
    let sealed = events.filter(|event| event["type"] == "turn_sealed");
    sealed.map(|event| event["why"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_stream_that_breaks_behind_a_call_goes_on_with_its_result_and_makes_the_call_once() {
    for broken in [String::new(), error("overloaded"), "data: {\"choices\":[{\"del".to_owned()] {
        let home = home();
        let first = said("I look.") + &call("{\"n\":1}") + &broken;
        let ended = run(&home, vec![first, said("All is well.") + &done()]);
        assert_eq!(ended.answer(), "All is well.", "{broken}: {ended:?}");
        assert_eq!(seals(&ended), ["stream_broken"], "{broken}");
        assert_eq!(home.read("effects"), "once\n", "{broken}");
    }
}

#[test]
fn an_error_inside_a_good_status_is_asked_again_and_never_an_answer() {
    for broken in [error("overloaded"), String::new(), said("I lo")] {
        let home = home();
        let ended = run(&home, vec![broken.clone(), said("All is well.") + &done()]);
        assert_eq!(ended.answer(), "All is well.", "{broken}: {ended:?}");
        assert_eq!(seals(&ended), [""; 0], "{broken}");
    }
    let home = home();
    let page = "<html><body>It works!</body></html>".to_owned();
    let ended = run(&home, vec![page]);
    let last = ended.last();
    assert_eq!((last["outcome"].as_str(), ended.code), (Some("failed"), Some(1)), "{ended:?}");
    assert!(!last["answer"].as_str().unwrap().contains("<html>"), "{last}");
}

#[test]
fn ten_megabytes_of_arguments_end_in_a_word_and_not_in_an_effect() {
    let home = home();
    let large = format!("{{\"n\":1,\"more\":\"{}\"}}", "x".repeat(10_000_000));
    let mut running = home.start_command({
        let url = serve(vec![call(&large) + &done(), said("I stop.") + &done()]);
        home.command(["run", "agent.yaml", "go", "--json", "--base-url", &url])
    });
    let mut most = 0;
    crate::home::until("the run is over", || {
        most = most.max(running.most_memory().unwrap_or(0));
        running.is_over()
    });
    let ended = running.end();
    assert_eq!(ended.last()["type"], "run_finished", "{}", ended.err);
    assert_eq!(home.read("effects"), "", "the arguments were not what the tool takes");
    assert!(most < 700 * 1024 * 1024, "{most} bytes");
}

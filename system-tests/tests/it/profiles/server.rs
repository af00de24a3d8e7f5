//! A rehearsal that speaks like one family of endpoints, and takes no request that it would refuse.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rehearsal::engine::{Form, Plan};
use rehearsal::heard::Heard;
use rehearsal::script::Script;
use serde_json::{Value, json};

use super::quirks;
use super::strict;

/// The families, by the names of their profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    Openai,
    Mistral,
    Anthropic,
    Gemini,
    LlamaCpp,
    Ollama,
    Vllm,
}

/// Serves for as long as the test runs; answers with the address.
pub(crate) fn serve(family: Family, rehearsal: &str) -> String {
    let script = Arc::new(Script::parse("rehearsal.yaml", rehearsal).unwrap());
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let script = Arc::clone(&script);
            thread::spawn(move || answer(family, &script, stream.unwrap()));
        }
    });
    format!("http://{address}/v1")
}

fn answer(family: Family, script: &Script, mut stream: TcpStream) {
    let body = request(&mut stream);
    let wrong = strict::problems(family, &body);
    if !wrong.is_empty() {
        let error = json!({"error": {"message": format!("{family:?}: {wrong:?}")}}).to_string();
        let length = error.len();
        let head = format!(
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all((head + &error).as_bytes()).unwrap();
        return;
    }
    let plan = script.reply(&Heard::read(&body)).unwrap();
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    // Each event is a segment of its own, as they come off a wire.
    for event in events(family, &plan) {
        stream.write_all(event.as_bytes()).unwrap();
        stream.flush().unwrap();
    }
}

fn events(family: Family, plan: &Plan) -> Vec<String> {
    match plan.form {
        Form::Native => quirks::native(family, plan),
        Form::Contract => quirks::contract(family, &quirks::object(plan)),
    }
}

fn request(stream: &mut TcpStream) -> Value {
    let mut bytes = Vec::new();
    let mut buffer = [0; 16 * 1024];
    loop {
        let read = stream.read(&mut buffer).unwrap();
        assert!(read > 0, "the request was cut");
        bytes.extend_from_slice(&buffer[..read]);
        let Some(end) = bytes.windows(4).position(|part| part == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let length: usize = length.unwrap().trim().parse().unwrap();
        if bytes.len() >= end + 4 + length {
            return serde_json::from_slice(&bytes[end + 4..]).unwrap();
        }
    }
}

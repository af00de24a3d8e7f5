//! Vectors from an endpoint.

use std::time::Duration;

use model_openai::{EmbedderSettings, OpenAiEmbedder};
use ports::BusError;
use ports::embedder::Embedder;
use ports::recall::Space;

use crate::server::{Seen, Server, Then};

fn answer(body: &str) -> (String, Then) {
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    (head + body, Then::Close)
}

async fn embedder(answers: Vec<(String, Then)>) -> (OpenAiEmbedder, Server) {
    drop(rustls::crypto::ring::default_provider().install_default());
    let server = Server::start(answers).await;
    let settings = EmbedderSettings {
        base_url: server.base_url(),
        api_key: "key-123456".to_owned(),
        model: "small".to_owned(),
        deadline: Duration::from_secs(5),
    };
    (OpenAiEmbedder::new(settings).unwrap(), server)
}

fn texts(all: &[&str]) -> Vec<String> {
    all.iter().map(|text| (*text).to_owned()).collect()
}

#[tokio::test]
async fn vectors_come_in_the_order_of_their_texts_with_length_one_and_are_asked_for_once() {
    let two = r#"{"data":[{"index":1,"embedding":[0.0,2.0]},{"index":0,"embedding":[3.0,4.0]}]}"#;
    let one = r#"{"data":[{"index":0,"embedding":[-1.0,0.0]}]}"#;
    let (embedder, mut server) = embedder(vec![answer(two), answer(one)]).await;
    let made = embedder.embed(&texts(&["a", "b"])).await.unwrap();
    let near = |vector: &[f32], wanted: [f32; 2]| {
        vector.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6)
    };
    assert!(near(&made[0], [0.6, 0.8]) && near(&made[1], [0.0, 1.0]), "{made:?}");
    let again = embedder.embed(&texts(&["b", "c", "a"])).await.unwrap();
    assert!(
        near(&again[0], [0.0, 1.0]) && near(&again[1], [-1.0, 0.0]) && near(&again[2], [0.6, 0.8])
    );
    let Seen::Request(first) = server.next().await else { panic!("no request") };
    assert!(
        first.contains("/embeddings")
            && first.to_lowercase().contains("authorization: bearer key-123456"),
        "{first}"
    );
    let Seen::Request(second) = server.next().await else { panic!("no request") };
    assert!(second.contains(r#""input":["c"]"#), "only what is not known: {second}");
}

#[tokio::test]
async fn the_space_is_what_the_endpoint_makes() {
    let one = r#"{"data":[{"index":0,"embedding":[1.0,0.0,0.0]}]}"#;
    let (embedder, _server) = embedder(vec![answer(one)]).await;
    let space = Space { model: "small".to_owned(), dimension: 3 };
    assert_eq!(embedder.space().await, Ok(Some(space)));
}

#[tokio::test]
async fn an_answer_that_does_not_fit_its_texts_is_refused() {
    for body in [r#"{"data":[]}"#, r#"{"data":[{"index":1,"embedding":[1.0]}]}"#, "[]"] {
        let (embedder, _server) = embedder(vec![answer(body)]).await;
        let made = embedder.embed(&texts(&["a"])).await;
        assert!(matches!(made, Err(BusError::Refused(_))), "{body}: {made:?}");
    }
}

//! A model behind TLS: the program's one provider of cryptography can make the connection.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::home::Home;

const AGENT: &str = "\
name: far
role: You answer.
model: far-model
tools: []
";

const REPLY: &str = concat!(
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",",
    "\"content\":\"Hello over TLS.\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: [DONE]\n\n",
);

/// Reads one request to its end.
async fn read_request(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<()> {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let read = stream.read(&mut buffer).await.ok()?;
        if read == 0 {
            return None;
        }
        seen.extend_from_slice(&buffer[..read]);
        let text = String::from_utf8_lossy(&seen).to_ascii_lowercase();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.split_once("content-length: ")?.1;
        let length: usize = length.lines().next()?.trim().parse().ok()?;
        if body.len() >= length {
            return Some(());
        }
    }
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor) {
    loop {
        let Ok((socket, _)) = listener.accept().await else { return };
        let Ok(mut stream) = acceptor.accept(socket).await else { continue };
        if read_request(&mut stream).await.is_none() {
            continue;
        }
        let head =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        let told = stream.write_all(format!("{head}{REPLY}").as_bytes()).await;
        told.and(stream.shutdown().await).unwrap();
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_model_behind_tls_answers_a_run() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let home = Home::new();
    home.write("agent.yaml", AGENT);
    home.write("tools.yaml", "tools: []\n");
    home.write("root.pem", &made.cert.pem());
    let mut command = home.command(["run", "agent.yaml", "Hello?", "--json"]);
    command.env("OPENAI_API_KEY", "none").env("SSL_CERT_FILE", home.path().join("root.pem"));
    command.env("OPENAI_BASE_URL", format!("https://localhost:{port}/v1"));
    let run = tokio::task::spawn_blocking(move || command.output().unwrap());
    let output = tokio::select! {
        output = run => output.unwrap(),
        () = serve(listener, TlsAcceptor::from(Arc::new(config))) => panic!("the server ended"),
    };
    let out = String::from_utf8(output.stdout).unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(out.contains("Hello over TLS."), "{out}\n{err}");
    assert_eq!(output.status.code(), Some(0), "{out}\n{err}");
}

//! Who may connect, and how the connection is kept secret.

use std::time::Duration;

use bus_nats::{ConnectError, Login, NatsBus, Settings};
use ports::journal::Journal;
use proto::error_code::ErrorCode;
use tempfile::TempDir;
use testkit::servers::require_server;

use crate::server::{Server, program, too_old_program};

/// The bus works once the server tells its time.
async fn tells_its_time(settings: Settings) -> Result<bool, ConnectError> {
    let bus = NatsBus::connect(settings).await?;
    Ok(bus.server_time().await.map(|time| time.0 > 0)?)
}

#[tokio::test]
async fn a_connection_over_tls_is_made_with_the_one_provider() {
    let Some(program) = require_server("nats-server", program()) else { return };
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let folder = TempDir::new().unwrap();
    let root = folder.path().join("cert.pem");
    std::fs::write(&root, made.cert.pem()).unwrap();
    std::fs::write(folder.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let tls = "tls { cert_file: \"FOLDER/cert.pem\", key_file: \"FOLDER/key.pem\" }";
    let server = Server::start_in(&program, folder, tls).await;
    let settings = Settings {
        root_certificates: Some(root),
        require_tls: true,
        ..Settings::new(format!("tls://localhost:{}", server.port()))
    };
    assert_eq!(tells_its_time(settings).await, Ok(true));
}

#[tokio::test]
async fn a_password_lets_in_and_a_wrong_one_is_refused_at_once() {
    let Some(program) = require_server("nats-server", program()) else { return };
    let users = "authorization { user: ann, password: right }";
    let server = Server::start_with(&program, users).await;
    let login = |password: &str| Settings {
        login: Login::Password { user: "ann".to_owned(), password: password.to_owned() },
        ..server.settings()
    };
    assert_eq!(tells_its_time(login("right")).await, Ok(true));
    assert!(server.streams() > 0, "streams are counted");
    let refused = tells_its_time(login("wrong")).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::BusLoginRefused, "{refused}");
}

#[tokio::test]
async fn a_token_lets_in() {
    let Some(program) = require_server("nats-server", program()) else { return };
    let server = Server::start_with(&program, "authorization { token: secret }").await;
    let settings = Settings { login: Login::Token("secret".to_owned()), ..server.settings() };
    assert_eq!(tells_its_time(settings).await, Ok(true));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_given_up_with_its_address() {
    let settings =
        Settings { connect: Duration::from_millis(300), ..Settings::new("nats://127.0.0.1:1") };
    let gone = tells_its_time(settings).await.unwrap_err();
    assert_eq!(gone.code(), ErrorCode::BusUnreachable, "{gone}");
    assert!(gone.to_string().contains("127.0.0.1:1"), "{gone}");
}

#[tokio::test]
async fn a_server_that_is_too_old_is_refused_before_anything_is_created_there() {
    let Some(program) = require_server("nats-server 2.11", too_old_program()) else { return };
    let server = Server::start(&program).await;
    let refused = tells_its_time(server.settings()).await.unwrap_err();
    assert_eq!(refused.code(), ErrorCode::BusTooOld, "{refused}");
    assert!(refused.to_string().contains("2.11") && refused.to_string().contains("2.12"));
    assert_eq!(server.streams(), 0);
}

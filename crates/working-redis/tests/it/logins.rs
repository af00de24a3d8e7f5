//! Who may connect, and how the connection is kept secret.

use std::time::Duration;

use ports::BusError;
use tempfile::TempDir;
use testkit::servers::require_server;
use tokio::time::{Instant, timeout};
use working_redis::{RedisMemory, Settings};

use crate::server::{PATIENCE, Server, free_port, redis, settings};

async fn lets_in(settings: Settings) -> Result<(), BusError> {
    RedisMemory::connect(settings).await?.ping().await
}

async fn is_refused_at_once(settings: Settings) {
    let before = Instant::now();
    let refused = lets_in(settings).await.unwrap_err();
    assert!(matches!(&refused, BusError::Refused(why) if why.contains("login")), "{refused}");
    assert!(before.elapsed() < PATIENCE);
}

#[tokio::test]
async fn a_password_lets_in_and_a_wrong_one_is_refused_at_once() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let server = Server::start_with(&program, &["--requirepass", "right"]).await;
    let login =
        |password: &str| Settings { password: Some(password.to_owned()), ..server.settings() };
    assert_eq!(lets_in(login("right")).await, Ok(()));
    is_refused_at_once(login("wrong")).await;
    is_refused_at_once(server.settings()).await;
}

#[tokio::test]
async fn a_user_lets_in_with_its_own_password() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let server = Server::start(&program).await;
    let rule = ["ACL", "SETUSER", "ann", "on", ">right", "~sy:*", "+@all"];
    assert_eq!(server.command(&rule).await, "+OK");
    let login = |password: &str| Settings {
        user: Some("ann".to_owned()),
        password: Some(password.to_owned()),
        ..server.settings()
    };
    assert_eq!(lets_in(login("right")).await, Ok(()));
    is_refused_at_once(login("wrong")).await;
}

#[tokio::test]
async fn a_user_that_may_too_little_is_told_what_is_needed() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let server = Server::start(&program).await;
    let rule = ["ACL", "SETUSER", "ann", "on", ">right", "~sy:*", "+info", "+get"];
    assert_eq!(server.command(&rule).await, "+OK");
    let login = Settings {
        user: Some("ann".to_owned()),
        password: Some("right".to_owned()),
        ..server.settings()
    };
    let refused = lets_in(login).await.unwrap_err();
    assert!(matches!(&refused, BusError::Refused(why) if why.contains("scripting")), "{refused}");
}

/// A password that changes under a running process is a refusal, and one that is right again is
/// taken without a restart.
#[tokio::test]
async fn a_login_is_made_anew_with_each_connection() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let server = Server::start(&program).await;
    let rule = |password: &'static str| ["ACL", "SETUSER", "ann", "on", "resetpass", password];
    server.command(&rule(">right")).await;
    server.command(&["ACL", "SETUSER", "ann", "~sy:*", "+@all"]).await;
    let login = Settings {
        user: Some("ann".to_owned()),
        password: Some("right".to_owned()),
        ..server.settings()
    };
    let memory = RedisMemory::connect(login).await.unwrap();
    server.command(&rule(">other")).await;
    server.command(&["CLIENT", "KILL", "USER", "ann"]).await;
    let refused = memory.ping().await.unwrap_err();
    assert!(matches!(&refused, BusError::Refused(why) if why.contains("login")), "{refused}");
    server.command(&rule(">right")).await;
    let again = async {
        while memory.ping().await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, again).await.unwrap();
}

#[tokio::test]
async fn a_connection_over_tls_trusts_what_it_is_told_to_trust() {
    let Some(program) = require_server("redis-server", redis()) else { return };
    let folder = TempDir::new().unwrap();
    let (root, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(&root, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (cert, secret) = (root.to_str().unwrap().to_owned(), key.to_str().unwrap().to_owned());
    let tls = free_port().to_string();
    let arguments = [
        ["--tls-port", &tls],
        ["--tls-cert-file", &cert],
        ["--tls-key-file", &secret],
        ["--tls-ca-cert-file", &cert],
        ["--tls-auth-clients", "no"],
    ];
    let server = Server::start_in(&program, folder, free_port(), &arguments.concat()).await;
    let address = format!("rediss://localhost:{tls}");
    let quick = Settings { address, require_tls: true, ..settings(server.port()) };
    let trusting = Settings { root_certificates: Some(root), ..quick.clone() };
    assert_eq!(lets_in(trusting).await, Ok(()));
    let hasty = Settings { connect: Duration::from_millis(200), ..quick };
    let strange = lets_in(hasty).await.unwrap_err();
    assert!(strange.to_string().contains("certificate"), "{strange}");
}

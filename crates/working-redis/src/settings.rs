//! How to reach the server, and how long things may take.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use ports::BusError;
use redis::{Client, ConnectionInfo, IntoConnectionInfo, TlsCertificates};
use rustls::crypto::CryptoProvider;

/// Settings of a connection.
#[derive(Clone)]
pub struct Settings {
    /// The server: `redis://host:port/db`, or `rediss://` for TLS; `valkey://` and `valkeys://`
    /// mean the same.
    pub address: String,
    /// The ACL user; none means the server's `default` user.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// A PEM file of certificates to trust in place of the system's.
    pub root_certificates: Option<PathBuf>,
    /// Whether an address without TLS is refused.
    pub require_tls: bool,
    /// What every key begins with, so that several deployments may share a server.
    pub prefix: String,
    /// The deadline of one request, waiting for the connection included.
    pub request: Duration,
    /// The deadline of one attempt to connect.
    pub attempt: Duration,
    /// The longest pause between two attempts.
    pub longest_pause: Duration,
    /// How long to wait for the server at start.
    pub connect: Duration,
    /// How long the snapshot of a thread that is left alone is kept.
    pub keep_snapshots: Duration,
    /// How long the text of a turn is kept after its last word.
    pub keep_texts: Duration,
}

impl Settings {
    /// Defaults for one server.
    pub fn new(address: impl Into<String>) -> Self {
        Self {
            address: address.into(),
            user: None,
            password: None,
            root_certificates: None,
            require_tls: false,
            prefix: "sy".to_owned(),
            request: Duration::from_secs(2),
            attempt: Duration::from_secs(1),
            longest_pause: Duration::from_secs(2),
            connect: Duration::from_secs(30),
            keep_snapshots: Duration::from_hours(7 * 24),
            keep_texts: Duration::from_hours(24),
        }
    }

    /// A client of the server; does not connect.
    pub(crate) fn client(&self) -> Result<Client, BusError> {
        self.check()?;
        choose_tls_provider();
        let opened = match &self.root_certificates {
            None => Client::open(self.info()?),
            Some(path) => {
                let pem = std::fs::read(path).map_err(|error| {
                    let place = path.display();
                    BusError::Refused(format!(
                        "the certificates in {place} cannot be read: {error}"
                    ))
                })?;
                let trusted = TlsCertificates { client_tls: None, root_cert: Some(pem) };
                Client::build_with_tls(self.info()?, trusted)
            }
        };
        opened.map_err(|error| self.bad_address(&error.to_string()))
    }

    fn check(&self) -> Result<(), BusError> {
        let tls = ["rediss://", "valkeys://"].iter().any(|start| self.address.starts_with(start));
        if !tls && (self.require_tls || self.root_certificates.is_some()) {
            return Err(self.bad_address("TLS is asked for and needs `rediss://`"));
        }
        let token = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        if self.prefix.is_empty() || self.prefix.len() > 64 || !self.prefix.bytes().all(token) {
            let rule = "expected 1 to 64 of A-Z, a-z, 0-9, - and _";
            return Err(BusError::Refused(format!("prefix `{}`: {rule}", self.prefix)));
        }
        Ok(())
    }

    fn info(&self) -> Result<ConnectionInfo, BusError> {
        let info = self.address.as_str().into_connection_info();
        let info = info.map_err(|error| self.bad_address(&error.to_string()))?;
        let mut login = info.redis_settings().clone().set_skip_set_lib_name();
        if let Some(user) = &self.user {
            login = login.set_username(user);
        }
        if let Some(password) = &self.password {
            login = login.set_password(password);
        }
        let tcp = info.tcp_settings().clone().set_nodelay(true).set_user_timeout(self.request * 2);
        Ok(info.set_redis_settings(login).set_tcp_settings(tcp))
    }

    fn bad_address(&self, why: &str) -> BusError {
        BusError::Refused(format!("Redis address `{}`: {why}", self.place()))
    }

    /// The address without what may be a secret in it.
    pub(crate) fn place(&self) -> String {
        let (scheme, rest) = self.address.split_once("://").unwrap_or(("", &self.address));
        let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
        format!("{scheme}://{host}")
    }
}

/// The program has chosen one before anything else; without one the client library would panic.
fn choose_tls_provider() {
    if CryptoProvider::get_default().is_none()
        && rustls::crypto::ring::default_provider().install_default().is_err()
    {
        tracing::debug!("another thread has chosen the TLS provider meanwhile");
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("place", &self.place())
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("root_certificates", &self.root_certificates)
            .field("require_tls", &self.require_tls)
            .field("prefix", &self.prefix)
            .field("request", &self.request)
            .field("connect", &self.connect)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(settings: &Settings) -> String {
        let refused = settings.client().err().unwrap();
        assert!(!refused.is_transient(), "{refused}");
        refused.to_string()
    }

    #[test]
    fn settings_that_cannot_work_are_refused_with_the_reason() {
        let wrong = refused(&Settings::new("http://h:1"));
        assert!(wrong.contains("http://h:1"), "{wrong}");
        let plain = Settings { require_tls: true, ..Settings::new("redis://h:1") };
        assert!(refused(&plain).contains("needs `rediss://`"));
        let prefix = Settings { prefix: "a{b".to_owned(), ..Settings::new("redis://h:1") };
        assert!(refused(&prefix).contains("prefix `a{b`"));
        let path = Some(PathBuf::from("/nowhere/ca.pem"));
        let lost = Settings { root_certificates: path, ..Settings::new("rediss://h:1") };
        assert!(refused(&lost).contains("/nowhere/ca.pem"));
    }

    #[test]
    fn secrets_are_never_printed() {
        let password = Some("hunter2".to_owned());
        let settings = Settings { password, ..Settings::new("redis://ann:hunter3@h:1/2") };
        let printed = format!("{settings:?} {}", settings.bad_address("why"));
        assert!(!printed.contains("hunter"), "{printed}");
        assert!(printed.contains("redis://h:1/2"), "{printed}");
    }
}

//! How to reach the servers and how streams are kept.

use std::path::PathBuf;
use std::time::Duration;

/// How this process proves who it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Login {
    /// Not at all.
    #[default]
    None,
    /// A user and a password.
    Password {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// A token.
    Token(String),
    /// A credentials file.
    Credentials(PathBuf),
}

/// Settings of a connection.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Server addresses, `nats://host:port` or `tls://host:port`.
    pub servers: Vec<String>,
    /// Who this process is.
    pub login: Login,
    /// Certificates to trust besides the system's.
    pub root_certificates: Option<PathBuf>,
    /// Whether an unencrypted connection is refused.
    pub require_tls: bool,
    /// The name that operators see.
    pub name: String,
    /// How many partitions there are; each is one stream.
    pub partitions: u16,
    /// Copies of each stream.
    pub replicas: usize,
    /// How long a held delivery may go without a sign of life.
    pub ack_wait: Duration,
    /// Deliveries held at once over all processes, per consumer.
    pub max_ack_pending: i64,
    /// How long a call may wait for a worker: a new tool consumer begins that long ago.
    pub longest_start_by: Duration,
    /// How long a registration lasts unless renewed.
    pub offer_ttl: Duration,
    /// How long a freeze waits before it is answered: as old a list workers may go by.
    pub freeze_lag: Duration,
    /// The deadline of one request.
    pub request: Duration,
    /// How long to wait for the servers at start.
    pub connect: Duration,
}

impl Settings {
    /// Defaults for one server.
    pub fn new(server: impl Into<String>) -> Self {
        Self {
            servers: vec![server.into()],
            login: Login::None,
            root_certificates: None,
            require_tls: false,
            name: "systole".to_owned(),
            partitions: 1,
            replicas: 1,
            ack_wait: Duration::from_secs(6),
            max_ack_pending: 1_000_000,
            longest_start_by: Duration::from_mins(10),
            offer_ttl: Duration::from_secs(30),
            freeze_lag: ports::freezes::LAG,
            request: Duration::from_secs(5),
            connect: Duration::from_secs(30),
        }
    }
}

//! Why there is no bus: each case tells who has to do what.

use ports::BusError;
use proto::error_code::ErrorCode;

/// A connection that did not come about. Nothing was changed on the server.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// No server answered in time, or the connection cannot be kept secret.
    #[error("NATS at {servers} did not answer for {seconds} s: {why}")]
    Unreachable {
        /// The addresses that were tried.
        servers: String,
        /// How long.
        seconds: u64,
        /// The last failure.
        why: String,
    },
    /// An address or a certificate cannot work, however long one waits.
    #[error("NATS at {servers} cannot be used: {why}")]
    Unusable {
        /// The addresses that were tried.
        servers: String,
        /// What is wrong.
        why: String,
    },
    /// The server does not know this login, or its file cannot be read.
    #[error("NATS refused the login: {0}")]
    LoginRefused(String),
    /// The server knows this login, which may not use what is needed.
    #[error("this NATS login may not do what is needed: {0}")]
    NotPermitted(String),
    /// The server lacks what is needed.
    #[error("NATS {version} is too old: message schedules need 2.12 or newer, 2.15 is recommended")]
    TooOld {
        /// The server's version.
        version: String,
    },
    /// The server keeps nothing.
    #[error("JetStream is not enabled on this NATS server or for this account: {0}")]
    NoJetStream(String),
    /// A stream could lose records.
    #[error("stream {stream} has another configuration: {what}")]
    StreamMismatch {
        /// The stream.
        stream: String,
        /// What differs.
        what: String,
    },
    /// Anything else.
    #[error(transparent)]
    Bus(#[from] BusError),
}

impl ConnectError {
    /// The stable code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Unreachable { .. } | Self::Unusable { .. } => ErrorCode::BusUnreachable,
            Self::LoginRefused(_) | Self::NotPermitted(_) => ErrorCode::BusLoginRefused,
            Self::TooOld { .. } => ErrorCode::BusTooOld,
            Self::NoJetStream(_) => ErrorCode::JetstreamOff,
            Self::StreamMismatch { .. } => ErrorCode::StreamMismatch,
            Self::Bus(error) => error.code(),
        }
    }

    /// What the one who started the process can do.
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => {
                "Start NATS, or name its address with --nats. --wait-s says how long to wait."
            }
            Self::Unusable { .. } => {
                "Check the address (nats://host:port or tls://host:port) and --nats-ca."
            }
            Self::LoginRefused(_) => {
                "Check --nats-user and --nats-password, --nats-token or --nats-credentials."
            }
            Self::NotPermitted(_) => {
                "Let it publish to `sy.>`, `sylive.>`, `syctl.>`, `syask.>`, `$JS.API.>`, `$JS.ACK.>`, `$KV.SY_*.>`, \
                 `$O.SY_*.>` and `_INBOX.>`, and subscribe to `_INBOX.>`, `sylive.>`, `syctl.>` and `syask.>`."
            }
            Self::TooOld { .. } => "Upgrade the server; its store stays as it is.",
            Self::NoJetStream(_) => {
                "Enable it: `jetstream { store_dir: … }` in the server's configuration, or -js."
            }
            Self::StreamMismatch { .. } => {
                "Rename or remove the stream, or point this deployment at another account."
            }
            Self::Bus(_) => "The server's own log says more.",
        }
    }
}

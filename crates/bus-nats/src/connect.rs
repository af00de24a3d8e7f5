//! The connection.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectErrorKind as Kind, ConnectOptions, Event, ServerError};
use ports::BusError;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::api::{ApiError, NoReply, ask};
use crate::layout::{self, Known};
use crate::recent::Recent;
use crate::refusal::ConnectError;
use crate::replies::Replies;
use crate::settings::{Login, Settings};

/// The bus over NATS; clones share the connection.
#[derive(Clone)]
pub struct NatsBus {
    pub(crate) client: Client,
    pub(crate) settings: Arc<Settings>,
    pub(crate) known: Arc<Known>,
    pub(crate) replies: Arc<Replies>,
    pub(crate) recent: Arc<Recent>,
    /// Counts lost connections, so that pulls that died with one are not waited for.
    pub(crate) lost: watch::Receiver<u64>,
    /// What the server has last said that this login may not do.
    denied: watch::Receiver<Option<String>>,
}

/// What the connection tells.
#[derive(Clone)]
struct Signs {
    losses: watch::Sender<u64>,
    denied: watch::Sender<Option<String>>,
}

/// How the server's words begin when a login may not publish or subscribe.
const DENIED: &str = "Permissions Violation";

/// The longest pause between two tries to reach a server.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// How long a server may take to have JetStream at all after it takes connections. One that has it and
/// waits for its cluster is waited for as long as for the connection.
const JETSTREAM_PATIENCE: Duration = Duration::from_secs(10);

impl NatsBus {
    /// Connects, checks the server and creates or migrates what is missing. While the servers
    /// cannot be reached it tries again, until `settings.connect` has passed.
    pub async fn connect(settings: Settings) -> Result<Self, ConnectError> {
        let bus = Self::reach(settings).await?;
        bus.check_version()?;
        bus.find_jetstream().await?;
        layout::ensure(&bus).await?;
        Ok(bus)
    }

    /// Connects and does nothing more.
    pub(crate) async fn reach(settings: Settings) -> Result<Self, ConnectError> {
        let (losses, lost) = watch::channel(0);
        let (denials, denied) = watch::channel(None);
        let client = reach(&settings, Signs { losses, denied: denials }).await?;
        let replies = Replies::new(&client).await;
        let replies = replies.map_err(|error| BusError::Unavailable(error.to_string()))?;
        let replies = Arc::new(replies);
        let (settings, known, recent) = (Arc::new(settings), Arc::default(), Arc::default());
        Ok(Self { client, settings, known, replies, recent, lost, denied })
    }

    fn check_version(&self) -> Result<(), ConnectError> {
        if self.client.is_server_compatible(2, 12, 0) {
            return Ok(());
        }
        Err(ConnectError::TooOld { version: self.client.server_info().version })
    }

    /// Waits until JetStream answers: after a start of the server or of its cluster it takes a
    /// while, and where it is off nobody answers or the answer says so.
    async fn find_jetstream(&self) -> Result<(), ConnectError> {
        let began = Instant::now();
        loop {
            let subject = "$JS.API.INFO".to_owned();
            let longest = self.settings.connect;
            let (why, patience) = match ask(self, subject, &json!({})).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) if is_off(&error) => {
                    return Err(ConnectError::NoJetStream(error.description));
                }
                Ok(Err(error)) => (error.description, longest),
                Err(NoReply::Unanswered(why)) => (why, longest),
                Err(NoReply::Failed(error)) => (error.to_string(), longest.min(JETSTREAM_PATIENCE)),
            };
            if let Some(denied) = self.denied.borrow().clone() {
                return Err(ConnectError::NotPermitted(denied));
            }
            if began.elapsed() >= patience {
                return Err(ConnectError::NoJetStream(why));
            }
            tokio::time::sleep(LONGEST_PAUSE).await;
        }
    }

    /// The server's version.
    pub fn server_version(&self) -> String {
        self.client.server_info().version
    }

    /// A name of this connection to this life of its server, where the server stands alone: it cannot
    /// lose a record and go on without ending, and with it the connection. Among several servers one
    /// that this process is not connected to may hold the stream, so nobody can tell.
    pub(crate) fn line(&self) -> Option<u64> {
        let server = self.client.server_info();
        let stands_alone = server.jetstream && server.cluster.is_none() && server.domain.is_none();
        stands_alone.then(|| {
            let mut name = DefaultHasher::new();
            (server.server_id, server.client_id).hash(&mut name);
            name.finish()
        })
    }

    /// Whether the connection stands at this moment.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }
}

/// Whether the server says that it keeps nothing, or nothing for this account.
pub(crate) fn is_off(error: &ApiError) -> bool {
    [10076, 10039].contains(&error.err_code)
}

async fn reach(settings: &Settings, signs: Signs) -> Result<Client, ConnectError> {
    let deadline = Instant::now() + settings.connect;
    let servers = settings.servers.join(", ");
    let mut said = false;
    loop {
        let options = options(settings, signs.clone()).await?;
        let error = match options.connect(settings.servers.as_slice()).await {
            Ok(client) => return Ok(client),
            Err(error) => error,
        };
        match error.kind() {
            Kind::Authentication | Kind::AuthorizationViolation => {
                return Err(ConnectError::LoginRefused(error.to_string()));
            }
            Kind::ServerParse | Kind::Tls => {
                return Err(ConnectError::Unusable { servers, why: error.to_string() });
            }
            Kind::Dns | Kind::TimedOut | Kind::Io | Kind::MaxReconnects => {}
        }
        if Instant::now() >= deadline {
            let seconds = settings.connect.as_secs();
            return Err(ConnectError::Unreachable { servers, seconds, why: error.to_string() });
        }
        if !std::mem::replace(&mut said, true) {
            let seconds = settings.connect.as_secs();
            tracing::warn!(servers, %error, seconds, "waiting for NATS");
        }
        tokio::time::sleep(LONGEST_PAUSE).await;
    }
}

async fn options(settings: &Settings, signs: Signs) -> Result<ConnectOptions, ConnectError> {
    let unreadable = |error: std::io::Error| {
        ConnectError::LoginRefused(format!("the credentials cannot be read: {error}"))
    };
    let options = match &settings.login {
        Login::None => ConnectOptions::new(),
        Login::Password { user, password } => {
            ConnectOptions::with_user_and_password(user.clone(), password.clone())
        }
        Login::Token(token) => ConnectOptions::with_token(token.clone()),
        Login::Credentials(path) => {
            ConnectOptions::with_credentials_file(path).await.map_err(unreadable)?
        }
    };
    let options = match &settings.root_certificates {
        Some(path) => options.add_root_certificates(path.clone()),
        None => options,
    };
    Ok(options
        .name(&settings.name)
        .require_tls(settings.require_tls)
        .connection_timeout(Duration::from_secs(2))
        .ping_interval(Duration::from_secs(2))
        .request_timeout(Some(settings.request))
        .subscription_capacity(65_536)
        .reconnect_delay_callback(|tries| {
            let pause = Duration::from_millis(20).saturating_mul(1 << tries.min(6));
            pause.min(LONGEST_PAUSE)
        })
        .event_callback(move |event| {
            note(&event, &signs);
            async {}
        }))
}

fn note(event: &Event, signs: &Signs) {
    match event {
        Event::Disconnected => {
            tracing::warn!("the connection to NATS is lost");
            signs.losses.send_modify(|count| *count = count.wrapping_add(1));
        }
        Event::ServerError(ServerError::Other(why)) if why.contains(DENIED) => {
            tracing::error!(why, "NATS: this login may not do what is needed");
            signs.denied.send_replace(Some(why.clone()));
        }
        Event::SlowConsumer(id) => tracing::warn!(id, "NATS: a subscription is too slow"),
        Event::Connected
        | Event::LameDuckMode
        | Event::Draining
        | Event::Closed
        | Event::ServerError(_)
        | Event::ClientError(_) => tracing::info!(%event, "NATS"),
    }
}

//! The service that the demo repairs: `checkout`, a small HTTP service with a pool of connections.
//! Its first process loses a connection with each request until the pool is empty; from then on it
//! answers 503. A new process begins with a full pool.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use jiff::Timestamp;
use ports::clock::Clock;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::Instant;

use super::folder::Folder;
use crate::arguments::DemoService;
use crate::failure::Failure;
use crate::wiring;

/// Connections in the pool.
const POOL: u32 = 20;
/// A service that everybody forgot ends by itself.
const LONGEST_LIFE: Duration = Duration::from_hours(1);
/// How long a port may still belong to the process before.
const PORT_TRIES: u32 = 40;

struct Shop {
    leaks: bool,
    in_use: AtomicU32,
    requests: AtomicU32,
    born: Instant,
    clock: Arc<dyn Clock>,
    log: File,
}

/// Serves until it is killed.
pub(crate) async fn serve(asked: &DemoService) -> Result<(), Failure> {
    // A service is nobody's child: it outlives the demo and the tool that started it.
    if let Err(error) = rustix::process::setsid() {
        tracing::debug!(%error, "the service leads a session already");
    }
    let folder = Folder::at(&asked.dir);
    let shop = Arc::new(Shop::open(&folder, asked.leak).map_err(failed)?);
    if asked.broken {
        shop.say("ERROR", "cannot start: pool.toml, line 3: `max_connections` is not a number");
        return Err(Failure::input("pool.toml, line 3: `max_connections` is not a number"));
    }
    let listener = bind(asked.port).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let pid = std::process::id();
    folder.effect(&format!("start {pid}"), shop.clock.now()).map_err(failed)?;
    shop.say("INFO", &format!("checkout started, pid {pid}, {address}, pool of {POOL}"));
    folder.announce(&format!("http://{address}"), pid).map_err(failed)?;
    let routes = Router::new().route("/work", get(work)).route("/healthz", get(health));
    let serving = axum::serve(listener, routes.with_state(shop)).into_future();
    tokio::select! {
        served = serving => served.map_err(failed),
        () = tokio::time::sleep(LONGEST_LIFE) => Ok(()),
    }
}

fn failed(error: io::Error) -> Failure {
    Failure::other("the demo's service", error)
}

/// A fresh port, or the one that the process before has just left.
async fn bind(port: u16) -> io::Result<TcpListener> {
    let mut tries = 0_u32;
    loop {
        match TcpListener::bind(("127.0.0.1", port)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && tries < PORT_TRIES => {
                tries = tries.saturating_add(1);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            bound => return bound,
        }
    }
}

impl Shop {
    fn open(folder: &Folder, leaks: bool) -> io::Result<Self> {
        let log = OpenOptions::new().create(true).append(true).open(folder.log())?;
        let (in_use, requests) = (AtomicU32::new(0), AtomicU32::new(0));
        Ok(Self { leaks, in_use, requests, born: Instant::now(), clock: wiring::clock(), log })
    }

    fn say(&self, level: &str, text: &str) {
        let line = format!("{} {level:<5} {text}\n", when(self.clock.now()));
        // A full disk must not stop a shop.
        (&self.log).write_all(line.as_bytes()).unwrap_or_default();
    }

    fn is_exhausted(&self) -> bool {
        self.in_use.load(Ordering::SeqCst) >= POOL
    }

    /// Takes a connection; a shop that leaks never gives it back.
    fn take(&self) -> Result<u32, u32> {
        let taken = if self.leaks {
            let taking = |used| (used < POOL).then(|| used + 1);
            self.in_use.fetch_update(Ordering::SeqCst, Ordering::SeqCst, taking)
        } else {
            Ok(self.in_use.load(Ordering::SeqCst))
        };
        taken.map(|before| before.saturating_add(1))
    }

    fn status(&self) -> Value {
        json!({
            "service": "checkout",
            "status": if self.is_exhausted() { "failing" } else { "ok" },
            "pid": std::process::id(),
            "uptime_s": self.born.elapsed().as_secs(),
            "requests": self.requests.load(Ordering::SeqCst),
            "pool": {"in_use": self.in_use.load(Ordering::SeqCst), "size": POOL},
        })
    }
}

/// An instant as logs and alerts write it.
pub(crate) fn when(at: proto::time::Timestamp) -> String {
    Timestamp::from_millisecond(at.0).map_or_else(|_| at.to_string(), |time| format!("{time:.3}"))
}

async fn work(State(shop): State<Arc<Shop>>) -> Response {
    let number = shop.requests.fetch_add(1, Ordering::SeqCst).saturating_add(1);
    match shop.take() {
        Ok(used) => {
            if shop.leaks && used.saturating_mul(4) >= POOL.saturating_mul(3) {
                shop.say("WARN", &format!("request {number}: {used} of {POOL} connections in use"));
            }
            axum::Json(json!({"order": number, "state": "placed"})).into_response()
        }
        Err(used) => {
            let text = format!(
                "request {number}: connection pool exhausted, {used} of {POOL} in use, waited 20 ms"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
            shop.say("ERROR", &text);
            let body = axum::Json(json!({"error": "connection pool exhausted"}));
            (StatusCode::SERVICE_UNAVAILABLE, body).into_response()
        }
    }
}

async fn health(State(shop): State<Arc<Shop>>) -> Response {
    let code = if shop.is_exhausted() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    (code, axum::Json(shop.status())).into_response()
}

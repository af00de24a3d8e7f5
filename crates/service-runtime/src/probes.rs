//! What operators ask a process over HTTP: `/livez`, `/readyz`, `/metrics`.

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus::{Registry, TextEncoder};
use tokio::net::TcpListener;

use crate::health::Health;

/// The format of `/metrics`.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

#[derive(Clone)]
struct Asked {
    health: Health,
    metrics: Vec<Registry>,
}

/// The three routes, for a process with more of its own.
pub fn routes(health: Health, metrics: Vec<Registry>) -> Router {
    Router::new()
        .route("/livez", get(|| async { "alive\n" }))
        .route("/readyz", get(ready))
        .route("/metrics", get(measured))
        .with_state(Asked { health, metrics })
}

/// Serves the three routes until it is dropped.
pub async fn serve(listener: TcpListener, health: Health, metrics: Vec<Registry>) {
    if let Err(error) = axum::serve(listener, routes(health, metrics)).await {
        tracing::warn!(%error, "health and metrics are no longer served");
    }
}

async fn ready(State(asked): State<Asked>) -> Response {
    let troubles = asked.health.troubles();
    if troubles.is_empty() {
        return "ready\n".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", troubles.join("\n"))).into_response()
}

async fn measured(State(asked): State<Asked>) -> Response {
    let families: Vec<_> = asked.metrics.iter().flat_map(Registry::gather).collect();
    match TextEncoder::new().encode_to_string(&families) {
        Ok(text) => ([(header::CONTENT_TYPE, TEXT)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "metrics cannot be written");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

//! Who asks. A key names the tenant; without keys only pages and programs of this machine may ask.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use proto::error_code::ErrorCode;
use proto::ids::{InputKey, TenantId};

use crate::gateway::App;
use crate::problem::Problem;

/// Where an idempotency key may stand.
const KEY_HEADER: &str = "idempotency-key";
const TRACE_HEADER: &str = "traceparent";
/// What a W3C trace context is long.
const TRACE_LENGTH: usize = 55;

/// A caller that was let in.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) tenant: TenantId,
    /// The key in its headers.
    pub(crate) key: Option<InputKey>,
    pub(crate) traceparent: Option<String>,
}

impl FromRequestParts<App> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Problem> {
        let headers = &parts.headers;
        let tenant = if app.settings.keys.is_empty() {
            check_host(headers)?;
            app.settings.tenant.clone()
        } else {
            authenticate(app, headers)?
        };
        let trace = text(headers, TRACE_HEADER).filter(|text| is_trace(text));
        let traceparent = trace.map(str::to_owned);
        Ok(Self { tenant, key: idempotency_key(headers)?, traceparent })
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn authenticate(app: &App, headers: &HeaderMap) -> Result<TenantId, Problem> {
    let refused = |message: &str| {
        let fix = "Send `Authorization: Bearer KEY` with a key that this gateway knows.";
        Problem::new(StatusCode::UNAUTHORIZED, ErrorCode::Unauthenticated, message, fix)
    };
    let given = text(headers, "authorization").and_then(|value| value.split_once(' '));
    let Some((scheme, key)) = given else { return Err(refused("there is no API key")) };
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(refused("the API key is not a bearer token"));
    }
    let tenant = app.settings.tenant_of(key.trim());
    tenant.cloned().ok_or_else(|| refused("the API key is not known"))
}

/// A page of the web may make a browser ask this machine under a name of its own.
fn check_host(headers: &HeaderMap) -> Result<(), Problem> {
    let host = text(headers, header::HOST.as_str()).unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').map_or(rest, |(name, _)| name),
        None => host.split_once(':').map_or(host, |(name, _)| name),
    };
    let is_here = name.eq_ignore_ascii_case("localhost")
        || name.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    if is_here {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::FORBIDDEN,
        ErrorCode::NotPermitted,
        format!("the host `{host}` is not this machine"),
        "Ask 127.0.0.1 or localhost, or give the gateway API keys.",
    ))
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<InputKey>, Problem> {
    let Some(value) = headers.get(KEY_HEADER) else { return Ok(None) };
    let text = String::from_utf8_lossy(value.as_bytes()).into_owned();
    let key = InputKey::new(text);
    key.map(Some).map_err(|error| Problem::input(error.to_string(), "Choose another key."))
}

fn is_trace(text: &str) -> bool {
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    text.len() == TRACE_LENGTH && text.bytes().all(|b| hex(b) || b == b'-')
}

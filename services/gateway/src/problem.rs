//! How a request is refused: a code, what happened, what to do, where to read on.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ports::BusError;
use proto::error_code::ErrorCode;
use serde_json::json;

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    status: StatusCode,
    code: ErrorCode,
    message: String,
    fix: &'static str,
}

impl Problem {
    pub(crate) fn new(
        status: StatusCode,
        code: ErrorCode,
        message: impl Into<String>,
        fix: &'static str,
    ) -> Self {
        Self { status, code, message: message.into(), fix }
    }

    /// What was asked is not well formed.
    pub(crate) fn input(message: impl Into<String>, fix: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidInput, message, fix)
    }

    /// There is no such thing for this tenant.
    pub(crate) fn not_found(message: impl Into<String>, fix: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, message, fix)
    }

    /// It does not fit how the thread stands.
    pub(crate) fn conflict(code: ErrorCode, message: impl Into<String>, fix: &'static str) -> Self {
        Self::new(StatusCode::CONFLICT, code, message, fix)
    }

    /// More is under way than the gateway takes.
    pub(crate) fn overloaded(message: impl Into<String>) -> Self {
        let fix = "Wait as long as Retry-After says and ask again.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::Overloaded, message, fix)
    }

    /// No answer came in time.
    pub(crate) fn late() -> Self {
        let message = "the bus did not answer in time; whether an input was accepted is not known";
        let fix = "Repeat the request with the same Idempotency-Key: it is taken once.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::StoreUnavailable, message, fix)
    }

    /// The same as text for a stream that has begun.
    pub(crate) fn as_json(&self) -> serde_json::Value {
        json!({
            "code": self.code,
            "message": self.message,
            "fix": self.fix,
            "docs": format!("docs/errors/{}.md", self.code),
        })
    }
}

impl From<BusError> for Problem {
    fn from(error: BusError) -> Self {
        let code = error.code();
        let fix = match &error {
            BusError::Unavailable(_) => {
                "Repeat the request with the same Idempotency-Key: it is taken once."
            }
            BusError::TooLarge { .. } => "Send less, or send it in parts.",
            BusError::Full(_) => "Free space for the bus; its operator has to act.",
            BusError::Corrupt(_) | BusError::Locked(_) | BusError::Refused(_) => {
                "The operator of the bus has to look at it."
            }
        };
        let status = match &error {
            BusError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            BusError::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
            BusError::Unavailable(_)
            | BusError::Corrupt(_)
            | BusError::Locked(_)
            | BusError::Refused(_) => StatusCode::SERVICE_UNAVAILABLE,
        };
        Self::new(status, code, error.to_string(), fix)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        if self.status.is_server_error() {
            tracing::warn!(code = %self.code, message = self.message, "a request failed");
        }
        let body = axum::Json(json!({ "error": self.as_json() }));
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

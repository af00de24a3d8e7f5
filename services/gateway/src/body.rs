//! A request's body: JSON, bounded, and here in time.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use proto::error_code::ErrorCode;
use serde::de::DeserializeOwned;

use crate::gateway::App;
use crate::problem::Problem;

/// Reads a body that has to be there.
pub(crate) async fn read<T: DeserializeOwned>(app: &App, request: Request) -> Result<T, Problem> {
    check_type(&request)?;
    let bytes = collect(app, request.into_body()).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        Problem::input(format!("the body does not fit: {error}"), "Compare it with docs/http.md.")
    })
}

/// Reads a body that may be left out.
pub(crate) async fn read_or_default<T: DeserializeOwned + Default>(
    app: &App,
    request: Request,
) -> Result<T, Problem> {
    let headers = request.headers();
    let has_none = !headers.contains_key(header::TRANSFER_ENCODING)
        && headers.get(header::CONTENT_LENGTH).is_none_or(|length| length == "0");
    if has_none { Ok(T::default()) } else { read(app, request).await }
}

/// Only a page that may ask can send this type from a browser.
fn check_type(request: &Request) -> Result<(), Problem> {
    let given = request.headers().get(header::CONTENT_TYPE);
    let kind = given.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::InvalidInput,
        format!("a body of type `{kind}` is not read"),
        "Send JSON with `Content-Type: application/json`.",
    ))
}

async fn collect(app: &App, body: Body) -> Result<bytes::Bytes, Problem> {
    let limit = app.settings.max_body;
    let reading = Limited::new(body, limit).collect();
    match tokio::time::timeout(app.settings.patience, reading).await {
        Ok(Ok(read)) => Ok(read.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            ErrorCode::MessageTooLarge,
            format!("the body is larger than {limit} bytes"),
            "Send less; put large material where a tool of the agent can read it.",
        )),
        Ok(Err(error)) => {
            Err(Problem::input(format!("the body broke off: {error}"), "Send it again."))
        }
        Err(_) => Err(Problem::new(
            StatusCode::REQUEST_TIMEOUT,
            ErrorCode::InvalidInput,
            "the body did not arrive in time",
            "Send it again, all at once.",
        )),
    }
}

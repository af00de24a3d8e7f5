//! Replies that failed.

use proto::error_code::ErrorCode;
use proto::model::{ModelError, ModelErrorKind};
use proto::notice::Deadline;

/// The code that a run fails with.
pub(super) fn code_of(error: &ModelError) -> ErrorCode {
    if let Some(own) = error.code {
        return own;
    }
    match error.kind {
        ModelErrorKind::Network | ModelErrorKind::Timeout(_) | ModelErrorKind::Truncated => {
            ErrorCode::ModelUnavailable
        }
        ModelErrorKind::ProviderError | ModelErrorKind::HttpError if error.retryable => {
            ErrorCode::ModelUnavailable
        }
        ModelErrorKind::ProviderError
        | ModelErrorKind::HttpError
        | ModelErrorKind::ContentFilter => ErrorCode::ModelRefused,
        ModelErrorKind::Length
        | ModelErrorKind::EmptyResponse
        | ModelErrorKind::MalformedChunk
        | ModelErrorKind::BadResponse
        | ModelErrorKind::ContractViolation => ErrorCode::ModelReplyInvalid,
    }
}

/// The turn's own deadline.
pub(super) fn overdue() -> ModelError {
    broken(ModelErrorKind::Timeout(Deadline::Total), false, "the turn's deadline passed")
}

/// A stream without an end.
pub(super) fn cut_off() -> ModelError {
    broken(ModelErrorKind::Truncated, true, "the reply ended without an end")
}

fn broken(kind: ModelErrorKind, retryable: bool, message: &str) -> ModelError {
    ModelError {
        kind,
        retryable,
        retry_after: None,
        status: None,
        message: message.to_owned(),
        code: None,
    }
}

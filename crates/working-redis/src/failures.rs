//! What a failure means to the caller: whether waiting helps, and what to do if not.

use ports::BusError;
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Whether the connection is of no use after this failure.
pub(crate) fn breaks_connection(error: &RedisError) -> bool {
    use ServerErrorKind::{MasterDown, ReadOnly};
    let answered = matches!(
        error.kind(),
        ErrorKind::Server(_) | ErrorKind::Extension | ErrorKind::UnexpectedReturnType
    );
    let elsewhere = matches!(error.kind(), ErrorKind::Server(ReadOnly | MasterDown));
    !answered || elsewhere || is_login(error.code())
}

/// What the port's caller is told.
pub(crate) fn meaning(error: &RedisError) -> BusError {
    said(error, format!("Redis: {error}"))
}

/// The same for a connection that could not be made to `place`.
pub(crate) fn meaning_at(error: &RedisError, place: &str) -> BusError {
    said(error, format!("Redis at {place}: {error}"))
}

fn said(error: &RedisError, text: String) -> BusError {
    if let Some(known) = known_code(&text, code_of(error, &text)) {
        return known;
    }
    let kind = error.kind();
    if let ErrorKind::Server(kind) = kind {
        return of_server(kind, text);
    }
    if kind == ErrorKind::AuthenticationFailed {
        return refused_login(&text);
    }
    if kind == ErrorKind::Parse {
        return BusError::Refused(format!("{text}: is it Redis that answers there?"));
    }
    if kind == ErrorKind::UnexpectedReturnType {
        return BusError::Corrupt(text);
    }
    let ours =
        matches!(kind, ErrorKind::InvalidClientConfig | ErrorKind::Client | ErrorKind::Extension);
    if ours { BusError::Refused(text) } else { BusError::Unavailable(text) }
}

fn of_server(kind: ServerErrorKind, text: String) -> BusError {
    use ServerErrorKind::{Ask, BusyLoading, ClusterDown, Moved, NoPerm, TryAgain};

    if matches!(kind, BusyLoading | TryAgain | ClusterDown | Ask) {
        return BusError::Unavailable(text);
    }
    let fix = if kind == Moved {
        ": the address is one node of several of a cluster"
    } else if kind == NoPerm {
        ": the user needs read, write and scripting"
    } else {
        ""
    };
    BusError::Refused(text + fix)
}

/// A refusal inside a script comes as a general error that carries the real one in its text.
fn code_of<'a>(error: &'a RedisError, text: &'a str) -> &'a str {
    let inside = ["OOM", "MISCONF", "READONLY", "WRONGTYPE", "MASTERDOWN", "NOPERM"];
    let named = inside.iter().find(|code| {
        text.contains(&format!("-{code} ")) || text.contains(&format!("{code} command not allowed"))
    });
    named.copied().or_else(|| error.code()).unwrap_or_default()
}

fn known_code(text: &str, code: &str) -> Option<BusError> {
    let text = text.to_owned();
    match code {
        "OOM" => Some(BusError::Full(format!(
            "{text}; raise `maxmemory` or let it evict (`maxmemory-policy allkeys-lru`)"
        ))),
        "MISCONF" => Some(BusError::Refused(format!(
            "{text}; the server cannot write to its disk: see its log"
        ))),
        "NOAUTH" | "WRONGPASS" => Some(refused_login(&text)),
        "WRONGTYPE" => Some(BusError::Corrupt(format!("{text}; another program uses the prefix"))),
        "BUSY" | "READONLY" | "MASTERDOWN" => Some(BusError::Unavailable(text)),
        _ => None,
    }
}

fn is_login(code: Option<&str>) -> bool {
    matches!(code, Some("NOAUTH" | "WRONGPASS"))
}

fn refused_login(text: &str) -> BusError {
    BusError::Refused(format!("{text}; Redis refused the login: check user and password"))
}

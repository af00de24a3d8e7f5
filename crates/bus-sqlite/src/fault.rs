//! What SQLite's errors mean to a caller.

use ports::BusError;
use rusqlite::{Error, ErrorCode, ffi};
use rustix::process::{Resource, getrlimit};

/// I/O errors that come from a disk without room for the shared index.
const NO_ROOM: [std::ffi::c_int; 1] = [ffi::SQLITE_IOERR_SHMSIZE];

/// The meaning of an error of a running bus.
pub(crate) fn fault(error: &Error) -> BusError {
    let text = error.to_string();
    let Some(code) = error.sqlite_error_code() else {
        // A value of another type than the one written: the file holds what nobody wrote.
        return BusError::Corrupt(text);
    };
    if code == ErrorCode::DiskFull || is_out_of_room(error) || is_beyond_limit(error) {
        BusError::Full(text)
    } else if matches!(code, ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) {
        BusError::Corrupt(text)
    } else if is_passing(code) {
        BusError::Unavailable(text)
    } else {
        BusError::Refused(text)
    }
}

/// The meaning of an error while a file is opened.
pub(crate) fn fault_at_open(error: &Error, path: &std::path::Path) -> BusError {
    let place = path.display();
    if is_busy(error) {
        return BusError::Locked(format!("{place}: another program is writing to it"));
    }
    match fault(error) {
        BusError::Unavailable(text) => BusError::Unavailable(format!("{place}: {text}")),
        BusError::Full(text) => BusError::Full(format!("{place}: {text}")),
        BusError::Corrupt(text) => BusError::Corrupt(format!("{place}: {text}")),
        BusError::Locked(text) => BusError::Locked(format!("{place}: {text}")),
        BusError::Refused(text) => BusError::Refused(format!("{place}: {text}")),
        large @ BusError::TooLarge { .. } => large,
    }
}

fn is_out_of_room(error: &Error) -> bool {
    error.sqlite_error().is_some_and(|inner| NO_ROOM.contains(&inner.extended_code))
}

/// A write that fails while the process may not make files beyond a size: SQLite does not tell which
/// error the system gave, and this one does not pass.
fn is_beyond_limit(error: &Error) -> bool {
    let written = [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_TRUNCATE];
    error.sqlite_error().is_some_and(|inner| written.contains(&inner.extended_code))
        && getrlimit(Resource::Fsize).current.is_some()
}

fn is_busy(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

fn is_passing(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::DatabaseBusy
            | ErrorCode::DatabaseLocked
            | ErrorCode::SystemIoFailure
            | ErrorCode::OutOfMemory
            | ErrorCode::OperationInterrupted
            | ErrorCode::FileLockingProtocolFailed
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: std::ffi::c_int) -> BusError {
        fault(&Error::SqliteFailure(ffi::Error::new(code), None))
    }

    #[test]
    fn every_kind_of_trouble_gets_its_own_answer() {
        let codes = [
            ffi::SQLITE_FULL,
            ffi::SQLITE_IOERR_SHMSIZE,
            ffi::SQLITE_CORRUPT,
            ffi::SQLITE_NOTADB,
            ffi::SQLITE_BUSY,
            ffi::SQLITE_IOERR_WRITE,
            ffi::SQLITE_READONLY,
        ];
        let answers = codes.map(|code| of(code).code().as_str());
        let [full, corrupt, other] = ["store_full", "store_corrupt", "store_unavailable"];
        assert_eq!(answers, [full, full, corrupt, corrupt, other, other, other]);
        assert!(of(ffi::SQLITE_IOERR_WRITE).is_transient());
        assert!(!of(ffi::SQLITE_READONLY).is_transient());
    }

    #[test]
    fn a_value_that_nobody_wrote_is_damage() {
        let strange = Error::IntegralValueOutOfRange(0, -1);
        assert_eq!(fault(&strange).code().as_str(), "store_corrupt");
    }
}

//! One process per file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use ports::BusError;

/// Proof that no other process owns the file; ends with this value or with the process.
#[derive(Debug)]
pub(crate) struct FileLock {
    _held: File,
}

impl FileLock {
    /// Locks the sidecar of `database`, which names its holder for others.
    pub(crate) fn take(database: &Path) -> Result<Self, BusError> {
        let path = sidecar(database);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|error| BusError::Refused(format!("{}: {error}", path.display())))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(database, &mut file)),
            Err(TryLockError::Error(error)) => {
                return Err(BusError::Refused(format!("{}: {error}", path.display())));
            }
        }
        if let Err(error) = write_holder(&mut file) {
            tracing::warn!(%error, path = %path.display(), "the lock file does not name its holder");
        }
        Ok(Self { _held: file })
    }
}

fn sidecar(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

fn write_holder(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    writeln!(file, "{}", std::process::id())
}

fn held(database: &Path, file: &mut File) -> BusError {
    let mut text = String::new();
    let known = file.read_to_string(&mut text).is_ok() && !text.trim().is_empty();
    let holder = if known { format!("process {}", text.trim()) } else { "a process".to_owned() };
    BusError::Locked(format!("{} is in use by {holder}", database.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_lock_is_refused_and_names_the_holder() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("store.db");
        let first = FileLock::take(&database).unwrap();
        let refusal = FileLock::take(&database).unwrap_err();
        let expected =
            format!("{} is in use by process {}", database.display(), std::process::id());
        assert_eq!(refusal, BusError::Locked(expected));
        drop(first);
        assert!(FileLock::take(&database).is_ok());
    }
}

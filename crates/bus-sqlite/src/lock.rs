//! One process per file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ports::BusError;

/// The second line of a lock file while the database is open.
const OPEN: &str = "open";
/// Longer than anybody looks.
const AN_INSTANT: Duration = Duration::from_millis(10);

/// Proof that no other process owns the file, whatever name it has there; ends with this value or
/// with the process. SQLite's own locks are of another kind and do not meet it. Dropped only after
/// every connection: closing a file ends the locks that SQLite has on it.
#[derive(Debug)]
pub(crate) struct FileLock {
    path: PathBuf,
    database: File,
    sidecar: File,
    /// The last owner ended without closing the file.
    was_left: bool,
    is_open: bool,
}

impl FileLock {
    /// Locks the sidecar of `database`, which names its holder for others, and the file itself,
    /// which is made if need be.
    pub(crate) fn take(database: &Path) -> Result<Self, BusError> {
        let beside = sidecar(database);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut sidecar = options.open(&beside).map_err(|error| refused(&beside, &error))?;
        if !locks_soon(&sidecar).map_err(|error| refused(&beside, &error))? {
            return Err(held(database, &mut sidecar));
        }
        let wrong = |error: io::Error| refused(database, &error);
        let file = existing_or_new(database).map_err(wrong)?;
        if !locks(&file).map_err(wrong)? {
            let why = "is in use by a process that knows it by another name, or whose .lock file was removed";
            return Err(BusError::Locked(format!("{} {why}", database.display())));
        }
        let was_left = text_of(&mut sidecar).lines().nth(1) == Some(OPEN);
        // What the last owner left stays said until the file is open.
        if let Err(error) = write_holder(&mut sidecar, was_left) {
            tracing::warn!(%error, path = %beside.display(), "the lock file does not name its holder");
        }
        let path = database.to_owned();
        Ok(Self { path, database: file, sidecar, was_left, is_open: false })
    }

    /// The database is open, so that from now on a log of writes lies beside it; `had_log` tells
    /// whether one did before. Without one, what the last owner had only written there is gone.
    pub(crate) fn opened(&mut self, had_log: bool) {
        if self.was_left && !had_log {
            tracing::warn!(
                "{0} was not closed by the process that had it last, and its write-ahead log \
                 ({0}-wal) is gone: the records since the last checkpoint are lost, unless another \
                 program that opened the file has moved them into it",
                self.path.display()
            );
        }
        self.is_open = true;
        if let Err(error) = write_holder(&mut self.sidecar, true) {
            tracing::warn!(%error, "the lock file does not say that the store is open");
        }
    }

    /// Whether what is written still reaches whoever opens the path.
    pub(crate) fn check(&self) -> Result<(), BusError> {
        let here = self.database.metadata().map_err(|error| refused(&self.path, &error))?;
        let is_there = std::fs::metadata(&self.path)
            .is_ok_and(|there| (there.dev(), there.ino()) == (here.dev(), here.ino()));
        let why = if here.len() == 0 {
            "was emptied"
        } else if !is_there {
            "was removed or replaced"
        } else {
            return Ok(());
        };
        Err(BusError::Corrupt(format!(
            "{} {why} while this process ran on it; what happened since then is not in it",
            self.path.display()
        )))
    }
}

/// In good order: nothing is left to be said to the next owner.
impl Drop for FileLock {
    fn drop(&mut self) {
        if self.is_open
            && let Err(error) = self.sidecar.set_len(0)
        {
            tracing::debug!(%error, "the lock file still names its holder");
        }
    }
}

/// Reading is enough for a lock, so that SQLite is the one who says what cannot be written.
fn existing_or_new(path: &Path) -> io::Result<File> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
        }
        opened => opened,
    }
}

fn locks(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Whoever only looks, as [`is_owned`] does, has the lock for an instant.
fn locks_soon(file: &File) -> io::Result<bool> {
    if locks(file)? {
        return Ok(true);
    }
    std::thread::sleep(AN_INSTANT);
    locks(file)
}

/// Whether a process owns the file; one that was killed does not any more.
pub fn is_owned(database: &Path) -> io::Result<bool> {
    let file = match File::open(sidecar(database)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(false),
        Err(TryLockError::WouldBlock) => Ok(true),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn refused(path: &Path, error: &io::Error) -> BusError {
    let text = format!("{}: {error}", path.display());
    let no_room = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
    if no_room.contains(&error.kind()) { BusError::Full(text) } else { BusError::Refused(text) }
}

fn sidecar(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

fn write_holder(file: &mut File, is_open: bool) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    let open = if is_open { OPEN } else { "" };
    write!(file, "{}\n{open}\n", std::process::id())
}

/// At most a little: the holder and one word.
fn text_of(file: &mut File) -> String {
    let mut text = String::new();
    // What cannot be read says nothing.
    file.take(64).read_to_string(&mut text).unwrap_or_default();
    text
}

fn held(database: &Path, file: &mut File) -> BusError {
    let text = text_of(file);
    let holder = text.lines().next().filter(|line| !line.is_empty());
    let holder = holder.map_or_else(|| "a process".to_owned(), |id| format!("process {id}"));
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

    #[test]
    fn a_file_that_was_not_closed_is_known_until_somebody_has_opened_it() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("store.db");
        let said = || std::fs::read_to_string(sidecar(&database)).unwrap();
        let mut first = FileLock::take(&database).unwrap();
        assert!(!first.was_left);
        first.opened(false);
        let crashed = said();
        drop(first);
        assert_eq!(said(), "", "closed in good order");
        std::fs::write(sidecar(&database), crashed).unwrap();
        let second = FileLock::take(&database).unwrap();
        assert!(second.was_left);
        drop(second);
        let mut third = FileLock::take(&database).unwrap();
        assert!(third.was_left, "the second one never opened it");
        third.opened(true);
        drop(third);
        assert!(!FileLock::take(&database).unwrap().was_left);
    }

    #[test]
    fn an_owner_is_seen_as_long_as_there_is_one() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("store.db");
        assert!(!is_owned(&database).unwrap());
        let lock = FileLock::take(&database).unwrap();
        assert!(is_owned(&database).unwrap());
        drop(lock);
        assert!(!is_owned(&database).unwrap());
        drop(FileLock::take(&database).unwrap());
    }

    #[test]
    fn another_name_or_a_lost_sidecar_makes_no_second_owner() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("store.db");
        let first = FileLock::take(&database).unwrap();
        let name = folder.path().join("name.db");
        std::fs::hard_link(&database, &name).unwrap();
        assert!(matches!(FileLock::take(&name), Err(BusError::Locked(_))));
        std::fs::remove_file(sidecar(&database)).unwrap();
        let refusal = FileLock::take(&database).unwrap_err().to_string();
        assert!(refusal.contains(".lock file was removed"), "{refusal}");
        drop(first);
    }

    #[test]
    fn a_file_that_is_not_there_any_more_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("store.db");
        std::fs::write(&database, "content").unwrap();
        let lock = FileLock::take(&database).unwrap();
        assert_eq!(lock.check(), Ok(()));
        std::fs::rename(&database, folder.path().join("moved.db")).unwrap();
        let gone = lock.check().unwrap_err().to_string();
        assert!(gone.contains("was removed or replaced while this process"), "{gone}");
        std::fs::write(&database, "another").unwrap();
        assert_eq!(lock.check().unwrap_err().to_string(), gone);
        std::fs::write(folder.path().join("moved.db"), "").unwrap();
        assert!(lock.check().unwrap_err().to_string().contains("was emptied"));
    }
}

//! Whether files on disk have changed. A look costs the file system's word on each; only what that
//! says is new is read.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use proto::hash::fingerprint;
use proto::ids::Fingerprint;
use proto::time::Timestamp;

use crate::agent_files::{Disk, Files};

/// The most files that are looked at.
const MOST: usize = 2000;

/// What the file system says of a file, as far as it changes with what the file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    modified: (i64, i64),
    changed: (i64, i64),
    bytes: u64,
    inode: u64,
}

/// Nothing when there is no such file.
fn stamp(path: &Path) -> Option<Stamp> {
    let found = fs::metadata(path).ok()?;
    Some(Stamp {
        modified: (found.mtime(), found.mtime_nsec()),
        changed: (found.ctime(), found.ctime_nsec()),
        bytes: found.size(),
        inode: found.ino(),
    })
}

/// Each file with its stamp and what it held, as far as there is one.
type Looks = BTreeMap<PathBuf, (Option<Stamp>, Option<Fingerprint>)>;

/// Files on disk, with a note of each that was asked for.
#[derive(Default)]
pub(super) struct Noted {
    read: RefCell<Looks>,
}

impl Noted {
    fn note(&self, path: &Path, stamp: Option<Stamp>, held: Option<Fingerprint>) {
        let mut read = self.read.borrow_mut();
        if read.len() < MOST {
            read.entry(path.to_owned()).or_insert((stamp, held));
        }
    }

    /// A folder whose list of files matters.
    pub(super) fn folder(&self, path: &Path) {
        self.note(path, stamp(path), None);
    }

    /// What they were.
    pub(super) fn seen(self) -> Seen {
        Seen(self.read.into_inner())
    }
}

impl Files for Noted {
    fn read(&self, path: &Path) -> io::Result<Option<String>> {
        // Taken before the text, so that what is written meanwhile is seen as a change.
        let before = stamp(path);
        let text = Disk.read(path);
        let held = text.as_ref().ok().and_then(|text| text.as_deref().map(fingerprint));
        self.note(path, before, held);
        text
    }

    fn folder_of(&self, path: &Path) -> io::Result<PathBuf> {
        Disk.folder_of(path)
    }

    fn watch(&self, path: &Path) {
        self.note(path, stamp(path), None);
    }

    fn names(&self, folder: &Path) -> Vec<String> {
        Disk.names(folder)
    }
}

/// A change that was seen.
#[derive(Debug)]
pub(super) struct Change {
    pub(super) at: Timestamp,
    pub(super) files: Vec<PathBuf>,
}

impl Change {
    /// The most files that are named.
    const NAMED: usize = 3;

    /// Which files, for people.
    pub(super) fn words(&self) -> String {
        let names: Vec<String> =
            self.files.iter().take(Self::NAMED).map(|path| path.display().to_string()).collect();
        match self.files.len().saturating_sub(Self::NAMED) {
            _ if names.is_empty() => "a file that a tool needs changed".to_owned(),
            0 => format!("{} changed", names.join(", ")),
            more => format!("{} and {more} more changed", names.join(", ")),
        }
    }
}

/// Files as they were when they were read.
#[derive(Debug, Default)]
pub(super) struct Seen(Looks);

impl Seen {
    /// Whether any of them may be another one.
    pub(super) fn is_old(&self) -> bool {
        self.0.iter().any(|(path, (then, _))| stamp(path) != *then)
    }

    /// The files that do not hold what they held in `before`.
    pub(super) fn changed_since(&self, before: &Self) -> Vec<PathBuf> {
        let held = |seen: &Self, path: &Path| seen.0.get(path).and_then(|(_, held)| held.clone());
        let paths: BTreeSet<&PathBuf> = self.0.keys().chain(before.0.keys()).collect();
        let changed = paths.into_iter().filter(|path| held(self, path) != held(before, path));
        changed.cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(path: &Path) -> Seen {
        let noted = Noted::default();
        noted.read(path).unwrap();
        noted.folder(path.parent().unwrap());
        noted.seen()
    }

    #[test]
    fn a_file_that_is_written_removed_or_replaced_is_old() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        let absent = look(&path);
        assert!(!absent.is_old());
        fs::write(&path, "one").unwrap();
        assert!(absent.is_old());
        let one = look(&path);
        assert!(!one.is_old());
        fs::write(folder.path().join("b"), "two").unwrap();
        assert!(one.is_old(), "the folder has one more");
        fs::rename(folder.path().join("b"), &path).unwrap();
        let two = look(&path);
        assert!(!two.is_old());
        assert_eq!(two.changed_since(&one), std::slice::from_ref(&path));
        fs::remove_file(&path).unwrap();
        assert!(two.is_old());
    }

    #[test]
    fn a_file_that_was_only_touched_holds_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.yaml");
        fs::write(&path, "one").unwrap();
        let before = look(&path);
        fs::remove_file(&path).unwrap();
        fs::write(&path, "one").unwrap();
        assert!(before.is_old());
        assert_eq!(look(&path).changed_since(&before), Vec::<PathBuf>::new());
    }
}

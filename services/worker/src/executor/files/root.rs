//! A folder that paths cannot leave.
//!
//! A path is first resolved with its symbolic links, and refused when it ends up outside. What is
//! then opened is the resolved path, component by component from the root's handle, following no
//! link: somebody who swaps a folder for a link in between gets an error, not a way out.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, mkdirat, openat};
use rustix::io::Errno;

use super::Refused;

/// The root, opened.
pub(super) struct Root {
    folder: OwnedFd,
    real: PathBuf,
}

/// A place under the root whose links are resolved, as far as it exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// As it was given, for messages.
    pub(super) given: String,
    /// From the root; empty for the root itself.
    pub(super) resolved: PathBuf,
}

impl Root {
    pub(super) fn open(root: &Path) -> Result<Self, Refused> {
        let opened = root.canonicalize().and_then(|real| {
            let folder = openat(CWD, &real, FOLDER, Mode::empty())?;
            Ok(Self { folder, real })
        });
        opened.map_err(|error| {
            let root = root.display();
            Refused(format!("the tool's root folder `{root}` cannot be opened: {error}"))
        })
    }

    /// The root itself, resolved.
    pub(super) fn real(&self) -> &Path {
        &self.real
    }

    /// Resolves a path that a model gave.
    pub(super) fn place(&self, given: &str) -> Result<Place, Refused> {
        let plain = plain(given)?;
        let (existing, rest) = self.deepest_existing(given, &plain)?;
        let inside = existing.strip_prefix(&self.real).map_err(|_outside| {
            Refused(format!(
                "the path `{given}` leads out of the tool's root folder by a symbolic link: \
             use a path that stays inside"
            ))
        })?;
        let resolved = inside.iter().chain(&rest).collect();
        Ok(Place { given: given.to_owned(), resolved })
    }

    /// Splits into what exists, resolved, and what does not.
    fn deepest_existing(&self, given: &str, plain: &Path) -> Result<(PathBuf, PathBuf), Refused> {
        let mut rest = Vec::new();
        let mut front = plain;
        loop {
            match self.real.join(front).canonicalize() {
                Ok(existing) => return Ok((existing, rest.iter().rev().collect())),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(refused(given, &error)),
            }
            let (Some(name), Some(parent)) = (front.file_name(), front.parent()) else {
                return Err(refused(given, &io::ErrorKind::NotFound.into()));
            };
            rest.push(name.to_owned());
            front = parent;
        }
    }

    /// Opens a file to read it. Opening a pipe or a device does not block, and is refused.
    pub(super) fn read(&self, place: &Place) -> Result<File, Refused> {
        let open = || -> io::Result<File> {
            let (folder, name) = self.parent(&place.resolved, false)?;
            let how = OFlags::RDONLY | OFlags::NONBLOCK | FIXED;
            Ok(File::from(openat(folder, name, how, Mode::empty())?))
        };
        let file = open().map_err(|error| refused(&place.given, &error))?;
        must_be_file(&place.given, &file)?;
        Ok(file)
    }

    /// Opens the folder that holds `place`, and says under which name.
    pub(super) fn parent_of(
        &self,
        place: &Place,
        create: bool,
    ) -> Result<(OwnedFd, OsString), Refused> {
        let parent = self.parent(&place.resolved, create);
        parent.map_err(|error| refused(&place.given, &error))
    }

    fn parent(&self, resolved: &Path, create: bool) -> io::Result<(OwnedFd, OsString)> {
        let Some(name) = resolved.file_name() else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let mut folder = self.folder.try_clone()?;
        for step in resolved.parent().unwrap_or_else(|| Path::new("")) {
            folder = enter(&folder, step, create)?;
        }
        Ok((folder, name.to_owned()))
    }
}

const FIXED: OFlags = OFlags::NOFOLLOW.union(OFlags::CLOEXEC);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(FIXED);

fn enter(folder: &OwnedFd, step: &OsStr, create: bool) -> io::Result<OwnedFd> {
    match openat(folder, step, FOLDER, Mode::empty()) {
        Err(Errno::NOENT) if create => {
            match mkdirat(folder, step, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            Ok(openat(folder, step, FOLDER, Mode::empty())?)
        }
        opened => Ok(opened?),
    }
}

/// Refuses what is not an ordinary file.
pub(super) fn must_be_file(given: &str, file: &impl AsFd) -> Result<(), Refused> {
    let about = fstat(file).map_err(|error| refused(given, &error.into()))?;
    match FileType::from_raw_mode(about.st_mode) {
        FileType::RegularFile => Ok(()),
        FileType::Directory => Err(refused(given, &io::ErrorKind::IsADirectory.into())),
        FileType::Symlink
        | FileType::Fifo
        | FileType::Socket
        | FileType::CharacterDevice
        | FileType::BlockDevice
        | FileType::Unknown => Err(special(given)),
    }
}

pub(super) fn special(given: &str) -> Refused {
    Refused(format!("`{given}` is a device, pipe or socket: only ordinary files can be used"))
}

/// A path from the root, without detours.
fn plain(given: &str) -> Result<PathBuf, Refused> {
    let wrong = |rule: &str| {
        let fix = "give a path relative to the tool's root folder, such as `notes/today.md`";
        Err(Refused(format!("the path `{given}` {rule}: {fix}")))
    };
    if given.contains('\0') {
        return wrong("contains a zero byte");
    }
    let mut plain = PathBuf::new();
    for component in Path::new(given).components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::CurDir => {}
            Component::ParentDir => return wrong("contains `..`"),
            Component::RootDir | Component::Prefix(_) => return wrong("is absolute"),
        }
    }
    Ok(plain)
}

/// An error of the operating system, in words that say what to do.
pub(super) fn refused(given: &str, error: &io::Error) -> Refused {
    let given = if given.is_empty() { "." } else { given };
    let known = error.raw_os_error().or_else(|| number(error.kind()));
    let advice = known.and_then(|known| ADVICE.iter().find(|(on, _)| on.raw_os_error() == known));
    Refused(match advice {
        Some((_, advice)) => format!("`{given}` {advice}"),
        None => format!("`{given}` cannot be used: {error}"),
    })
}

/// The number of an error that was made here.
fn number(kind: io::ErrorKind) -> Option<i32> {
    let made =
        [(io::ErrorKind::NotFound, Errno::NOENT), (io::ErrorKind::IsADirectory, Errno::ISDIR)];
    made.into_iter().find(|(made, _)| *made == kind).map(|(_, number)| number.raw_os_error())
}

const ADVICE: [(Errno, &str); 8] = [
    (Errno::NOENT, "does not exist: list the folder to see what does"),
    (Errno::ISDIR, "is a folder: name a file in it"),
    (Errno::NOTDIR, "goes through something that is not a folder: list the folder above it"),
    (Errno::ACCESS, "may not be used by the worker: use another path"),
    (Errno::PERM, "may not be used by the worker: use another path"),
    (Errno::LOOP, "goes through symbolic links that lead nowhere: use another path"),
    (Errno::NOSPC, "does not fit on the disk: nothing was changed"),
    (Errno::DQUOT, "does not fit on the disk: nothing was changed"),
];

//! `write_file {path, content}`: creates or replaces a file, as a whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::process;

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, fchmod, fsync, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

use super::arguments::Arguments;
use super::root::{Place, Root, refused, special};
use super::{Halt, MOST_CONTENT, Output, Refused};

/// What to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Write {
    path: String,
    content: String,
}

impl Write {
    pub(super) fn new(arguments: &Arguments<'_>) -> Result<Self, String> {
        let content = arguments.text("content")?;
        if content.len() > MOST_CONTENT {
            let length = content.len();
            return Err(format!(
                "argument `content` has {length} bytes, {MOST_CONTENT} are allowed: write less"
            ));
        }
        Ok(Self { path: arguments.text("path")?, content })
    }

    pub(super) fn work(&self, root: &Root, halt: &Halt) -> Result<Output, Refused> {
        let target = Target::find(root, root.place(&self.path)?, true)?;
        let verb = if target.old.is_some() { "replaced" } else { "created" };
        target.replace(self.content.as_bytes(), halt)?;
        Ok(Output::from(format!("{verb} {} ({} bytes)\n", self.path, self.content.len())))
    }
}

/// A file to be replaced, held by its folder.
pub(super) struct Target {
    place: Place,
    folder: OwnedFd,
    name: OsString,
    /// What is there.
    old: Option<Stat>,
}

impl Target {
    /// Opens the folder; `create` makes missing ones.
    pub(super) fn find(root: &Root, place: Place, create: bool) -> Result<Self, Refused> {
        let (folder, name) = root.parent_of(&place, create)?;
        let old = match statat(&folder, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) => Some(about),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(refused(&place.given, &error.into())),
        };
        match old.as_ref().map(|about| FileType::from_raw_mode(about.st_mode)) {
            // A link that leads nowhere is replaced itself.
            None | Some(FileType::RegularFile | FileType::Symlink) => {
                Ok(Self { place, folder, name, old })
            }
            Some(FileType::Directory) => {
                Err(refused(&place.given, &io::ErrorKind::IsADirectory.into()))
            }
            Some(_) => Err(special(&place.given)),
        }
    }

    /// Writes aside, then renames. The last look at `halt` and at the old file comes right before.
    pub(super) fn replace(&self, content: &[u8], halt: &Halt) -> Result<(), Refused> {
        let aside = Aside::new(&self.folder, &self.name);
        let written = self.write_aside(&aside, content);
        written.map_err(|error| refused(&self.place.given, &error))?;
        halt.check()?;
        self.check_unchanged()?;
        let renamed = renameat(&self.folder, &aside.name, &self.folder, &self.name);
        renamed.map_err(|error| refused(&self.place.given, &error.into()))?;
        fsync(&self.folder).map_err(|error| {
            let given = &self.place.given;
            Refused(format!("`{given}` is changed, but a power cut may undo it: {error}"))
        })
    }

    fn write_aside(&self, aside: &Aside<'_>, content: &[u8]) -> io::Result<()> {
        let how =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        unlinkat(&self.folder, &aside.name, AtFlags::empty()).ok();
        let mut file =
            File::from(openat(&self.folder, &aside.name, how, Mode::from_raw_mode(0o666))?);
        let old = self.old.as_ref().filter(|old| FileType::from_raw_mode(old.st_mode).is_file());
        if let Some(old) = old {
            fchmod(&file, Mode::from_raw_mode(old.st_mode & 0o777))?;
        }
        file.write_all(content)?;
        file.sync_all()
    }

    fn check_unchanged(&self) -> Result<(), Refused> {
        let now = statat(&self.folder, &self.name, AtFlags::SYMLINK_NOFOLLOW).ok();
        let key = |about: &Stat| (about.st_ino, about.st_size, about.st_mtime, about.st_mtime_nsec);
        if now.as_ref().map(key) == self.old.as_ref().map(key) {
            return Ok(());
        }
        let why = "was changed by somebody else meanwhile: read it again, then repeat the change";
        Err(Refused(format!("`{}` {why}", self.place.given)))
    }
}

/// A file beside the target that is gone in the end, whatever happens.
struct Aside<'folder> {
    folder: &'folder OwnedFd,
    name: OsString,
}

impl<'folder> Aside<'folder> {
    /// The name depends on process and thread, so no two writers share one, and one that a killed
    /// process left behind is found and used again sooner or later.
    fn new(folder: &'folder OwnedFd, target: &OsStr) -> Self {
        let thread = rustix::thread::gettid();
        let mut name = OsString::from(format!(".{}-{thread}-", process::id()));
        name.push(target);
        Self { folder, name }
    }
}

impl Drop for Aside<'_> {
    fn drop(&mut self) {
        unlinkat(self.folder, &self.name, AtFlags::empty()).ok();
    }
}

//! Where the socket lies.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;

/// A path short enough for a socket address, whatever the folder's own path is.
pub(super) struct ShortPath {
    _folder: File,
    pub(super) path: PathBuf,
}

impl ShortPath {
    pub(super) fn beside(store: &Path) -> io::Result<Self> {
        let parent = store.parent().filter(|parent| !parent.as_os_str().is_empty());
        let folder = File::open(parent.unwrap_or_else(|| Path::new(".")))?;
        let mut name = store.file_name().unwrap_or_default().to_owned();
        name.push(".sock");
        let path = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        Ok(Self { _folder: folder, path })
    }

    /// A listener at this place for the owner alone. It gets its mode aside and then its name, so
    /// that nobody else can come in between.
    pub(super) fn bind(&self) -> io::Result<UnixListener> {
        let aside = self.path.with_extension(format!("sock.{}", std::process::id()));
        remove(&aside)?;
        let listener = UnixListener::bind(&aside)?;
        fs::set_permissions(&aside, Permissions::from_mode(0o600))?;
        fs::rename(&aside, &self.path)?;
        Ok(listener)
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        remove(&self.path)
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_owner_may_use_the_socket_and_an_old_one_gives_way() {
        let folder = tempfile::tempdir().unwrap();
        let store = folder.path().join("a.db");
        fs::write(folder.path().join("a.db.sock"), "left by a dead process").unwrap();
        let place = ShortPath::beside(&store).unwrap();
        let listener = place.bind().unwrap();
        let mode = fs::metadata(folder.path().join("a.db.sock")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing lies aside");
        drop(listener);
    }
}

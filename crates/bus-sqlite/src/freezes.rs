//! Freezes of a store: one small file for each, in a folder beside the store, so that freezing needs
//! no process that owns the store and reaches the one that does. A file that is there freezes,
//! whatever is in it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use ports::BusError;
use ports::freezes::{Freezes, with};
use proto::freeze::{Freeze, FreezeTarget};
use proto::ids::{TenantId, ToolName};
use proto::time::Timestamp;
use serde::{Deserialize, Serialize};

use crate::SqliteBus;

/// The freezes of one store, also while another process owns it.
#[derive(Clone, Debug)]
pub struct FreezeFolder {
    folder: PathBuf,
}

/// What a file says.
#[derive(Default, Serialize, Deserialize)]
struct Note {
    reason: String,
    by: String,
    at: Timestamp,
}

fn file_of(target: &FreezeTarget) -> String {
    match target {
        FreezeTarget::All => "all".to_owned(),
        FreezeTarget::Tenant(tenant) => format!("tenant.{tenant}"),
        FreezeTarget::Tool(tool) => format!("tool.{tool}"),
    }
}

fn target_of(file: &str) -> Option<FreezeTarget> {
    match file.split_once('.') {
        None if file == "all" => Some(FreezeTarget::All),
        Some(("tenant", tenant)) => TenantId::new(tenant).ok().map(FreezeTarget::Tenant),
        Some(("tool", tool)) => ToolName::new(tool).ok().map(FreezeTarget::Tool),
        Some(_) | None => None,
    }
}

impl FreezeFolder {
    /// Those of the store at `path`, which need not be there yet.
    pub fn of(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let real = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let mut folder = real.into_os_string();
        folder.push(".frozen");
        Self { folder: PathBuf::from(folder) }
    }

    fn put(&self, freeze: &Freeze) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let Freeze { target, reason, by, at } = freeze.clone();
        let aside = self.folder.join(format!(".{}", std::process::id()));
        let mut file = File::create(&aside)?;
        file.write_all(&serde_json::to_vec(&Note { reason, by, at })?)?;
        file.sync_all()?;
        fs::rename(&aside, self.folder.join(file_of(&target)))?;
        File::open(&self.folder)?.sync_all()
    }

    fn remove(&self, target: &FreezeTarget) -> io::Result<bool> {
        match fs::remove_file(self.folder.join(file_of(target))) {
            Ok(()) => File::open(&self.folder)?.sync_all().map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn list(&self) -> io::Result<Vec<Freeze>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut all = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            if let Some(target) = name.to_str().and_then(target_of) {
                all.push(self.read(target));
            }
        }
        all.sort_by(|one, other| one.target.cmp(&other.target));
        Ok(all)
    }

    /// A note that cannot be read does not thaw anything.
    fn read(&self, target: FreezeTarget) -> Freeze {
        let bytes = fs::read(self.folder.join(file_of(&target))).unwrap_or_default();
        let Note { reason, by, at } = serde_json::from_slice(&bytes).unwrap_or_default();
        Freeze { target, reason, by, at }
    }

    fn refused(&self, error: &io::Error) -> BusError {
        BusError::Refused(format!("{}: {error}", self.folder.display()))
    }
}

#[async_trait]
impl Freezes for FreezeFolder {
    async fn freeze(&self, freeze: Freeze) -> Result<(), BusError> {
        let list = self.list().map_err(|error| self.refused(&error))?;
        with(list, freeze.clone())?;
        self.put(&freeze).map_err(|error| self.refused(&error))
    }

    async fn thaw(&self, target: &FreezeTarget) -> Result<bool, BusError> {
        self.remove(target).map_err(|error| self.refused(&error))
    }

    async fn frozen(&self) -> Result<Vec<Freeze>, BusError> {
        self.list().map_err(|error| self.refused(&error))
    }
}

#[async_trait]
impl Freezes for SqliteBus {
    async fn freeze(&self, freeze: Freeze) -> Result<(), BusError> {
        self.inner.freezes.freeze(freeze).await
    }

    async fn thaw(&self, target: &FreezeTarget) -> Result<bool, BusError> {
        self.inner.freezes.thaw(target).await
    }

    async fn frozen(&self) -> Result<Vec<Freeze>, BusError> {
        self.inner.freezes.frozen().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything() -> Freeze {
        let (reason, by) = ("incident 7".to_owned(), "ann".to_owned());
        Freeze { target: FreezeTarget::All, reason, by, at: Timestamp(7) }
    }

    #[tokio::test]
    async fn a_note_that_cannot_be_read_freezes_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let freezes = FreezeFolder::of(folder.path().join("a.db"));
        freezes.freeze(everything()).await.unwrap();
        assert_eq!(freezes.frozen().await.unwrap(), [everything()]);
        fs::write(folder.path().join("a.db.frozen/all"), "").unwrap();
        fs::write(folder.path().join("a.db.frozen/what"), "").unwrap();
        let targets: Vec<_> =
            freezes.frozen().await.unwrap().into_iter().map(|freeze| freeze.target).collect();
        assert_eq!(targets, [FreezeTarget::All]);
    }

    #[tokio::test]
    async fn a_folder_that_cannot_be_looked_at_is_no_empty_one() {
        let folder = tempfile::tempdir().unwrap();
        let freezes = FreezeFolder::of(folder.path().join("a.db"));
        fs::write(folder.path().join("a.db.frozen"), "").unwrap();
        assert!(matches!(freezes.frozen().await, Err(BusError::Refused(_))));
    }
}

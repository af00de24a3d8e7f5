//! A folder that a case may change; gone when the case is over.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::find::Rehearsed;
use crate::failure::Failure;
use crate::settings::Environment;
use crate::wiring::ids;

/// The deepest folder that is copied; a link that leads upwards would never end.
const DEEPEST: usize = 32;

/// The folder.
pub(super) struct Scratch {
    root: PathBuf,
    /// Variables with the copies that they name.
    copies: Vec<(String, PathBuf)>,
}

impl Scratch {
    /// Makes it, with fresh copies of what the case asks for.
    pub(super) fn new(rehearsed: &Rehearsed) -> Result<Self, Failure> {
        let name = format!("systole-rehearsal-{}", ids().nonce());
        let root = std::env::temp_dir().join(name);
        fs::create_dir(&root).map_err(|error| Failure::other("a folder for the case", error))?;
        let mut scratch = Self { root, copies: Vec::new() };
        for (variable, folder) in &rehearsed.case.copies {
            let to = scratch.root.join("copies").join(variable);
            let from = rehearsed.folder.join(folder);
            copy(&from, &to, DEEPEST).map_err(|error| {
                Failure::input(format!("{} cannot be copied: {error}", from.display()))
            })?;
            scratch.copies.push((variable.clone(), to));
        }
        Ok(scratch)
    }

    pub(super) fn store(&self) -> PathBuf {
        self.root.join("store.db")
    }

    pub(super) fn environment(&self, environment: &Environment) -> Environment {
        let with = |environment: Environment, (name, folder): &(String, PathBuf)| {
            environment.with(name, folder)
        };
        self.copies.iter().fold(environment.clone(), with)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.root) {
            tracing::warn!(%error, folder = %self.root.display(), "a folder was left behind");
        }
    }
}

fn copy(from: &Path, to: &Path, deepest: usize) -> io::Result<()> {
    if deepest == 0 {
        return Err(io::Error::other("folders in folders without an end"));
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target, deepest.saturating_sub(1))?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

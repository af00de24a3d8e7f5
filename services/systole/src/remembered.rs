//! Agents as they were, beside the store, so that `show --prompt` can build a request again
//! exactly as it was sent.

use std::io;
use std::path::{Path, PathBuf};

use proto::agent::Agent;
use proto::ids::Fingerprint;
use proto::tool::ToolContract;
use serde::{Deserialize, Serialize};

/// An agent and what its tools promised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Remembered {
    /// The agent.
    pub(crate) agent: Agent,
    /// Its tools.
    pub(crate) tools: Vec<ToolContract>,
}

/// The most that [`Remembered::all`] reads.
const MOST: usize = 1000;

fn folder(store: &Path) -> PathBuf {
    let mut folder = store.as_os_str().to_owned();
    folder.push(".agents");
    PathBuf::from(folder)
}

fn path(store: &Path, agent: &Fingerprint) -> PathBuf {
    folder(store).join(format!("{agent}.json"))
}

impl Remembered {
    /// Keeps it beside the store; the newest promises of its tools stay.
    pub(crate) fn keep(&self, store: &Path) -> io::Result<()> {
        let path = path(store, &self.agent.fingerprint);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let aside = path.with_extension(format!("{}.new", std::process::id()));
        std::fs::write(&aside, serde_json::to_vec_pretty(self)?)?;
        std::fs::rename(&aside, &path)
    }

    /// What was kept of an agent.
    pub(crate) fn find(store: &Path, agent: &Fingerprint) -> io::Result<Option<Self>> {
        match std::fs::read(path(store, agent)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// All that was kept; what cannot be read is left out.
    pub(crate) fn all(store: &Path) -> Vec<Self> {
        let entries = std::fs::read_dir(folder(store)).into_iter().flatten().flatten().take(MOST);
        let texts = entries.filter_map(|entry| std::fs::read(entry.path()).ok());
        texts.filter_map(|text| serde_json::from_slice(&text).ok()).collect()
    }
}

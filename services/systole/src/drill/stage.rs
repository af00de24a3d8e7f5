//! What every row has: servers in a folder of its own, a client, and an outcome at the end.

use std::path::PathBuf;
use std::time::Duration;

use serde::Serialize;

use super::client::Client;
use super::judge::{Counts, Kept, judge};
use super::servers::Programs;
use super::world::World;
use crate::failure::Failure;
use proto::ids::ThreadRef;

/// What came of a row.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Outcome {
    /// Its name.
    pub(crate) cell: String,
    /// Whether what the row is about happened.
    pub(crate) reached: bool,
    /// Processes that were ended by `kill -9` while threads were under way.
    pub(crate) kills: usize,
    /// Threads under way.
    pub(crate) threads: usize,
    /// What was counted.
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// From the hit until every run had ended, at worst.
    pub(crate) recovered_ms: u64,
}

impl Outcome {
    /// Whether the row proves what it should.
    pub(crate) fn is_good(&self) -> bool {
        self.reached && self.counts.keeps_promises()
    }
}

/// What a row found out besides what is counted in the journals.
#[derive(Clone, Debug, Default)]
pub(crate) struct Found {
    pub(crate) reached: bool,
    pub(crate) kills: usize,
    pub(crate) places: Vec<ThreadRef>,
    pub(crate) recovered: Duration,
    pub(crate) kept: Kept,
    /// Broken promises that only the row knows of.
    pub(crate) violations: Vec<String>,
}

/// A world with a client.
pub(crate) struct Stage {
    folder: PathBuf,
    pub(crate) world: World,
    pub(crate) client: Client,
}

impl Stage {
    /// Starts the servers in a folder that does not exist.
    pub(crate) async fn open(programs: &Programs, folder: PathBuf) -> Result<Self, Failure> {
        Self::of(World::start(programs, folder.clone()).await?, folder).await
    }

    /// The same in a world of its own kind.
    pub(crate) async fn of(world: World, folder: PathBuf) -> Result<Self, Failure> {
        let client = Client::connect(&world).await?;
        Ok(Self { folder, world, client })
    }

    /// Judges the threads and removes the folder, unless something went wrong.
    pub(crate) async fn close(self, name: String, found: Found) -> Result<Outcome, Failure> {
        let Found { reached, kills, places, recovered, kept, violations } = found;
        let mut counts =
            judge(self.client.journal().as_ref(), &places, &self.world.effects(), kept).await?;
        counts.violations.extend(violations);
        let outcome = Outcome {
            cell: name,
            reached,
            kills,
            threads: places.len(),
            counts,
            recovered_ms: u64::try_from(recovered.as_millis()).unwrap_or(u64::MAX),
        };
        drop((self.client, self.world));
        if outcome.is_good() {
            let removed = std::fs::remove_dir_all(&self.folder);
            removed.map_err(|error| Failure::other("the folder", error))?;
        }
        Ok(outcome)
    }
}

//! The bus as its callers hold it.

use std::sync::Arc;
use std::time::Duration;

use ports::BusError;
use ports::clock::Clock;
use proto::ids::Sequence;

use crate::behind::Behind;
use crate::book::Book;
use crate::freezes::FreezeFolder;
use crate::leases::Leases;
use crate::live::Air;
use crate::readers::Readers;
use crate::recent::Recent;
use crate::registry::Offers;
use crate::writer::Writer;

/// All ports of the embedded mode over one SQLite file. Clones are the same bus; when the last one
/// is dropped, what waits is written and the file is free for the next owner.
#[derive(Clone)]
pub struct SqliteBus {
    pub(crate) inner: Arc<Inner>,
}

/// What clones share. Readers end before the writer, so that the writer's connection is the last
/// one and tidies up.
pub(crate) struct Inner {
    pub(crate) readers: Readers,
    pub(crate) writer: Writer,
    pub(crate) book: Arc<Book>,
    pub(crate) recent: Arc<Recent>,
    pub(crate) behind: Arc<Behind>,
    pub(crate) air: Air,
    pub(crate) offers: Offers,
    pub(crate) freezes: FreezeFolder,
    pub(crate) leases: Leases,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) registration_lasts: Duration,
    /// The last sequence that an earlier process may have written.
    pub(crate) opened_at: Sequence,
}

impl SqliteBus {
    /// Writes what waits and lets go of the file; every later call answers that the bus is closed.
    pub async fn close(&self) -> Result<(), BusError> {
        self.inner.readers.close();
        self.inner.writer.close().await
    }
}

impl std::fmt::Debug for SqliteBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SqliteBus")
            .field("opened_at", &self.inner.opened_at)
            .finish_non_exhaustive()
    }
}

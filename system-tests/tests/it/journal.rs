//! Journals judged by the named invariants.

use bus_sqlite::SqliteBus;
use invariants::{Violation, check_at_rest};
use ports::journal::Journal;
use proto::envelope::Envelope;
use proto::ids::{Sequence, TenantId};
use proto::record::Placed;
use service_runtime::system::SystemClock;
use std::sync::Arc;

use crate::home::Home;

/// What every thread of the store breaks.
pub(crate) fn violations(home: &Home) -> Vec<Violation> {
    histories(home).iter().flat_map(|history| check_at_rest(history)).collect()
}

/// All threads of the store, newest first.
pub(crate) fn histories(home: &Home) -> Vec<Vec<Placed>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let reader = SqliteBus::open_read_only(home.store(), Arc::new(SystemClock)).unwrap();
        let tenant = TenantId::new("default").unwrap();
        let mut histories = Vec::new();
        for place in reader.threads(&tenant, 1000).await.unwrap() {
            let stored = reader.read(&place, Sequence::NONE, Sequence::NONE).await.unwrap();
            let placed = stored.into_iter().map(|stored| {
                let envelope = Envelope::decode(&stored.payload).unwrap();
                Placed {
                    sequence: stored.sequence,
                    at: stored.at,
                    nonce: envelope.nonce,
                    record: envelope.body,
                }
            });
            histories.push(placed.collect());
        }
        histories
    })
}

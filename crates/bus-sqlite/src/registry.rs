//! Tools on offer. One process, so the offers are in memory and end with it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use ports::BusError;
use ports::registry::Registry;
use proto::ids::InstanceId;
use proto::tool::Registration;
use tokio::time::Instant;

use crate::SqliteBus;
use crate::book::later;
use crate::guarded::Guarded;

/// Offers and when they fade.
#[derive(Debug, Default)]
pub(crate) struct Offers(Guarded<BTreeMap<InstanceId, (Instant, Registration)>>);

impl Offers {
    fn put(&self, registration: Registration, until: Instant) {
        let worker = registration.worker.clone();
        self.0.with(|offers| offers.insert(worker, (until, registration)));
    }

    fn list(&self, now: Instant) -> Vec<Registration> {
        self.0.with(|offers| {
            offers.retain(|_, (until, _)| *until > now);
            offers.values().map(|(_, registration)| registration.clone()).collect()
        })
    }
}

#[async_trait]
impl Registry for SqliteBus {
    async fn register(&self, registration: Registration) -> Result<(), BusError> {
        let until = later(Instant::now(), self.inner.registration_lasts);
        self.inner.offers.put(registration, until);
        Ok(())
    }

    async fn unregister(&self, worker: &InstanceId) -> Result<(), BusError> {
        self.inner.offers.0.with(|offers| offers.remove(worker));
        Ok(())
    }

    async fn registrations(&self) -> Result<Vec<Registration>, BusError> {
        Ok(self.inner.offers.list(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_offer_fades_unless_it_is_renewed() {
        let offer =
            |name: &str| Registration { worker: InstanceId::new(name).unwrap(), tools: vec![] };
        let (offers, now) = (Offers::default(), Instant::now());
        let lasts = Duration::from_secs(30);
        offers.put(offer("a"), now + lasts);
        offers.put(offer("b"), now + lasts);
        offers.put(offer("a"), now + lasts * 2);
        assert_eq!(offers.list(now), [offer("a"), offer("b")]);
        assert_eq!(offers.list(now + lasts), [offer("a")]);
        assert_eq!(offers.list(now + lasts * 2), []);
    }
}

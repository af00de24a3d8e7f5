//! Who offers which tools at this moment.

use async_trait::async_trait;
use proto::ids::InstanceId;
use proto::tool::Registration;

use crate::BusError;

/// Tools on offer. A registration fades unless it is renewed.
#[async_trait]
pub trait Registry: Send + Sync {
    /// Offers tools, or renews the offer.
    async fn register(&self, registration: Registration) -> Result<(), BusError>;

    /// Takes the offer back.
    async fn unregister(&self, worker: &InstanceId) -> Result<(), BusError>;

    /// All offers.
    async fn registrations(&self) -> Result<Vec<Registration>, BusError>;
}

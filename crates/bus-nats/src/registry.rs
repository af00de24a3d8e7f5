//! Tools on offer, in a bucket whose entries fade.

use async_nats::jetstream::kv::Store;
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use ports::BusError;
use ports::registry::Registry;
use proto::ids::InstanceId;
use proto::tool::Registration;

use crate::connect::NatsBus;
use crate::layout::{TOOLS_BUCKET, context};

fn unavailable(error: impl std::fmt::Display) -> BusError {
    BusError::Unavailable(error.to_string())
}

impl NatsBus {
    async fn tools(&self) -> Result<Store, BusError> {
        context(self).get_key_value(TOOLS_BUCKET).await.map_err(unavailable)
    }
}

#[async_trait]
impl Registry for NatsBus {
    async fn register(&self, registration: Registration) -> Result<(), BusError> {
        let bytes = Bytes::from(serde_json::to_vec(&registration).unwrap_or_default());
        let key = registration.worker.as_str();
        self.tools().await?.put(key, bytes).await.map(|_| ()).map_err(unavailable)
    }

    async fn unregister(&self, worker: &InstanceId) -> Result<(), BusError> {
        self.tools().await?.delete(worker.as_str()).await.map_err(unavailable)
    }

    async fn registrations(&self) -> Result<Vec<Registration>, BusError> {
        let tools = self.tools().await?;
        let mut keys = tools.keys().await.map_err(unavailable)?;
        let mut names = Vec::new();
        while let Some(key) = keys.next().await {
            names.push(key.map_err(unavailable)?);
        }
        names.sort();
        let mut registrations = Vec::new();
        for name in names {
            let Some(bytes) = tools.get(name.clone()).await.map_err(unavailable)? else { continue };
            match serde_json::from_slice(&bytes) {
                Ok(registration) => registrations.push(registration),
                Err(error) => {
                    tracing::warn!(worker = name, %error, "an unreadable offer is left out");
                }
            }
        }
        Ok(registrations)
    }
}

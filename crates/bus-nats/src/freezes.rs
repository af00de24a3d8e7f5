//! Freezes: one list under one key, so that one read answers and no list is half changed.

use async_nats::jetstream::kv::UpdateErrorKind;
use async_trait::async_trait;
use base64::Engine;
use bytes::Bytes;
use ports::BusError;
use ports::freezes::{Freezes, with};
use proto::freeze::{Freeze, FreezeTarget};
use serde_json::{Value, json};

use crate::api::{NO_MESSAGE, ask};
use crate::connect::NatsBus;
use crate::layout::{FREEZES_BUCKET, context};

const KEY: &str = "frozen";
/// Tries of a change while others change the list too.
const TRIES: u32 = 16;

/// The list with the revision that it has; 0 before there was one.
struct List {
    revision: u64,
    frozen: Vec<Freeze>,
}

impl NatsBus {
    /// The list as the leader has it: a replica may be behind what an operator was answered.
    async fn list(&self) -> Result<List, BusError> {
        let subject = format!("$JS.API.STREAM.MSG.GET.KV_{FREEZES_BUCKET}");
        let query = json!({ "last_by_subj": format!("$KV.{FREEZES_BUCKET}.{KEY}") });
        match ask(self, subject, &query).await? {
            Ok(answer) => list_of(&answer).ok_or_else(|| {
                let why = format!("the list in bucket {FREEZES_BUCKET} cannot be read");
                BusError::Refused(why)
            }),
            Err(error) if error.err_code == NO_MESSAGE => {
                Ok(List { revision: 0, frozen: Vec::new() })
            }
            Err(error) => Err(error.into_bus()),
        }
    }

    /// Changes the list; what somebody else changed meanwhile stays. Answers with the list before.
    async fn change(
        &self,
        change: impl Fn(Vec<Freeze>) -> Result<Vec<Freeze>, BusError> + Send + Sync,
    ) -> Result<Vec<Freeze>, BusError> {
        let unavailable = |why: String| BusError::Unavailable(format!("the freezes: {why}"));
        let bucket = context(self).get_key_value(FREEZES_BUCKET).await;
        let bucket = bucket.map_err(|error| unavailable(error.to_string()))?;
        for _ in 0..TRIES {
            let List { revision, frozen } = self.list().await?;
            let bytes = serde_json::to_vec(&change(frozen.clone())?).unwrap_or_default();
            match bucket.update(KEY, Bytes::from(bytes), revision).await {
                Ok(_) => return Ok(frozen),
                Err(error) if error.kind() == UpdateErrorKind::WrongLastRevision => {}
                Err(error) => return Err(unavailable(error.to_string())),
            }
        }
        Err(unavailable("others change them all the time".to_owned()))
    }
}

fn list_of(answer: &Value) -> Option<List> {
    let message = answer.get("message")?;
    let revision = message.get("seq")?.as_u64()?;
    let data = message.get("data").and_then(Value::as_str)?;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).ok()?;
    Some(List { revision, frozen: serde_json::from_slice(&bytes).ok()? })
}

#[async_trait]
impl Freezes for NatsBus {
    async fn freeze(&self, freeze: Freeze) -> Result<(), BusError> {
        self.change(|frozen| with(frozen, freeze.clone())).await?;
        // Workers may still go by a list that they had before.
        tokio::time::sleep(self.settings.freeze_lag).await;
        Ok(())
    }

    async fn thaw(&self, target: &FreezeTarget) -> Result<bool, BusError> {
        let without = |mut frozen: Vec<Freeze>| {
            frozen.retain(|freeze| freeze.target != *target);
            Ok(frozen)
        };
        let before = self.change(without).await?;
        Ok(before.iter().any(|freeze| freeze.target == *target))
    }

    async fn frozen(&self) -> Result<Vec<Freeze>, BusError> {
        Ok(self.list().await?.frozen)
    }
}

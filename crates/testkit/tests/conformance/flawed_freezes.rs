//! Freezes that break one rule.

use async_trait::async_trait;
use ports::BusError;
use ports::freezes::Freezes;
use proto::freeze::{Freeze, FreezeTarget};

use crate::flawed_bus::Flawed;

#[async_trait]
impl Freezes for Flawed {
    async fn freeze(&self, freeze: Freeze) -> Result<(), BusError> {
        let earlier = self.inner.frozen().await?;
        let known = earlier.iter().any(|other| other.target == freeze.target);
        match self.flaw {
            "a_second_freeze_of_a_target_replaces_the_first" if known => return Ok(()),
            "freezes_of_several_processes_stand_together" => {
                for other in earlier {
                    self.inner.thaw(&other.target).await?;
                }
            }
            "freezes_and_their_reasons_are_bounded" => {
                let reason = freeze.reason.chars().take(8).collect();
                return self.inner.freeze(Freeze { reason, ..freeze }).await;
            }
            _ => {}
        }
        self.inner.freeze(freeze).await
    }

    async fn thaw(&self, target: &FreezeTarget) -> Result<bool, BusError> {
        if self.is("a_thaw_lets_go_of_its_target_alone") {
            for other in self.inner.frozen().await? {
                self.inner.thaw(&other.target).await?;
            }
            return Ok(true);
        }
        let was = self.inner.thaw(target).await?;
        Ok(was || self.is("thawing_what_is_not_frozen_says_so"))
    }

    async fn frozen(&self) -> Result<Vec<Freeze>, BusError> {
        let hidden = self.is("a_freeze_is_seen_by_every_process_at_once");
        if hidden && self.inner.process().as_str() != "a" {
            return Ok(Vec::new());
        }
        self.inner.frozen().await
    }
}

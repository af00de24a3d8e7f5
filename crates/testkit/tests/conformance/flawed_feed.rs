//! A feed that breaks one rule.

use async_trait::async_trait;
use ports::BusError;
use ports::feed::Feed;
use ports::journal::Stored;
use proto::ids::{Partition, Sequence};

use crate::flawed_bus::Flawed;

#[async_trait]
impl Feed for Flawed {
    async fn facts(
        &self,
        partition: Partition,
        from: Sequence,
        limit: usize,
    ) -> Result<Vec<Stored>, BusError> {
        match self.flaw {
            "facts_go_on_behind_the_last_one" => {
                self.inner.facts(partition, Sequence::NONE, limit).await
            }
            "facts_of_all_threads_come_in_order_and_nothing_else_does" => {
                let mut found = self.inner.facts(partition, from, limit).await?;
                found.reverse();
                Ok(found)
            }
            "purged_facts_are_passed_over" => {
                let found = self.inner.facts(partition, from, limit).await?;
                let next = from.next();
                Ok(found.into_iter().take_while(|stored| stored.sequence <= next).collect())
            }
            _ => self.inner.facts(partition, from, limit).await,
        }
    }
}

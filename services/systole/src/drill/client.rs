//! Who sends the inputs of a cell and waits for their ends.

use std::sync::Arc;
use std::time::Duration;

use ports::journal::Journal;
use ports::working_memory::WorkingMemory;
use proto::ids::{AgentName, ThreadRef};
use proto::input::{InputBody, Message};
use tokio::time::{Instant, sleep};

use super::world::World;
use crate::failure::Failure;
use crate::follow::fold;
use crate::inputs;
use crate::nodes::kill::KillSwitch;
use crate::wiring::servers::Servers;

/// How long the threads may take to come to rest: a run is lost only when it does not end within a
/// time that no slow machine needs.
pub(crate) const REST: Duration = Duration::from_mins(5);
/// Between two looks.
pub(crate) const LOOK: Duration = Duration::from_millis(50);

/// A client of one cell's servers.
pub(crate) struct Client {
    servers: Servers,
}

impl Client {
    pub(crate) async fn connect(world: &World) -> Result<Self, Failure> {
        let servers = Servers::connect(&world.bus(), "drill", &KillSwitch::default()).await?;
        Ok(Self { servers })
    }

    pub(crate) fn working(&self) -> &Arc<dyn WorkingMemory> {
        &self.servers.ports().working
    }

    pub(crate) fn journal(&self) -> &Arc<dyn Journal> {
        &self.servers.ports().journal
    }

    /// Begins threads; the last of `words` and a number name what each is about.
    pub(crate) async fn send(
        &self,
        words: &str,
        threads: usize,
    ) -> Result<Vec<ThreadRef>, Failure> {
        let agent = AgentName::new("clerk").map_err(|error| Failure::other("a name", error))?;
        let mut places = Vec::new();
        for number in 0..threads {
            let ports = self.servers.ports();
            let place = inputs::place(ports.ids.thread_id(ports.clock.now()));
            let message = Message {
                text: format!("{words}n{number}"),
                agent: Some(agent.clone()),
                approve: Vec::new(),
                complexity: None,
            };
            self.input(&place, InputBody::Message(message)).await?;
            places.push(place);
        }
        Ok(places)
    }

    pub(crate) async fn input(&self, place: &ThreadRef, body: InputBody) -> Result<(), Failure> {
        let ids = self.servers.ports().ids.as_ref();
        inputs::append(self.journal(), ids, place, inputs::fresh_key(ids), body).await?;
        Ok(())
    }

    /// Waits for the end of every run; while the bus is away it goes on waiting.
    pub(crate) async fn until_rest(&self, places: &[ThreadRef]) {
        let latest = Instant::now() + REST;
        for place in places {
            while Instant::now() < latest {
                let thread = fold(self.journal(), place).await;
                if thread.is_ok_and(|thread| thread.is_at_rest() && thread.runs > 0) {
                    break;
                }
                sleep(LOOK).await;
            }
        }
    }
}

//! The ports of a distributed process: NATS is the journal and the queues, and working memory is
//! what the settings name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use admission::{Admissions, Limits, LocalCells};
pub(crate) use bus_nats::bare::Bare;
pub(crate) use bus_nats::watch::Seen;
use bus_nats::{ConnectError, Login, NatsBus, Settings};
use futures_util::stream::BoxStream;
use gateway::Gateway;
use model_openai::{Endpoint, EndpointState};
use planner::{AgentBook, Config, Planner};
use ports::BusError;
use ports::admission::SharedCells;
use ports::freezes::Freezes;
use ports::model::Model;
use ports::registry::Registry;
use ports::working_memory::WorkingMemory;
use proto::error_code::ErrorCode;
use proto::ids::Partition;
use proto::tool::Registration;
use service_runtime::health::Health;
use service_runtime::shutdown::Shutdown;
use service_runtime::tasks::TaskSet;
use tokio::time::{Instant, sleep};
use worker::{Worker, WorkerConfig};
use working_redis::RedisMemory;

use super::tools::tools_of;
use super::{ask, clock, host, ids, instance, planner_ports, worker_ports};
use crate::agent_files::LoadedTool;
use crate::arguments::Common;
use crate::engine::{Engine, Ports};
use crate::failure::{Exit, Failure};
use crate::models::ModelByAgent;
use crate::nodes::kill::KillSwitch;
use crate::nodes::kill_ports::with_switch;
use crate::nodes::memoryless::NoWorkingMemory;
use crate::nodes::settings::{BusLogin, BusSettings, ModelLimits, PlannerSettings, WorkerSettings};
use crate::nodes::skew::Skew;
use crate::settings::Environment;
use crate::staff::{Hands, Staff};

/// How long a turn waits for tools of its agent that nobody has offered yet.
const TOOLS_WAIT: Duration = Duration::from_secs(10);
/// How long tools stay on offer after their last worker: calls wait for the next one meanwhile.
const TOOLS_KEPT: Duration = Duration::from_mins(5);

/// Servers that this process is connected to.
pub(crate) struct Servers {
    bus: NatsBus,
    ports: Ports,
    /// Long-term memory, where the deployment has one.
    memory: Option<planner::Memory>,
    /// Where planners agree on limits; absent without Redis.
    cells: Option<Arc<dyn SharedCells>>,
    partitions: Vec<Partition>,
}

impl Servers {
    /// Connects. Servers that do not answer are waited for as long as the settings say; `name` is
    /// what their operators see.
    pub(crate) async fn connect(
        settings: &BusSettings,
        name: &str,
        switch: &KillSwitch,
    ) -> Result<Self, Failure> {
        let bus = Box::pin(NatsBus::connect(nats(settings, name))).await?;
        tracing::info!(version = bus.server_version(), servers = ?shown(settings), "NATS is there");
        let (working, cells) = working_memory(settings).await?;
        let ports = Ports {
            journal: Arc::new(bus.clone()),
            queues: Arc::new(bus.clone()),
            live: Arc::new(bus.clone()),
            working,
            artifacts: Arc::new(bus.clone()),
            registry: Arc::new(bus.clone()),
            freezes: Arc::new(bus.clone()),
            memory: None,
            clock: clock(),
            ids: ids(),
        };
        let partitions = (0..settings.partitions).map(Partition).collect();
        Ok(Self { bus, ports: with_switch(ports, switch), memory: None, cells, partitions })
    }

    /// The same with another clock.
    pub(crate) fn skewed(mut self, skew: Skew) -> Self {
        self.ports.clock = skew.on(self.ports.clock);
        self
    }

    /// The same with the long-term memory that the settings name.
    pub(crate) fn remembering(mut self, common: &Common) -> Self {
        let feed = Arc::new(self.bus.clone());
        self.memory = common.qdrant.as_ref().and_then(|_| super::memory::planners(common, feed));
        if let Some(memory) = &mut self.memory {
            memory.cells = self.cells.as_ref().map(Arc::clone);
        }
        self.ports.memory = self.memory.as_ref().map(super::memory::of_tools);
        self
    }

    /// They, as ports.
    pub(crate) fn ports(&self) -> &Ports {
        &self.ports
    }

    /// Records as they are stored from now on.
    pub(crate) async fn watch(
        &self,
        leaves: &[&str],
    ) -> Result<BoxStream<'static, Result<Seen, BusError>>, BusError> {
        self.bus.watch(leaves).await
    }

    /// A process without its bus is not ready.
    pub(crate) fn guard(&self, health: &Health) {
        let bus = self.bus.clone();
        health.needs(move || {
            (!bus.is_connected()).then(|| "the connection to NATS is lost".to_owned())
        });
    }

    /// A planner of these agents that asks one endpoint.
    pub(crate) fn planner(
        &self,
        settings: &PlannerSettings,
        book: AgentBook,
        metrics: planner::Metrics,
        tasks: &mut TaskSet,
    ) -> Result<Planner, Failure> {
        let (key, url) = (settings.api_key.as_deref(), settings.base_url.as_deref());
        let endpoint = super::named_endpoint(key, url, settings.profile)?;
        tracing::info!(base_url = endpoint.base_url, "the model's endpoint");
        let admissions = self.admissions(settings);
        tasks.start("admission", Arc::clone(&admissions).settle());
        let model = self.model(endpoint, &metrics, admissions)?;
        Ok(self.planner_asking(model, settings, book, metrics))
    }

    /// A planner of everybody here, each with their own model.
    pub(crate) async fn planner_of(
        &self,
        staff: &Staff<'_>,
        engine: &mut Engine,
        settings: &PlannerSettings,
        metrics: planner::Metrics,
    ) -> Result<Planner, Failure> {
        let admissions = self.admissions(settings);
        engine.start_background("admission", Arc::clone(&admissions).settle());
        let mut models = BTreeMap::new();
        for member in &staff.members {
            let (endpoint, words) = super::endpoint_of(engine, member).await?;
            tracing::info!(agent = %member.loaded.agent.name, "{words}");
            let model = self.model(endpoint, &metrics, Arc::clone(&admissions))?;
            models.insert(member.loaded.agent.name.clone(), model);
        }
        let book = AgentBook::new(staff.members.iter().map(|member| member.loaded.agent.clone()));
        let model = Arc::new(ModelByAgent::new(models));
        Ok(self.planner_asking(model, settings, book, metrics))
    }

    fn planner_asking(
        &self,
        model: Arc<dyn Model>,
        settings: &PlannerSettings,
        book: AgentBook,
        metrics: planner::Metrics,
    ) -> Planner {
        let config = Config {
            judges: true,
            memory: self.memory.clone(),
            tools_wait: TOOLS_WAIT,
            tools_kept: TOOLS_KEPT,
            metrics,
            partitions: self.partitions.clone(),
            max_turns_in_flight: settings.max_turns,
            keep_runs: settings.keep_runs,
            grace: settings.life.grace,
            ..Config::new(instance(self.ports.ids.as_ref(), "planner"))
        };
        Planner::new(planner_ports(&self.ports, model), book, config)
    }

    fn model(
        &self,
        endpoint: Endpoint,
        metrics: &planner::Metrics,
        admissions: Arc<Admissions>,
    ) -> Result<Arc<dyn Model>, Failure> {
        let metrics = metrics.clone();
        let model = ask(&self.ports, vec![endpoint])?.admitted_by(admissions);
        Ok(Arc::new(model.watched(move |endpoint, state| {
            metrics.endpoint(&without_login(endpoint), state == EndpointState::Rests);
        })))
    }

    /// Places for model requests: all planners share them, or this one alone where they share no
    /// memory.
    fn admissions(&self, settings: &PlannerSettings) -> Arc<Admissions> {
        let (clock, ids) = (Arc::clone(&self.ports.clock), Arc::clone(&self.ports.ids));
        let cells = match &self.cells {
            Some(cells) => Arc::clone(cells),
            None => Arc::new(LocalCells::new(Arc::clone(&clock))),
        };
        let ModelLimits { requests, tokens, open } = settings.limits;
        let limits = Limits {
            requests: requests.and_then(|most| u32::try_from(most).ok()),
            tokens,
            open: open.and_then(|most| usize::try_from(most).ok()),
        };
        let settings = admission::Settings { limits, ..admission::Settings::default() };
        Arc::new(Admissions::new(cells, clock, ids, settings))
    }

    /// A gateway to it.
    pub(crate) fn gateway(
        &self,
        settings: gateway::Settings,
        metrics: gateway::Metrics,
        health: Health,
        shutdown: Shutdown,
    ) -> Gateway {
        super::gateway(&self.ports, settings, metrics, health, shutdown)
    }

    /// A worker with these tools, which are on offer before it says that it is ready.
    pub(crate) async fn worker<'t>(
        &self,
        settings: &WorkerSettings,
        loaded: impl IntoIterator<Item = &'t LoadedTool>,
        environment: &Environment,
        metrics: worker::Metrics,
    ) -> Result<Worker, Failure> {
        let tools = tools_of(loaded, environment, &Hands::Real, &self.ports)?;
        // The tools of a server that does not answer are offered as soon as it does.
        if let Err(why) = tools.ask_servers().await {
            tracing::warn!("{why}");
        }
        let instance = instance(self.ports.ids.as_ref(), "worker");
        let offer = Registration { worker: instance.clone(), tools: tools.contracts() };
        self.offer(offer, settings.bus.wait).await?;
        for freeze in self.ports.freezes.frozen().await? {
            let words = freeze.target.words();
            tracing::warn!(by = freeze.by, reason = freeze.reason, "frozen is {words}");
        }
        let config = WorkerConfig {
            partitions: self.partitions.clone(),
            slots: settings.slots,
            // A dead worker's lease ends when its deliveries come again.
            lease: settings.bus.ack_wait,
            drain: settings.life.grace,
            freeze_lag: ports::freezes::LAG,
            metrics,
            ..WorkerConfig::new(instance, host())
        };
        Ok(Worker::new(worker_ports(&self.ports), tools, config))
    }
}

/// Between two tries to put tools on offer.
const OFFER_AGAIN: Duration = Duration::from_secs(1);

impl Servers {
    /// Puts tools on offer. A bus that cannot take the offer now, because it is full, is waited for as
    /// long as for one that is not there.
    async fn offer(&self, offer: Registration, wait: Duration) -> Result<(), BusError> {
        let latest = Instant::now() + wait;
        loop {
            match self.ports.registry.register(offer.clone()).await {
                Err(error) if error.is_transient() && Instant::now() < latest => {
                    tracing::warn!(%error, "the tools are not on offer yet; trying again");
                }
                offered => return offered,
            }
            sleep(OFFER_AGAIN).await;
        }
    }
}

/// What operators hold back in a deployment. It needs nothing but NATS.
pub(crate) async fn freezes(
    settings: &BusSettings,
) -> Result<(Arc<dyn Freezes>, Arc<dyn Registry>), Failure> {
    let bus = Box::pin(NatsBus::connect(nats(settings, "client"))).await?;
    Ok((Arc::new(bus.clone()), Arc::new(bus)))
}

/// An endpoint's address without what may be secret in it.
fn without_login(endpoint: &str) -> String {
    match endpoint.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.split_once('/').map_or(rest, |(host, _)| host);
            let secret = host.rfind('@').map_or(0, |at| at.saturating_add(1));
            format!("{scheme}://{}", rest.get(secret..).unwrap_or_default())
        }
        None => endpoint.to_owned(),
    }
}

/// Addresses without what may be secret in them.
pub(crate) fn shown(settings: &BusSettings) -> Vec<&str> {
    let without = |server: &'_ str| server.rsplit_once('@').map_or(0, |(secret, _)| secret.len());
    settings.servers.iter().map(|server| server.get(without(server)..).unwrap_or("")).collect()
}

pub(super) fn nats(settings: &BusSettings, name: &str) -> Settings {
    let login = match settings.login.clone() {
        BusLogin::None => Login::None,
        BusLogin::Password { user, password } => Login::Password { user, password },
        BusLogin::Token(token) => Login::Token(token),
        BusLogin::Credentials(file) => Login::Credentials(file),
    };
    Settings {
        servers: settings.servers.clone(),
        login,
        root_certificates: settings.root_certificates.clone(),
        require_tls: settings.require_tls,
        name: format!("systole {name}"),
        partitions: settings.partitions,
        replicas: settings.replicas,
        ack_wait: settings.ack_wait,
        connect: settings.wait,
        ..Settings::new(String::new())
    }
}

async fn working_memory(settings: &BusSettings) -> Result<Working, Failure> {
    let Some(wanted) = redis(settings) else {
        tracing::warn!(
            "there is no working memory (no --redis): repeatable calls may run twice at once, and \
             a turn that is taken over is sealed without its words"
        );
        return Ok((Arc::new(NoWorkingMemory), None));
    };
    let memory = RedisMemory::connect(wanted).await.map_err(|error| no_memory(&error))?;
    tracing::info!("Redis is there");
    let cells: Arc<dyn SharedCells> = Arc::new(memory.clone());
    Ok((Arc::new(memory), Some(cells)))
}

/// Working memory, and the cells in it.
type Working = (Arc<dyn WorkingMemory>, Option<Arc<dyn SharedCells>>);

/// How working memory is reached, if there is one.
pub(super) fn redis(settings: &BusSettings) -> Option<working_redis::Settings> {
    let redis = settings.redis.as_ref()?;
    Some(working_redis::Settings {
        user: redis.user.clone(),
        password: redis.password.clone(),
        root_certificates: redis.root_certificates.clone(),
        connect: settings.wait,
        ..working_redis::Settings::new(&*redis.address)
    })
}

fn no_memory(error: &BusError) -> Failure {
    let (code, advice) = if error.is_transient() {
        let advice = "Start Redis, name its address with --redis, or leave it out: nothing is lost \
                      without working memory.";
        (ErrorCode::WorkingMemoryUnreachable, advice)
    } else {
        let advice = "Check --redis, --redis-user, --redis-password and --redis-ca.";
        (ErrorCode::WorkingMemoryRefused, advice)
    };
    let lines = vec![error.to_string(), advice.to_owned()];
    Failure { exit: Exit::Store, code, lines }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let lines = vec![error.to_string(), error.advice().to_owned()];
        Self { exit: Exit::Store, code: error.code(), lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_shown_without_its_login() {
        for (endpoint, shown) in [
            ("https://api.example/v1", "https://api.example/v1"),
            ("http://ann:secret@host:1/v1?a=b@c", "http://host:1/v1?a=b@c"),
            ("somewhere", "somewhere"),
        ] {
            assert_eq!(without_login(endpoint), shown);
        }
    }
}

//! Which technology stands behind each port: the only place that names adapters. This file has the
//! embedded mode, [`servers`] the distributed one, [`doctor`] what is asked of either.

pub(crate) mod doctor;
pub(crate) mod endings;
pub(crate) mod memory;
pub(crate) mod rehearsals;
pub(crate) mod servers;
pub(crate) mod tools;

use self::endings::Endings;
use self::tools::tools_of;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use admission::{Admissions, LocalCells};
use bus_sqlite::{Durability, FreezeFolder, Options, SqliteBus};
use gateway::{Gateway, GatewayPorts};
use model_openai::{Endpoint, OpenAiModel};
use planner::{AgentBook, Config, Planner, PlannerPorts, SnapshotRule};
use planner_core::view::Spans;
use ports::BusError;
use ports::clock::{Clock, Ids};
use ports::freezes::Freezes;
use ports::journal::Journal;
use ports::model::Model;
use proto::agent::Profile;
use proto::ids::InstanceId;
use proto::tool::Registration;
use rehearsal::script::Script;
use rehearsal::server::Rehearsal;
use service_runtime::health::Health;
use service_runtime::shutdown::Shutdown;
use service_runtime::system::{SystemClock, SystemIds};
use tokio::net::TcpListener;
use worker::executor::group::{GroupFate, kill_group};
use worker::{Worker, WorkerConfig, WorkerPorts};

use crate::agent_files::LoadedAgent;
use crate::arguments::{Common, ModelChoice};
use crate::commands::freeze::words;
use crate::control;
use crate::engine::{Engine, GRACE, Ports};
use crate::failure::Failure;
use crate::models::ModelByAgent;
use crate::notices::Notices;
use crate::scope::{Scope, ScopedQueues};
use crate::staff::{Member, Staff};
use crate::watched::{Trouble, WatchedJournal};

/// The journal is at hand here, so only long threads are worth a snapshot.
const SNAPSHOTS: SnapshotRule = SnapshotRule { pause: Duration::from_secs(2), least: 32 };

/// The clock of this machine.
pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// The names of this machine.
pub(crate) fn ids() -> Arc<dyn Ids> {
    Arc::new(SystemIds)
}

/// A store that this process owns.
pub(crate) struct Store {
    bus: SqliteBus,
    ports: Ports,
    trouble: Trouble,
    scope: Scope,
    notices: Notices,
    memory: Option<planner::Memory>,
}

impl Store {
    /// Opens or creates the one that the command line names.
    pub(crate) fn open(common: &Common) -> Result<Self, BusError> {
        let mut store = Self::open_measured(common, true, |journal| journal)?;
        store.memory = memory::planners(common, Arc::new(store.bus.clone()));
        store.ports.memory = store.memory.as_ref().map(memory::of_tools);
        Ok(store)
    }

    /// The same with an ear on its journal. Unless it is `synced`, what it has answered survives the
    /// end of the process but not of the machine.
    pub(crate) fn open_measured(
        common: &Common,
        synced: bool,
        ear: impl FnOnce(Arc<dyn Journal>) -> Arc<dyn Journal>,
    ) -> Result<Self, BusError> {
        let (clock, ids) = (clock(), ids());
        let options = Options {
            durability: if synced { Durability::Full } else { Durability::Normal },
            max_file_bytes: common.store_max_bytes,
            ..Options::new(Arc::clone(&clock), Arc::clone(&ids))
        };
        let bus = SqliteBus::open(&common.store, options)?;
        let (trouble, scope) = (Trouble::none(), Scope::all());
        let journal = WatchedJournal::new(Arc::new(bus.clone()), trouble.clone(), scope.clone());
        let ports = Ports {
            journal: ear(Arc::new(journal)),
            queues: Arc::new(ScopedQueues::new(Arc::new(bus.clone()), scope.clone())),
            live: Arc::new(bus.clone()),
            working: Arc::new(bus.clone()),
            artifacts: Arc::new(bus.clone()),
            registry: Arc::new(bus.clone()),
            freezes: Arc::new(bus.clone()),
            memory: None,
            clock,
            ids,
        };
        Ok(Self { bus, ports, trouble, scope, notices: Notices::none(), memory: None })
    }

    /// It, as ports.
    pub(crate) fn ports(&self) -> &Ports {
        &self.ports
    }

    /// What operators hold back on it, in words.
    pub(crate) async fn frozen(&self) -> Vec<String> {
        let frozen = self.ports.freezes.frozen().await.unwrap_or_default();
        frozen.iter().map(words).collect()
    }

    /// The first trouble with it.
    pub(crate) fn trouble(&self) -> Trouble {
        self.trouble.clone()
    }

    /// The threads that planner and worker carry on with; all unless somebody says otherwise.
    pub(crate) fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Endings that somebody still has to be shown.
    pub(crate) fn endings(&self) -> Endings {
        Endings::new(self.bus.clone())
    }

    /// Removes all that is kept of a thread; answers how much of each kind went.
    pub(crate) async fn forget_thread(
        &self,
        thread: &proto::ids::ThreadRef,
    ) -> Result<Vec<(&'static str, u64)>, BusError> {
        self.bus.forget_thread(thread).await
    }

    /// Ends what dead processes left running: the lock proves that they are dead, so whatever
    /// carries one of their calls belongs to nobody. Answers whether all of it is certainly gone.
    async fn bury(&self) -> Result<bool, BusError> {
        let mut all_gone = true;
        for start in self.bus.previous_starts().await? {
            let Some(group) = start.process_group else { continue };
            let fate = kill_group(group, &start.tool_call_id);
            tracing::info!(group, call = %start.tool_call_id, ?fate, "a tool of a dead process");
            all_gone &= matches!(fate, GroupFate::Gone | GroupFate::Killed);
        }
        self.bus.forget_previous_starts().await?;
        Ok(all_gone)
    }

    /// Before the first worker: ends what dead processes left, and answers with the worker's name.
    /// The worker of a store has one name through all its lives while each earlier life is certainly
    /// over: then an attempt that it began and did not end needs no waiting for.
    pub(crate) async fn begin(&self) -> Result<InstanceId, BusError> {
        let all_gone = self.bury().await?;
        let stranger = || instance(self.ports.ids.as_ref(), "worker");
        Ok(if all_gone { named("worker-embedded") } else { stranger() })
    }

    /// Starts planner and worker; answers with the words for the model of each agent.
    pub(crate) async fn start(
        &self,
        engine: &mut Engine,
        staff: &Staff<'_>,
    ) -> Result<Vec<String>, Failure> {
        let worker = self.begin().await?;
        self.start_as(engine, staff, &self.ports, worker).await
    }

    /// The same for a worker with a name, over ports of its own. Workers that live at once may have
    /// one name if no thread has calls for two of them.
    pub(crate) async fn start_as(
        &self,
        engine: &mut Engine,
        staff: &Staff<'_>,
        ports: &Ports,
        instance: InstanceId,
    ) -> Result<Vec<String>, Failure> {
        let (mut models, mut words) = (BTreeMap::new(), Vec::new());
        let admissions = self.admissions(engine);
        for member in &staff.members {
            let (endpoint, said) = endpoint_of(engine, member).await?;
            let (model, notices) = (ask(ports, vec![endpoint])?, self.notices.clone());
            let model = model.admitted_by(Arc::<Admissions>::clone(&admissions));
            // Its silence is told to whoever watches.
            let model: Arc<dyn Model> = Arc::new(model.telling(move |words| notices.say(words)));
            models.insert(member.loaded.agent.name.clone(), model);
            words.push(said);
        }
        let tools = tools_of(staff.tools()?, staff.environment, &staff.hands, ports)?;
        tools.ask_servers().await.map_err(Failure::server)?;
        // Offered before the first turn asks what there is.
        let offer = Registration { worker: instance.clone(), tools: tools.contracts() };
        ports.registry.register(offer).await?;
        let config = WorkerConfig { grace: GRACE, ..WorkerConfig::new(instance, host()) };
        let worker = Worker::new(worker_ports(ports), tools, config);
        let shutdown = engine.shutdown();
        engine.start("worker", async move {
            worker.run(shutdown).await;
            Ok(())
        });
        let agents = staff.members.iter().map(|member| member.loaded.agent.clone());
        let model = staff.hands.steer(Arc::new(ModelByAgent::new(models)), ports);
        self.start_planner(engine, ports, model, AgentBook::new(agents));
        Ok(words)
    }

    /// Starts a planner that ends runs and begins none.
    pub(crate) async fn start_planner_alone(&self, engine: &mut Engine) -> Result<(), Failure> {
        self.bury().await?;
        // Without an agent no turn begins, so nobody is asked.
        let model = Arc::new(ask(&self.ports, Vec::new())?);
        self.start_planner(engine, &self.ports, model, AgentBook::default());
        Ok(())
    }

    fn start_planner(
        &self,
        engine: &mut Engine,
        ports: &Ports,
        model: Arc<dyn Model>,
        book: AgentBook,
    ) {
        let ports = planner_ports(ports, model);
        let instance = instance(self.ports.ids.as_ref(), "planner");
        // A run of another agent waits for that agent's command, however long that takes.
        let spans = Spans { agent_wait: Duration::MAX, ..Spans::default() };
        let memory = self.memory.clone();
        let config =
            Config { grace: GRACE, spans, snapshots: SNAPSHOTS, memory, ..Config::new(instance) };
        let planner = Planner::new(ports, book, config);
        engine.start("planner", planner.run(engine.shutdown()));
    }

    /// Its models are asked as often as they take it; what they take is learned by this process.
    fn admissions(&self, engine: &mut Engine) -> Arc<Admissions> {
        let (clock, ids) = (Arc::clone(&self.ports.clock), Arc::clone(&self.ports.ids));
        let cells = Arc::new(LocalCells::new(Arc::clone(&clock)));
        let settings = admission::Settings::default();
        let admissions = Arc::new(Admissions::new(cells, clock, ids, settings));
        engine.start_background("admission", Arc::clone(&admissions).settle());
        admissions
    }

    /// What its parts say to whoever watches.
    pub(crate) fn notices(&self) -> Notices {
        self.notices.clone()
    }

    /// Writes what waits and lets go of the file.
    pub(crate) async fn close(&self) -> Result<(), BusError> {
        self.bus.close().await
    }
}

/// Where the model of an agent answers, with the words for it. A rehearsal is served over HTTP inside
/// this process, so that the same client asks either.
async fn endpoint_of(
    engine: &mut Engine,
    member: &Member<'_>,
) -> Result<(Endpoint, String), Failure> {
    match member.model {
        ChosenModel::Endpoint(endpoint) => {
            let agent = &member.loaded.agent;
            let price = match agent.unpriced().as_slice() {
                [] => String::new(),
                models => {
                    let models = models.join(", ");
                    format!(" (no price of {models} is known: tokens count, money does not)")
                }
            };
            let words = format!("model {} at {}{price}", agent.model, endpoint.base_url);
            Ok((endpoint.as_ref().clone(), words))
        }
        ChosenModel::Rehearsal(rehearsal, file, hint) => {
            let url = serve(engine, rehearsal.clone()).await;
            let url = url.map_err(|error| Failure::other("the rehearsal's server", error))?;
            Ok((Endpoint::new(url, ""), format!("rehearsal {file} ({hint})")))
        }
    }
}

/// A gateway to these ports.
pub(crate) fn gateway(
    world: &Ports,
    settings: gateway::Settings,
    metrics: gateway::Metrics,
    health: Health,
    shutdown: Shutdown,
) -> Gateway {
    let ports = GatewayPorts {
        journal: Arc::clone(&world.journal),
        live: Arc::clone(&world.live),
        working: Arc::clone(&world.working),
        clock: Arc::clone(&world.clock),
        ids: Arc::clone(&world.ids),
    };
    let memory = world.memory.as_ref().map(|memory| Arc::clone(&memory.recall));
    Gateway::new(ports, settings, metrics, health, shutdown).remembering(memory)
}

/// The ports of a planner.
fn planner_ports(ports: &Ports, model: Arc<dyn Model>) -> PlannerPorts {
    PlannerPorts {
        journal: Arc::clone(&ports.journal),
        queues: Arc::clone(&ports.queues),
        live: Arc::clone(&ports.live),
        working: Arc::clone(&ports.working),
        artifacts: Arc::clone(&ports.artifacts),
        registry: Arc::clone(&ports.registry),
        model,
        clock: Arc::clone(&ports.clock),
        ids: Arc::clone(&ports.ids),
    }
}

/// The ports of a worker.
fn worker_ports(ports: &Ports) -> WorkerPorts {
    WorkerPorts {
        journal: Arc::clone(&ports.journal),
        queues: Arc::clone(&ports.queues),
        live: Arc::clone(&ports.live),
        working: Arc::clone(&ports.working),
        artifacts: Arc::clone(&ports.artifacts),
        registry: Arc::clone(&ports.registry),
        freezes: Arc::clone(&ports.freezes),
        clock: Arc::clone(&ports.clock),
        ids: Arc::clone(&ports.ids),
    }
}

/// A model behind addresses.
fn ask(ports: &Ports, endpoints: Vec<Endpoint>) -> Result<OpenAiModel, Failure> {
    let (clock, ids) = (Arc::clone(&ports.clock), Arc::clone(&ports.ids));
    OpenAiModel::new(endpoints, clock, ids)
        .map_err(|error| Failure::other("the model's client", error))
}

/// The endpoint that key and address name.
fn named_endpoint(
    api_key: Option<&str>,
    base_url: Option<&str>,
    profile: Option<Profile>,
) -> Result<Endpoint, Failure> {
    let endpoint = Endpoint::from_env(&|name| match name {
        "OPENAI_API_KEY" => api_key.map(str::to_owned),
        "OPENAI_BASE_URL" => base_url.map(str::to_owned),
        _ => None,
    });
    let endpoint = endpoint.map_err(|error| Failure::input(error.to_string()))?;
    Ok(Endpoint { profile, ..endpoint })
}

/// How to ask a real model where none is set.
const WITHOUT_KEY: &str = "OPENAI_API_KEY asks a real model";
/// The same where one is.
const WITH_KEY: &str = "a real model is asked without --rehearsed";

/// Which model answers.
pub(crate) enum ChosenModel {
    /// One behind an address.
    Endpoint(Box<Endpoint>),
    /// The agent's rehearsal, from this file, with how to ask a real model.
    Rehearsal(Rehearsal, String, &'static str),
}

/// The model behind an address, which wants no key.
pub(crate) fn endpoint(url: &str) -> ChosenModel {
    ChosenModel::Endpoint(Box::new(Endpoint::new(url, "")))
}

/// A rehearsal without its pauses.
pub(crate) fn rehearsed(script: &Script) -> ChosenModel {
    let rehearsal = Rehearsal::new(script.clone()).at_speed(f64::INFINITY);
    ChosenModel::Rehearsal(rehearsal, script.file.clone(), WITHOUT_KEY)
}

/// The endpoint that the settings name, or the agent's rehearsal.
pub(crate) fn choose_model(
    loaded: &LoadedAgent,
    choice: &ModelChoice,
) -> Result<ChosenModel, Failure> {
    let has_endpoint = choice.api_key().is_some() || choice.base_url().is_some();
    if has_endpoint && !choice.rehearsed {
        let endpoint = named_endpoint(choice.api_key(), choice.base_url(), choice.profile())?;
        return Ok(ChosenModel::Endpoint(Box::new(endpoint)));
    }
    let Some(text) = &loaded.rehearsal else {
        return Err(Failure::input(
            "there is no model: set OPENAI_API_KEY (and OPENAI_BASE_URL for other endpoints than \
             OpenAI's), or put a rehearsal.yaml beside the agent's file",
        ));
    };
    let rehearsal = rehearsals::of_agent(loaded, text, choice.pace)?;
    let hint = if has_endpoint { WITH_KEY } else { WITHOUT_KEY };
    Ok(ChosenModel::Rehearsal(rehearsal, text.file.clone(), hint))
}

/// Serves a rehearsal on a free port of this machine; answers with its address.
async fn serve(engine: &mut Engine, rehearsal: Rehearsal) -> io::Result<String> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let address = listener.local_addr()?;
    engine.start_background("rehearsal", async move {
        if let Err(error) = rehearsal.serve(listener, std::future::pending()).await {
            tracing::warn!(%error, "the rehearsal stopped");
        }
    });
    Ok(format!("http://{address}/v1"))
}

/// The name of this machine.
pub(crate) fn host() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() { "localhost".to_owned() } else { name.to_owned() }
}

/// This life of this process, in one of its roles.
fn instance(ids: &dyn Ids, role: &str) -> InstanceId {
    named(&format!("{role}-{}", ids.nonce()))
}

fn named(name: &str) -> InstanceId {
    InstanceId::new(name).unwrap_or_else(|_| unreachable!("letters, digits and a hyphen"))
}

/// One TLS provider for the whole program.
pub(crate) fn install_tls() {
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::debug!("a TLS provider was installed before");
    }
}

/// What operators hold back on a store, whoever owns it.
pub(crate) fn freezes_of(store: &Path) -> Arc<dyn Freezes> {
    Arc::new(FreezeFolder::of(store))
}

/// Whether a process runs on the store. One that cannot be asked is told by its lock.
pub(crate) async fn is_alive(store: &Path) -> bool {
    let store = crate::launch::real(store);
    match control::status(&store).await {
        Ok(Some(_)) | Err(_) => true,
        Ok(None) => bus_sqlite::is_owned(&store).unwrap_or(true),
    }
}

/// A store that another process may own, for reading.
pub(crate) fn read_store(path: &Path) -> Result<Arc<dyn Journal>, BusError> {
    Ok(Arc::new(SqliteBus::open_read_only(path, clock())?))
}

//! `systole dev --nats …`: agents and tools of this machine as parts of a deployment, in one process.

use std::time::Duration;

use futures_util::future::{BoxFuture, FutureExt as _, join_all};
use ports::BusError;
use service_runtime::shutdown::Shutdown;
use service_runtime::tasks::TaskSet;

use super::crew::Crew;
use crate::arguments::{Dev, ModelChoice, NodeRole};
use crate::commands::Context;
use crate::engine::Engine;
use crate::failure::{Exit, Failure};
use crate::nodes::kill::KillSwitch;
use crate::nodes::process::Process;
use crate::nodes::settings::{DevSettings, PlannerSettings};
use crate::nodes::sources;
use crate::watched::Trouble;
use crate::wiring::servers::Servers;

/// What runs until the end is asked for.
type Service = BoxFuture<'static, Result<(), BusError>>;

/// Joins, and stays until it is told to stop.
pub(super) async fn dev(context: &Context, dev: &Dev) -> Result<Exit, Failure> {
    if dev.dry_run {
        return Err(Failure::input("a deployment has no dry run")
            .and("Leave out --dry-run, or name no deployment."));
    }
    let found = sources::find(dev.bus.config.as_deref(), &context.environment, &dev.given())?;
    let settings = found.read(DevSettings::read)?;
    let dev = &asking(dev, &settings.planner);
    let works = dev.is(NodeRole::Planner) || dev.is(NodeRole::Worker);
    let crew = if works { Some(Crew::read(context, dev, &[]).0?) } else { None };
    Joined { context, dev, settings, crew }.run().await
}

/// The same with the model that the settings name: they may come from a file.
fn asking(dev: &Dev, settings: &PlannerSettings) -> Dev {
    let own = dev.model.clone();
    let model = ModelChoice {
        model: own.model.or_else(|| settings.model.clone()),
        api_key: own.api_key.or_else(|| settings.api_key.clone()),
        base_url: own.base_url.or_else(|| settings.base_url.clone()),
        profile: own.profile.or_else(|| settings.profile.map(|profile| profile.to_string())),
        prices: own.prices.or_else(|| settings.prices.clone()),
        ..own
    };
    Dev { model, ..dev.clone() }
}

struct Joined<'a> {
    context: &'a Context,
    dev: &'a Dev,
    settings: DevSettings,
    /// Absent where nobody plans or works.
    crew: Option<Crew>,
}

/// What the parts count.
#[derive(Default)]
struct Counts {
    planner: planner::Metrics,
    worker: worker::Metrics,
    gateway: gateway::Metrics,
}

impl Joined<'_> {
    async fn run(&self) -> Result<Exit, Failure> {
        let (settings, counts) = (&self.settings, Counts::default());
        let switch = KillSwitch::of(&self.context.environment)?;
        let mut process = Process::start(settings.planner.life).await?;
        let has_gateway = self.dev.is(NodeRole::Gateway) && settings.planner.life.listen.is_some();
        let listener = if has_gateway { Some(process.listener()?) } else { None };
        // Until there is more to serve, health is served on the same address.
        let mut waiting = TaskSet::new();
        process.serve(&mut waiting, counts.of(self.dev));
        let connecting = Servers::connect(&settings.planner.bus, "dev", &switch);
        let connected = process.unless_asked(connecting).await?;
        let Some(servers) = connected else { return Ok(Exit::Interrupted) };
        servers.guard(&process.health);
        let (shutdown, mut engine) = (Shutdown::new(), Engine::new(Trouble::none()));
        let mut services = self.at_work(&servers, &mut engine, &counts, &shutdown).await?;
        if let Some(listener) = listener {
            waiting.finish(Duration::ZERO).await;
            let health = process.health.clone();
            let (own, metrics) = (settings.gateway.clone(), counts.gateway.clone());
            let gateway = servers.gateway(own, metrics, health, shutdown.clone());
            services.push(gateway.showing(counts.of(self.dev)).serve(listener).boxed());
        }
        let ended = process.run(together(services, shutdown.clone()), shutdown).await;
        engine.stop().await;
        ended
    }

    /// Planner and worker, as far as they are wanted.
    async fn at_work(
        &self,
        servers: &Servers,
        engine: &mut Engine,
        counts: &Counts,
        shutdown: &Shutdown,
    ) -> Result<Vec<Service>, Failure> {
        let mut services: Vec<Service> = Vec::new();
        let Some(crew) = &self.crew else { return Ok(services) };
        let staff = crew.staff(self.context, self.dev);
        if self.dev.is(NodeRole::Worker) {
            let (settings, environment) = (&self.settings.worker, &self.context.environment);
            let metrics = counts.worker.clone();
            let worker = servers.worker(settings, staff.tools()?, environment, metrics).await?;
            services.push(worker.run(shutdown.clone()).map(Ok).boxed());
        }
        if self.dev.is(NodeRole::Planner) {
            let (settings, metrics) = (&self.settings.planner, counts.planner.clone());
            let planner = servers.planner_of(&staff, engine, settings, metrics).await?;
            services.push(planner.run(shutdown.clone()).boxed());
        }
        Ok(services)
    }
}

/// All of them, until the end; one that fails has the others finish or hand back what they hold.
async fn together(services: Vec<Service>, shutdown: Shutdown) -> Result<(), BusError> {
    let watched = services.into_iter().map(|service| {
        let shutdown = shutdown.clone();
        async move {
            let ended = service.await;
            if ended.is_err() {
                shutdown.drain();
            }
            ended
        }
    });
    join_all(watched).await.into_iter().collect()
}

impl Counts {
    /// What the parts of this process count, apart from the gateway's own.
    fn of(&self, dev: &Dev) -> Vec<prometheus::Registry> {
        let planner = dev.is(NodeRole::Planner).then(|| self.planner.registry().clone());
        let worker = dev.is(NodeRole::Worker).then(|| self.worker.registry().clone());
        planner.into_iter().chain(worker).collect()
    }
}

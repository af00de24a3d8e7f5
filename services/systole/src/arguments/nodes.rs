//! The flags of distributed processes. They are read as text, so that what is wrong with them is told
//! together with what is wrong elsewhere.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::clients::{Send, Tail};
use super::drill::Drill;
use crate::settings::Environment;

/// Processes and clients of a distributed deployment.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    /// Runs a planner of a distributed deployment.
    Planner(PlannerFlags),
    /// Runs a worker of a distributed deployment.
    Worker(WorkerFlags),
    /// Serves a distributed deployment over HTTP.
    Gateway(GatewayFlags),
    /// Sends an input to a distributed deployment.
    Send(Send),
    /// Shows a thread of a distributed deployment until its run is over.
    Tail(Tail),
    /// Tells what this deployment, or this store, really guarantees.
    #[command(
        after_help = "Examples:\n  systole doctor\n  systole doctor --nats nats://n1:4222 --monitor http://n1:8222"
    )]
    Doctor(DoctorFlags),
    /// Ends real processes at every point of their work and shows what is left of the promises.
    Drill(Drill),
}

impl NodeCommand {
    /// Whether it is a process that operators watch.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self, Self::Planner(_) | Self::Worker(_) | Self::Gateway(_))
    }

    /// Whether it prints for programs.
    pub(crate) fn wants_json(&self) -> bool {
        match self {
            Self::Send(send) => send.json,
            Self::Tail(tail) => tail.json,
            Self::Drill(drill) => drill.json,
            Self::Doctor(doctor) => doctor.json,
            Self::Planner(_) | Self::Worker(_) | Self::Gateway(_) => false,
        }
    }
}

/// A setting's name and what the command line says.
pub(crate) type Given = (&'static str, Option<String>);

/// Where the servers are and how this process lives.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct BusFlags {
    /// A YAML file with settings; variables win over it, flags over both.
    #[arg(long, env = "SYSTOLE_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// NATS servers, `nats://host:port` or `tls://host:port`, separated by commas.
    #[arg(long, value_name = "URLS")]
    pub(crate) nats: Option<String>,
    /// The user at NATS.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) nats_user: Option<String>,
    /// Its password; the variable `SYSTOLE_NATS_PASSWORD` keeps it out of process lists.
    #[arg(long, value_name = "WORD", hide_short_help = true)]
    pub(crate) nats_password: Option<String>,
    /// A token, in place of user and password.
    #[arg(long, value_name = "TOKEN", hide_short_help = true)]
    pub(crate) nats_token: Option<String>,
    /// A NATS credentials file, in place of user and password.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) nats_credentials: Option<String>,
    /// Certificates to trust besides the system's.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) nats_ca: Option<String>,
    /// Whether unencrypted connections are refused.
    #[arg(long, value_name = "BOOL", num_args = 0..=1, default_missing_value = "true", hide_short_help = true)]
    pub(crate) nats_tls: Option<String>,
    /// Working memory, `redis://host:port`, or `rediss://` for TLS; without it there is none.
    #[arg(long, value_name = "URL")]
    pub(crate) redis: Option<String>,
    /// The user at Redis.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) redis_user: Option<String>,
    /// Its password; the variable `SYSTOLE_REDIS_PASSWORD` keeps it out of process lists.
    #[arg(long, value_name = "WORD", hide_short_help = true)]
    pub(crate) redis_password: Option<String>,
    /// Certificates to trust in place of the system's.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) redis_ca: Option<String>,
    /// How many streams share the threads; the same in every process.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) partitions: Option<String>,
    /// Copies of each stream.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) replicas: Option<String>,
    /// After how many silent seconds a process counts as gone.
    #[arg(long, value_name = "S", hide_short_help = true)]
    pub(crate) ack_wait_s: Option<String>,
    /// How long to wait for servers at start.
    #[arg(long, value_name = "S", hide_short_help = true)]
    pub(crate) wait_s: Option<String>,
}

impl BusFlags {
    /// Whether a deployment is meant, and not the store of this machine.
    pub(crate) fn names_one(&self, environment: &Environment) -> bool {
        self.given().iter().any(|(_, value)| value.is_some())
            || self.config.is_some()
            || environment.text("SYSTOLE_NATS").is_some_and(|value| !value.is_empty())
    }

    /// What was given.
    pub(crate) fn given(&self) -> Vec<Given> {
        vec![
            ("nats", self.nats.clone()),
            ("nats_user", self.nats_user.clone()),
            ("nats_password", self.nats_password.clone()),
            ("nats_token", self.nats_token.clone()),
            ("nats_credentials", self.nats_credentials.clone()),
            ("nats_ca", self.nats_ca.clone()),
            ("nats_tls", self.nats_tls.clone()),
            ("redis", self.redis.clone()),
            ("redis_user", self.redis_user.clone()),
            ("redis_password", self.redis_password.clone()),
            ("redis_ca", self.redis_ca.clone()),
            ("partitions", self.partitions.clone()),
            ("replicas", self.replicas.clone()),
            ("ack_wait_s", self.ack_wait_s.clone()),
            ("wait_s", self.wait_s.clone()),
        ]
    }
}

/// How a process of its own lives.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct LifeFlags {
    /// Where `/metrics`, `/livez` and `/readyz` are served; port 0 takes a free one, `off` none.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// How long work that is under way may take once SIGTERM asked for the end.
    #[arg(long, value_name = "S")]
    pub(crate) grace_s: Option<String>,
}

impl LifeFlags {
    /// What was given.
    pub(crate) fn given(&self) -> Vec<Given> {
        vec![("listen", self.listen.clone()), ("grace_s", self.grace_s.clone())]
    }
}

/// `systole planner`.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlannerFlags {
    /// A folder with agents: `agent.yaml` in it or one level below; or one agent's file.
    #[arg(long, value_name = "DIR")]
    pub(crate) agents: Option<String>,
    /// The model to ask for, in place of those in the agents' files.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The model's endpoint; its key comes from `OPENAI_API_KEY`.
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// What the endpoint accepts, such as `mistral` or `llama.cpp`; guessed from its address.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) profile: Option<String>,
    /// Model requests open at once.
    #[arg(long, value_name = "N")]
    pub(crate) max_turns: Option<String>,
    /// Requests a minute that each model takes, shared by all planners; 0: it is learned.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) model_requests_per_min: Option<String>,
    /// Tokens a minute that each model takes, both ways; 0: no limit.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) model_tokens_per_min: Option<String>,
    /// Requests of each model that may be open at once, of all planners; 0: no limit.
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub(crate) model_open_requests: Option<String>,
    /// A file with what models cost; the agents' own files win over it.
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<String>,
    /// Runs of a thread whose records stay at least; 0 keeps all.
    #[arg(long, value_name = "N")]
    pub(crate) keep_runs: Option<String>,
    /// The servers.
    #[command(flatten)]
    pub(crate) bus: BusFlags,
    /// The process.
    #[command(flatten)]
    pub(crate) life: LifeFlags,
}

impl PlannerFlags {
    /// What was given.
    pub(crate) fn given(&self) -> Vec<Given> {
        let own = vec![
            ("agents", self.agents.clone()),
            ("model", self.model.clone()),
            ("base_url", self.base_url.clone()),
            ("profile", self.profile.clone()),
            ("max_turns", self.max_turns.clone()),
            ("model_requests_per_min", self.model_requests_per_min.clone()),
            ("model_tokens_per_min", self.model_tokens_per_min.clone()),
            ("model_open_requests", self.model_open_requests.clone()),
            ("prices", self.prices.clone()),
            ("keep_runs", self.keep_runs.clone()),
        ];
        [own, self.bus.given(), self.life.given()].concat()
    }
}

/// `systole worker`.
#[derive(Clone, Debug, Args)]
pub(crate) struct WorkerFlags {
    /// A manifest with tools; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Vec<String>,
    /// Calls worked on at once.
    #[arg(long, value_name = "N")]
    pub(crate) slots: Option<String>,
    /// The servers.
    #[command(flatten)]
    pub(crate) bus: BusFlags,
    /// The process.
    #[command(flatten)]
    pub(crate) life: LifeFlags,
}

impl WorkerFlags {
    /// What was given.
    pub(crate) fn given(&self) -> Vec<Given> {
        let tools = (!self.tools.is_empty()).then(|| self.tools.join(","));
        let own = vec![("tools", tools), ("slots", self.slots.clone())];
        [own, self.bus.given(), self.life.given()].concat()
    }
}

/// `systole gateway`.
#[derive(Clone, Debug, Args)]
pub(crate) struct GatewayFlags {
    /// A file with API keys, a line `tenant=key` each; without it only this machine is served.
    #[arg(long, value_name = "FILE")]
    pub(crate) keys: Option<String>,
    /// The servers.
    #[command(flatten)]
    pub(crate) bus: BusFlags,
    /// The process.
    #[command(flatten)]
    pub(crate) life: LifeFlags,
}

impl GatewayFlags {
    /// What was given.
    pub(crate) fn given(&self) -> Vec<Given> {
        let own = vec![("keys", self.keys.clone())];
        [own, self.bus.given(), self.life.given()].concat()
    }
}

/// `systole doctor`.
#[derive(Clone, Debug, Args)]
pub(crate) struct DoctorFlags {
    /// The monitoring address of a NATS server; once for each server.
    #[arg(long, value_name = "URL")]
    pub(crate) monitor: Vec<String>,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The servers; without them the store in one file is judged.
    #[command(flatten)]
    pub(crate) bus: BusFlags,
}

impl DoctorFlags {
    /// What was given.
    pub(crate) fn given(&self) -> Vec<Given> {
        let monitor = (!self.monitor.is_empty()).then(|| self.monitor.join(","));
        [vec![("monitor", monitor)], self.bus.given()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::catalogue::SETTINGS;

    #[test]
    fn every_setting_but_the_key_has_a_flag_and_every_flag_a_setting() {
        let bus = BusFlags::default();
        let life = LifeFlags::default();
        let planner = PlannerFlags {
            agents: None,
            model: None,
            base_url: None,
            profile: None,
            max_turns: None,
            model_requests_per_min: None,
            model_tokens_per_min: None,
            model_open_requests: None,
            prices: None,
            keep_runs: None,
            bus: bus.clone(),
            life: life.clone(),
        };
        let gateway = GatewayFlags { keys: None, bus: bus.clone(), life: life.clone() };
        let doctor = DoctorFlags { monitor: Vec::new(), json: false, bus: bus.clone() };
        let worker = WorkerFlags { tools: Vec::new(), slots: None, bus, life };
        let given = [planner.given(), worker.given(), gateway.given(), doctor.given()];
        let mut named: Vec<&str> = given.concat().iter().map(|given| given.0).collect();
        named.sort_unstable();
        named.dedup();
        let mut all: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        all.retain(|name| *name != "api_key");
        all.sort_unstable();
        assert_eq!(named, all);
    }
}

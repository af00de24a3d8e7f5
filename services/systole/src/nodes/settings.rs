//! Settings as values. Whatever is wrong is told at once, and contradictions refuse the start.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use definitions::problem::Problem;
use gateway::ApiKey;
use proto::agent::Profile;

use super::catalogue::{flag, setting};
use super::sources::Sources;
use crate::inputs::tenant;

/// How this process proves to NATS who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BusLogin {
    None,
    Password { user: String, password: String },
    Token(String),
    Credentials(PathBuf),
}

/// Where working memory is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RedisSettings {
    pub(crate) address: String,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) root_certificates: Option<PathBuf>,
}

/// Where the servers are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BusSettings {
    pub(crate) servers: Vec<String>,
    pub(crate) login: BusLogin,
    pub(crate) root_certificates: Option<PathBuf>,
    pub(crate) require_tls: bool,
    /// Absent: there is no working memory.
    pub(crate) redis: Option<RedisSettings>,
    pub(crate) partitions: u16,
    pub(crate) replicas: usize,
    pub(crate) ack_wait: Duration,
    pub(crate) wait: Duration,
}

/// How a process of its own lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Life {
    /// Absent: nothing is served.
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) grace: Duration,
}

/// What each model at each endpoint allows; absent: it is learned from refusals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelLimits {
    pub(crate) requests: Option<u64>,
    pub(crate) tokens: Option<u64>,
    pub(crate) open: Option<u64>,
}

/// Of a planner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlannerSettings {
    pub(crate) bus: BusSettings,
    pub(crate) life: Life,
    pub(crate) agents: PathBuf,
    pub(crate) model: Option<String>,
    pub(crate) base_url: Option<String>,
    /// What the endpoint accepts; absent: the agent's word, or what the address suggests.
    pub(crate) profile: Option<Profile>,
    pub(crate) api_key: Option<String>,
    /// What each model allows, shared by all planners.
    pub(crate) limits: ModelLimits,
    /// A file with what models cost.
    pub(crate) prices: Option<PathBuf>,
    pub(crate) max_turns: usize,
    /// Runs of a thread whose records stay at least; absent: all.
    pub(crate) keep_runs: Option<u32>,
}

/// Of a worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkerSettings {
    pub(crate) bus: BusSettings,
    pub(crate) life: Life,
    pub(crate) tools: Vec<PathBuf>,
    pub(crate) slots: usize,
}

/// Of a gateway.
#[derive(Clone, Debug)]
pub(crate) struct GatewaySettings {
    pub(crate) bus: BusSettings,
    pub(crate) life: Life,
    pub(crate) gateway: gateway::Settings,
}

/// Of a process that is several parts of a deployment, with what it finds on this machine.
#[derive(Clone, Debug)]
pub(crate) struct DevSettings {
    pub(crate) planner: PlannerSettings,
    pub(crate) worker: WorkerSettings,
    pub(crate) gateway: gateway::Settings,
}

impl DevSettings {
    /// Reads them; `problems` are those of the file.
    pub(crate) fn read(sources: &Sources, problems: &[Problem]) -> Result<Self, Problems> {
        let mut reader = Reader::new(sources, problems);
        let (bus, life) = (reader.bus(), reader.life("127.0.0.1:7070"));
        let gateway = reader.gateway(&bus, life);
        let (planner_bus, slots) = (bus.clone(), reader.whole("slots", 1, 10_000));
        let planner = reader.planner(planner_bus, life);
        let slots = usize::try_from(slots).unwrap_or(usize::MAX);
        let worker = WorkerSettings { bus, life, tools: Vec::new(), slots };
        reader.finish(Self { planner, worker, gateway })
    }
}

/// Every problem, one a line.
pub(crate) type Problems = Vec<String>;

impl PlannerSettings {
    /// Reads them; `problems` are those of the file.
    pub(crate) fn read(sources: &Sources, problems: &[Problem]) -> Result<Self, Problems> {
        let mut reader = Reader::new(sources, problems);
        let (bus, life) = (reader.bus(), reader.life("127.0.0.1:7071"));
        let agents = reader.required("agents", "a folder with agents, such as ./agents");
        let (base_url, api_key) = (reader.text("base_url"), reader.text("api_key"));
        if base_url.is_none() && api_key.is_none() {
            reader.problem(
                "base_url",
                "an endpoint, or a key in OPENAI_API_KEY",
                "neither",
                "name the model's endpoint; `systole rehearse serve FILE` is one",
            );
        }
        let agents = PathBuf::from(agents);
        let planner = reader.planner(bus, life);
        reader.finish(Self { agents, ..planner })
    }
}

impl WorkerSettings {
    /// Reads them; `problems` are those of the file.
    pub(crate) fn read(sources: &Sources, problems: &[Problem]) -> Result<Self, Problems> {
        let mut reader = Reader::new(sources, problems);
        let (bus, life) = (reader.bus(), reader.life("127.0.0.1:7072"));
        let tools = reader.required("tools", "a manifest, such as tools.yaml");
        let slots = reader.whole("slots", 1, 10_000);
        let tools = tools.split(',').map(|file| PathBuf::from(file.trim())).collect();
        let slots = usize::try_from(slots).unwrap_or(usize::MAX);
        reader.finish(Self { bus, life, tools, slots })
    }
}

impl GatewaySettings {
    /// Reads them; `problems` are those of the file.
    pub(crate) fn read(sources: &Sources, problems: &[Problem]) -> Result<Self, Problems> {
        let mut reader = Reader::new(sources, problems);
        let (bus, life) = (reader.bus(), reader.life("127.0.0.1:7070"));
        let gateway = reader.gateway(&bus, life);
        if reader.text("listen").is_some_and(|text| text == "off") {
            let fix = "leave it out, or name another address";
            reader.problem("listen", "an address", "`off`", fix);
        }
        reader.finish(Self { bus, life, gateway })
    }
}

/// Of `doctor`.
#[derive(Clone, Debug)]
pub(crate) struct DoctorSettings {
    pub(crate) bus: BusSettings,
    /// Monitoring addresses of the servers of the bus.
    pub(crate) monitors: Vec<String>,
}

impl DoctorSettings {
    /// Reads them; `problems` are those of the file.
    pub(crate) fn read(sources: &Sources, problems: &[Problem]) -> Result<Self, Problems> {
        let mut reader = Reader::new(sources, problems);
        let bus = reader.bus();
        let text = reader.text("monitor").unwrap_or_default();
        let given = text.split(',').map(str::trim).filter(|url| !url.is_empty());
        let monitors: Vec<String> = given.map(|url| url.trim_end_matches('/').to_owned()).collect();
        let is_http = |url: &&String| !url.starts_with("http://") && !url.starts_with("https://");
        if let Some(wrong) = monitors.iter().find(is_http) {
            let expected = "http://host:8222";
            reader.problem("monitor", expected, &format!("`{wrong}`"), "write such an address");
        }
        reader.finish(Self { bus, monitors })
    }
}

impl BusSettings {
    /// Reads them; `problems` are those of the file.
    pub(crate) fn read(sources: &Sources, problems: &[Problem]) -> Result<Self, Problems> {
        let mut reader = Reader::new(sources, problems);
        let bus = reader.bus();
        reader.finish(bus)
    }
}

struct Reader<'a> {
    sources: &'a Sources,
    problems: Problems,
}

impl<'a> Reader<'a> {
    fn new(sources: &'a Sources, problems: &[Problem]) -> Self {
        Self { sources, problems: problems.iter().map(ToString::to_string).collect() }
    }

    fn finish<T>(self, value: T) -> Result<T, Problems> {
        if self.problems.is_empty() { Ok(value) } else { Err(self.problems) }
    }

    fn problem(&mut self, name: &str, expected: &str, found: &str, fix: &str) {
        let place = self.sources.get(name).map(|found| format!("{}: ", found.place));
        let place = place.unwrap_or_default();
        let line = format!("{place}{name}: expected {expected}; found {found}. Fix: {fix}");
        self.problems.push(line);
    }

    /// A planner without agents.
    fn planner(&mut self, bus: BusSettings, life: Life) -> PlannerSettings {
        let max_turns = self.whole("max_turns", 1, 1_000_000);
        let keep_runs = self.whole("keep_runs", 0, 1_000_000);
        PlannerSettings {
            bus,
            life,
            agents: PathBuf::new(),
            model: self.text("model"),
            base_url: self.text("base_url"),
            profile: self.profile(),
            api_key: self.text("api_key"),
            limits: self.limits(),
            prices: self.text("prices").map(PathBuf::from),
            max_turns: usize::try_from(max_turns).unwrap_or(usize::MAX),
            keep_runs: u32::try_from(keep_runs).ok().filter(|runs| *runs > 0),
        }
    }

    fn gateway(&mut self, bus: &BusSettings, life: Life) -> gateway::Settings {
        let mut gateway = gateway::Settings::new(tenant());
        gateway.keys = self.keys();
        (gateway.partitions, gateway.grace) = (bus.partitions, life.grace);
        if let Some(listen) = life.listen {
            gateway.listen = listen;
        }
        self.problems.extend(gateway.problems());
        gateway
    }

    /// What was found, or the default.
    fn text(&self, name: &str) -> Option<String> {
        let found = self.sources.get(name).map(|found| found.value.trim().to_owned());
        let default = || setting(name).and_then(|setting| setting.default).map(str::to_owned);
        found.filter(|value| !value.is_empty()).or_else(default)
    }

    fn required(&mut self, name: &str, expected: &str) -> String {
        let found = self.text(name);
        if found.is_none() {
            let variable = setting(name).map_or("", |setting| setting.variable);
            self.problem(name, expected, "nothing", &format!("give {} or {variable}", flag(name)));
        }
        found.unwrap_or_default()
    }

    fn whole(&mut self, name: &str, least: u64, most: u64) -> u64 {
        let text = self.text(name).unwrap_or_default();
        match text.parse() {
            Ok(number) if (least..=most).contains(&number) => number,
            Ok(_) | Err(_) => {
                let expected = format!("a whole number from {least} to {most}");
                self.problem(name, &expected, &format!("`{text}`"), "write such a number");
                least
            }
        }
    }

    fn seconds(&mut self, name: &str, least: u64, most: u64) -> Duration {
        Duration::from_secs(self.whole(name, least, most))
    }

    /// The keys in the file that is named; empty lines and those behind a `#` are left out. What is
    /// wrong is told by its line: the line itself may be a secret.
    fn keys(&mut self) -> Vec<ApiKey> {
        let Some(file) = self.text("keys") else { return Vec::new() };
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| {
            let found = format!("`{file}`: {error}");
            self.problem("keys", "a file that can be read", &found, "name such a file");
            String::new()
        });
        let mut keys = Vec::new();
        for (index, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Ok(key) = line.parse() {
                keys.push(key);
                continue;
            }
            let found = format!("something else in line {}", index.saturating_add(1));
            let fix = "write a key of sixteen characters or more without blanks";
            self.problem("keys", "`tenant=key`", &found, fix);
        }
        if keys.is_empty() && self.problems.is_empty() {
            let fix = "add a line `tenant=key`, or leave `keys` out to serve this machine only";
            self.problem("keys", "a key", "none in the file", fix);
        }
        keys
    }

    fn profile(&mut self) -> Option<Profile> {
        let text = self.text("profile")?;
        let profile = text.parse().ok();
        if profile.is_none() {
            let names: Vec<&str> = Profile::NAMES.iter().map(|(name, _)| *name).collect();
            let expected = format!("one of {}", names.join(", "));
            self.problem("profile", &expected, &format!("`{text}`"), "write one of them");
        }
        profile
    }

    fn limits(&mut self) -> ModelLimits {
        let mut limit =
            |name| Some(self.whole(name, 0, u64::from(u32::MAX))).filter(|most| *most > 0);
        ModelLimits {
            requests: limit("model_requests_per_min"),
            tokens: limit("model_tokens_per_min"),
            open: limit("model_open_requests"),
        }
    }

    fn truth(&mut self, name: &str) -> bool {
        let text = self.text(name).unwrap_or_default();
        match text.as_str() {
            "true" => true,
            "false" => false,
            other => {
                let found = format!("`{other}`");
                self.problem(name, "true or false", &found, "write one of them");
                false
            }
        }
    }

    fn bus(&mut self) -> BusSettings {
        let servers = self.servers();
        BusSettings {
            login: self.login(&servers),
            servers,
            root_certificates: self.text("nats_ca").map(PathBuf::from),
            require_tls: self.truth("nats_tls"),
            redis: self.redis(),
            partitions: u16::try_from(self.whole("partitions", 1, 1024)).unwrap_or(1),
            replicas: usize::try_from(self.whole("replicas", 1, 5)).unwrap_or(1),
            ack_wait: self.seconds("ack_wait_s", 1, 3600),
            wait: self.seconds("wait_s", 0, 86_400),
        }
    }

    fn servers(&mut self) -> Vec<String> {
        let text = self.text("nats").unwrap_or_default();
        let servers: Vec<String> = text.split(',').map(|part| part.trim().to_owned()).collect();
        for server in &servers {
            let address = server.strip_prefix("nats://").or_else(|| server.strip_prefix("tls://"));
            if address.is_none_or(str::is_empty) {
                let expected = "nats://host:port or tls://host:port";
                self.problem("nats", expected, &format!("`{server}`"), "write such an address");
            }
        }
        servers
    }

    fn redis(&mut self) -> Option<RedisSettings> {
        let rest = ["redis_user", "redis_password", "redis_ca"];
        let Some(address) = self.text("redis") else {
            for name in rest {
                if self.text(name).is_some() {
                    let fix = "add redis, or leave this out";
                    self.problem(name, "an address in redis beside it", "none", fix);
                }
            }
            return None;
        };
        let schemes = ["redis://", "rediss://", "valkey://", "valkeys://"];
        if !schemes.iter().any(|scheme| address.starts_with(scheme)) {
            let expected = "redis://host:port or rediss://host:port";
            self.problem("redis", expected, "another address", "write such an address");
        }
        let [user, password, root_certificates] = rest.map(|name| self.text(name));
        let root_certificates = root_certificates.map(PathBuf::from);
        Some(RedisSettings { address, user, password, root_certificates })
    }

    /// One login at most, and a whole one.
    fn login(&mut self, servers: &[String]) -> BusLogin {
        let (user, password) = (self.text("nats_user"), self.text("nats_password"));
        let (token, file) = (self.text("nats_token"), self.text("nats_credentials"));
        let in_address = servers.iter().any(|server| server.contains('@'));
        let ways = [
            ("nats_user", user.is_some() || password.is_some()),
            ("nats_token", token.is_some()),
            ("nats_credentials", file.is_some()),
            ("nats", in_address),
        ];
        let found: Vec<&str> = ways.iter().filter(|way| way.1).map(|way| way.0).collect();
        if let [first, .., last] = found.as_slice() {
            let both = found.join(" and ");
            let fix = format!("keep {first} or {last}, leave out the other");
            self.problem(last, "one login", &both, &fix);
        }
        match (user, password, token, file) {
            (Some(user), Some(password), ..) => BusLogin::Password { user, password },
            (Some(_), None, ..) => {
                self.problem("nats_password", "the user's password", "nothing", "add it");
                BusLogin::None
            }
            (None, Some(_), ..) => {
                self.problem("nats_user", "the password's user", "nothing", "add it");
                BusLogin::None
            }
            (None, None, Some(token), _) => BusLogin::Token(token),
            (None, None, None, Some(file)) => BusLogin::Credentials(PathBuf::from(file)),
            (None, None, None, None) => BusLogin::None,
        }
    }

    fn life(&mut self, usual: &str) -> Life {
        let text = self.text("listen").unwrap_or_else(|| usual.to_owned());
        let listen = if text == "off" { None } else { text.parse().ok() };
        if listen.is_none() && text != "off" {
            let expected = "an address such as 127.0.0.1:7071, or off";
            self.problem("listen", expected, &format!("`{text}`"), "write such an address");
        }
        Life { listen, grace: self.seconds("grace_s", 0, 3600) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Environment;

    fn sources(pairs: &[(&'static str, &str)]) -> Sources {
        let given: Vec<_> =
            pairs.iter().map(|(name, value)| (*name, Some((*value).to_owned()))).collect();
        Sources::read(None, &Environment::default(), &given).0
    }

    fn worker(pairs: &[(&'static str, &str)]) -> Result<WorkerSettings, Problems> {
        WorkerSettings::read(&sources(pairs), &[])
    }

    #[test]
    fn defaults_hold_where_nothing_is_said() {
        let settings = worker(&[("tools", "a.yaml, b.yaml")]).unwrap();
        assert_eq!(settings.tools, [PathBuf::from("a.yaml"), PathBuf::from("b.yaml")]);
        assert_eq!(settings.slots, 16);
        assert_eq!(settings.bus.servers, ["nats://127.0.0.1:4222"]);
        assert_eq!(settings.bus.login, BusLogin::None);
        assert_eq!(settings.bus.redis, None);
        assert_eq!(settings.bus.ack_wait, Duration::from_secs(6));
        assert_eq!(settings.life.listen, "127.0.0.1:7072".parse().ok());
    }

    #[test]
    fn all_that_is_wrong_is_told_at_once() {
        let wrong = worker(&[
            ("nats", "http://a"),
            ("slots", "many"),
            ("nats_tls", "perhaps"),
            ("listen", "here"),
            ("partitions", "0"),
            ("redis", "memcached://a"),
        ]);
        let lines = wrong.unwrap_err();
        let names = ["nats:", "nats_tls:", "redis:", "partitions:", "listen:", "tools:", "slots:"];
        for name in names {
            assert!(lines.iter().any(|line| line.contains(name)), "{name} in {lines:#?}");
        }
        assert_eq!(lines.len(), names.len(), "{lines:#?}");
    }

    #[test]
    fn logins_that_contradict_each_other_refuse_the_start() {
        let both = worker(&[("tools", "a"), ("nats_token", "t"), ("nats_credentials", "f")]);
        assert!(both.unwrap_err()[0].contains("nats_token and nats_credentials"));
        let half = worker(&[("tools", "a"), ("nats_user", "ann")]);
        assert!(half.unwrap_err()[0].contains("nats_password"));
        let other_half = worker(&[("tools", "a"), ("nats_password", "x")]);
        assert!(other_half.unwrap_err()[0].contains("nats_user"));
        let twice = worker(&[("tools", "a"), ("nats", "nats://u:p@h:1"), ("nats_token", "t")]);
        assert_eq!(twice.unwrap_err().len(), 1);
    }

    #[test]
    fn a_login_for_working_memory_needs_working_memory() {
        let lines = worker(&[("tools", "a"), ("redis_password", "x")]).unwrap_err();
        assert!(lines[0].contains("redis_password"), "{lines:#?}");
        let with = [("tools", "a"), ("redis", "valkey://h:1"), ("redis_user", "u")];
        let redis = worker(&with).unwrap().bus.redis.unwrap();
        assert_eq!((redis.address.as_str(), redis.user.as_deref()), ("valkey://h:1", Some("u")));
    }

    #[test]
    fn a_secret_is_never_part_of_a_problem() {
        let lines = worker(&[("nats_password", "hush"), ("redis", "x://:hush@h")]).unwrap_err();
        assert!(!lines.join("\n").contains("hush"), "{lines:#?}");
    }

    #[test]
    fn a_planner_needs_agents_and_a_model() {
        let lines = PlannerSettings::read(&sources(&[]), &[]).unwrap_err();
        assert_eq!(lines.len(), 2, "{lines:#?}");
        let with = sources(&[("agents", "a"), ("base_url", "http://h/v1"), ("max_turns", "7")]);
        let read = PlannerSettings::read(&with, &[]).unwrap();
        assert_eq!((read.max_turns, read.profile), (7, None));
        let both = [("agents", "a"), ("base_url", "http://h/v1")];
        let profiled = |name| sources(&[both[0], both[1], ("profile", name)]);
        let vllm = PlannerSettings::read(&profiled("vllm"), &[]).unwrap().profile;
        assert_eq!(vllm, Some(Profile::Vllm));
        let wrong = PlannerSettings::read(&profiled("gpt"), &[]).unwrap_err();
        assert!(wrong[0].contains("llama.cpp") && wrong[0].contains("`gpt`"), "{wrong:#?}");
    }

    #[test]
    fn a_gateway_serves_this_machine_unless_it_has_keys() {
        let read = |pairs: &[(&'static str, &str)]| GatewaySettings::read(&sources(pairs), &[]);
        let usual = read(&[("partitions", "4")]).unwrap();
        assert_eq!(usual.life.listen, "127.0.0.1:7070".parse().ok());
        assert_eq!((usual.gateway.partitions, usual.gateway.keys.len()), (4, 0));
        let open = read(&[("listen", "0.0.0.0:7070")]).unwrap_err();
        assert!(open[0].contains("without API keys"), "{open:#?}");
        assert_eq!(read(&[("listen", "off")]).unwrap_err().len(), 1);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "# ours\n\nacme=0123456789abcdef\n").unwrap();
        let keys = file.path().to_str().unwrap();
        let keyed = read(&[("listen", "0.0.0.0:7070"), ("keys", keys)]).unwrap();
        assert_eq!(keyed.gateway.keys[0].tenant.as_str(), "acme");
        std::fs::write(file.path(), "acme=0123456789abcdef\nacme=hush\nnonsense\n").unwrap();
        let wrong = read(&[("keys", keys)]).unwrap_err();
        assert!(wrong[0].contains("line 2") && wrong[1].contains("line 3"), "{wrong:#?}");
        assert!(!wrong.join(" ").contains("hush"), "{wrong:#?}");
        std::fs::write(file.path(), "# none\n").unwrap();
        assert!(read(&[("keys", keys)]).unwrap_err()[0].contains("none in the file"));
        assert_eq!(read(&[("keys", "/nowhere/keys")]).unwrap_err().len(), 1);
    }
}

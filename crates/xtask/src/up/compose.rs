//! What is read of `docker-compose.yml`. A key that nobody handles is refused, so that the file never
//! says something which `up` does not do.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::Deserialize;
use serde::de::IgnoredAny;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Compose {
    /// The project's name; processes of this machine need none.
    #[serde(rename = "name")]
    _name: IgnoredAny,
    pub(crate) services: BTreeMap<String, Service>,
    /// By name; nothing is said about them.
    pub(crate) volumes: BTreeMap<String, BTreeMap<String, String>>,
}

/// One service. Fields with an underscore mean something to an engine only.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Service {
    pub(crate) image: String,
    #[serde(rename = "build")]
    _build: Option<IgnoredAny>,
    #[serde(default)]
    pub(crate) command: Vec<String>,
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) volumes: Vec<String>,
    #[serde(default)]
    pub(crate) ports: Vec<String>,
    #[serde(default)]
    pub(crate) expose: Vec<String>,
    pub(crate) healthcheck: HealthCheck,
    #[serde(default)]
    pub(crate) depends_on: BTreeMap<String, Dependency>,
    pub(crate) stop_grace_period: Option<String>,
    #[serde(rename = "network_mode")]
    _network_mode: Option<IgnoredAny>,
    #[serde(rename = "init")]
    _init: Option<IgnoredAny>,
    #[serde(rename = "restart")]
    _restart: Option<IgnoredAny>,
}

/// How a service is asked whether it is well.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HealthCheck {
    pub(crate) test: Vec<String>,
    pub(crate) interval: String,
    pub(crate) timeout: String,
    pub(crate) retries: u32,
}

/// What a service waits for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Dependency {
    condition: String,
}

impl Compose {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        if text.contains("${") {
            bail!("docker-compose.yml: `${{…}}` is not filled in by `up`; write the value");
        }
        let compose: Self = serde_saphyr::from_str(text).context("docker-compose.yml")?;
        let mut waits = compose.services.values().flat_map(|service| &service.depends_on);
        match waits.find(|(_, dependency)| dependency.condition != "service_healthy") {
            Some((name, Dependency { condition })) => bail!(
                "docker-compose.yml: `{condition}` of {name}: `up` waits for `service_healthy` only"
            ),
            None => Ok(compose),
        }
    }

    /// Services in levels: each one's dependencies lie in earlier levels.
    pub(crate) fn levels(&self) -> Result<Vec<Vec<&str>>> {
        let mut levels: Vec<Vec<&str>> = Vec::new();
        let mut left: BTreeMap<&str, &Service> =
            self.services.iter().map(|(name, service)| (name.as_str(), service)).collect();
        while !left.is_empty() {
            let waits = |service: &Service| {
                service.depends_on.keys().any(|name| left.contains_key(name.as_str()))
            };
            let next: Vec<&str> =
                left.iter().filter(|(_, service)| !waits(service)).map(|(name, _)| *name).collect();
            if next.is_empty() {
                let names: Vec<&str> = left.into_keys().collect();
                bail!("docker-compose.yml: {} wait for each other", names.join(", "));
            }
            left.retain(|name, _| !next.contains(name));
            levels.push(next);
        }
        Ok(levels)
    }

    /// Every port that a service listens on, published or not, with its service. They share one
    /// machine, so no two may be equal.
    pub(crate) fn ports(&self) -> Result<BTreeMap<u16, &str>> {
        let mut all = BTreeMap::new();
        for (name, service) in &self.services {
            for port in service.listens()? {
                if let Some(other) = all.insert(port, name.as_str()) {
                    bail!("docker-compose.yml: {other} and {name} both listen on port {port}");
                }
            }
        }
        Ok(all)
    }
}

impl Service {
    fn listens(&self) -> Result<Vec<u16>> {
        let inside = self.ports.iter().map(|published| {
            let mut parts = published.rsplit(':');
            let inner = parts.next().unwrap_or_default();
            if parts.next().is_some_and(|outer| outer != inner) {
                bail!("docker-compose.yml: `{published}` publishes another port than it has");
            }
            Ok(inner)
        });
        let exposed = self.expose.iter().map(|port| Ok(port.as_str()));
        inside.chain(exposed).map(|port| port.and_then(number)).collect()
    }

    /// How long it may take to stop; ten seconds where the file says nothing, as with an engine.
    pub(crate) fn grace(&self) -> Result<Duration> {
        self.stop_grace_period.as_deref().map_or(Ok(Duration::from_secs(10)), duration)
    }
}

fn number(text: &str) -> Result<u16> {
    text.parse().with_context(|| format!("docker-compose.yml: `{text}` is no port"))
}

/// `1s`, `500ms`, `2m`.
pub(crate) fn duration(text: &str) -> Result<Duration> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let count: u64 = digits.parse().with_context(|| format!("`{text}` is no time"))?;
    match text.get(digits.len()..) {
        Some("ms") => Ok(Duration::from_millis(count)),
        Some("s") => Ok(Duration::from_secs(count)),
        Some("m") => Ok(Duration::from_secs(count.saturating_mul(60))),
        Some(_) | None => bail!("docker-compose.yml: `{text}` is no time such as 1s or 500ms"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::up) const SMALL: &str = r#"
name: small
services:
  bus:
    image: nats:2
    command: ["--port", "4222", "--config", "/etc/nats/nats.conf"]
    volumes: ["./nats.conf:/etc/nats/nats.conf:ro", "store:/data"]
    environment: { STORE: /data }
    ports: ["127.0.0.1:4222:4222"]
    healthcheck: { test: ["CMD", "true"], interval: 1s, timeout: 500ms, retries: 3 }
  planner:
    image: systole:1
    command: ["planner", "--listen=0.0.0.0:7071"]
    environment: { SYSTOLE_NATS: "nats://bus:4222" }
    expose: ["7071"]
    healthcheck: { test: ["CMD", "true"], interval: 1s, timeout: 2s, retries: 3 }
    depends_on: { bus: { condition: service_healthy } }
    stop_grace_period: 30s
volumes: { store: {} }
"#;

    #[test]
    fn services_come_after_what_they_wait_for() {
        let compose = Compose::parse(SMALL).unwrap();
        assert_eq!(compose.levels().unwrap(), [vec!["bus"], vec!["planner"]]);
        let ports: Vec<_> = compose.ports().unwrap().into_iter().collect();
        assert_eq!(ports, [(4222, "bus"), (7071, "planner")]);
        let grace = |name: &str| compose.services[name].grace().unwrap().as_secs();
        assert_eq!((grace("bus"), grace("planner")), (10, 30));
    }

    #[test]
    fn what_up_would_not_do_is_refused() {
        let wrong = [
            ("image: nats:2", "image: nats:2\n    privileged: true", "privileged"),
            ("service_healthy", "service_started", "service_started"),
            ("STORE: /data", "STORE: \"${STORE}\"", "filled in"),
        ];
        for (from, to, named) in wrong {
            let error = Compose::parse(&SMALL.replace(from, to)).unwrap_err();
            assert!(format!("{error:#}").contains(named), "{error:#}");
        }
        let parsed = |from: &str, to: &str| Compose::parse(&SMALL.replace(from, to)).unwrap();
        let twice = parsed("7071\"]", "4222\"]").ports().unwrap_err();
        assert!(twice.to_string().contains("both listen on port 4222"), "{twice}");
        let moved = parsed("127.0.0.1:4222:4222", "14222:4222").ports().unwrap_err();
        assert!(moved.to_string().contains("another port"), "{moved}");
        let circle = parsed(
            "    ports:",
            "    depends_on: { planner: { condition: service_healthy } }\n    ports:",
        );
        let circle = circle.levels().unwrap_err();
        assert!(circle.to_string().contains("bus, planner wait for each other"), "{circle}");
    }

    #[test]
    fn times_are_read_with_their_unit() {
        assert_eq!(duration("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(duration("2m").unwrap(), Duration::from_mins(2));
        assert!(duration("soon").is_err() && duration("3h").is_err() && duration("3").is_err());
    }
}

//! Where the gateway listens, who may come, and how much at once.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use proto::hash::sha256_hex;
use proto::ids::{AgentName, TenantId};

/// The shortest key.
const SHORTEST_KEY: usize = 16;

/// A key that stands for a tenant. Only its hash is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Whom it stands for.
    pub tenant: TenantId,
    hash: String,
}

impl ApiKey {
    /// A key of at least sixteen characters.
    pub fn new(tenant: TenantId, key: &str) -> Result<Self, BadKey> {
        if key.len() < SHORTEST_KEY || !key.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(BadKey);
        }
        Ok(Self { tenant, hash: sha256_hex(key.as_bytes()) })
    }
}

impl FromStr for ApiKey {
    type Err = BadKey;

    /// Reads `tenant=key`.
    fn from_str(text: &str) -> Result<Self, BadKey> {
        let (tenant, key) = text.split_once('=').ok_or(BadKey)?;
        Self::new(tenant.parse().map_err(|_refused| BadKey)?, key)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({}=***)", self.tenant)
    }
}

/// Text that is no key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an API key is `tenant=key`, the key at least sixteen printable characters without blanks")]
pub struct BadKey;

/// Settings of a gateway.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Who may come. Without keys everybody on this machine may, as `tenant`.
    pub keys: Vec<ApiKey>,
    /// The tenant of callers without a key.
    pub tenant: TenantId,
    /// How many streams share the threads; the same in every process of a deployment.
    pub partitions: u16,
    /// The agents that there are; `None` when the gateway cannot know them.
    pub agents: Option<Vec<AgentName>>,
    /// The most bytes of a body.
    pub max_body: usize,
    /// Readers of events at once.
    pub max_readers: usize,
    /// Other requests at once.
    pub max_requests: usize,
    /// How long a body may take to arrive, and a request to be answered.
    pub patience: Duration,
    /// How long a cancel waits for the run to end unless it says otherwise.
    pub cancel_wait: Duration,
    /// A reader that nothing was sent to for so long is sent a comment.
    pub keep_alive: Duration,
    /// How long requests may take to finish once the gateway is being stopped.
    pub grace: Duration,
}

impl Settings {
    /// Port 7070 of this machine, without keys.
    pub fn new(tenant: TenantId) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7070)),
            keys: Vec::new(),
            tenant,
            partitions: 1,
            agents: None,
            max_body: 256 * 1024,
            max_readers: 1024,
            max_requests: 256,
            patience: Duration::from_secs(15),
            cancel_wait: Duration::from_secs(10),
            keep_alive: Duration::from_secs(15),
            grace: Duration::from_secs(10),
        }
    }

    /// All that is wrong or contradicts itself; empty when the gateway may start.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        if self.keys.is_empty() && !self.listen.ip().is_loopback() {
            problems.push(format!(
                "the gateway may not listen on {} without API keys: give keys, or listen on 127.0.0.1",
                self.listen
            ));
        }
        for (name, value) in [
            ("max_body", self.max_body),
            ("max_readers", self.max_readers),
            ("max_requests", self.max_requests),
        ] {
            if value == 0 {
                problems.push(format!("{name} is 0: nothing would be served"));
            }
        }
        let mut owners = BTreeMap::new();
        for key in &self.keys {
            let owner = owners.entry(&key.hash).or_insert(&key.tenant);
            if **owner != key.tenant {
                problems.push(format!("one key stands for {owner} and for {}", key.tenant));
            }
        }
        problems
    }

    /// Whom a key stands for.
    pub(crate) fn tenant_of(&self, key: &str) -> Option<&TenantId> {
        // Hashes are compared, so how long it takes tells nothing about a key.
        let hash = sha256_hex(key.as_bytes());
        self.keys.iter().find(|known| known.hash == hash).map(|known| &known.tenant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(name: &str) -> TenantId {
        TenantId::new(name).unwrap()
    }

    #[test]
    fn without_keys_only_this_machine_is_served() {
        let mut settings = Settings::new(tenant("default"));
        assert_eq!(settings.problems(), Vec::<String>::new());
        settings.listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 7070));
        let problems = settings.problems();
        assert!(problems[0].contains("0.0.0.0:7070 without API keys"), "{problems:?}");
        settings.keys = vec!["acme=0123456789abcdef".parse().unwrap()];
        assert_eq!(settings.problems(), Vec::<String>::new());
    }

    #[test]
    fn every_contradiction_is_told_at_once() {
        let key = "0123456789abcdef";
        let keys = [tenant("a"), tenant("b")].map(|tenant| ApiKey::new(tenant, key).unwrap());
        let settings =
            Settings { keys: keys.to_vec(), max_body: 0, ..Settings::new(tenant("default")) };
        let wanted = ["max_body is 0: nothing would be served", "one key stands for a and for b"];
        assert_eq!(settings.problems(), wanted);
    }

    #[test]
    fn keys_are_read_and_never_printed() {
        let key: ApiKey = "acme=0123456789abcdef=".parse().unwrap();
        assert_eq!(format!("{key:?}"), "ApiKey(acme=***)");
        let settings = Settings { keys: vec![key], ..Settings::new(tenant("default")) };
        assert_eq!(settings.tenant_of("0123456789abcdef="), Some(&tenant("acme")));
        assert_eq!(settings.tenant_of("0123456789abcdef"), None);
        for bad in ["acme", "acme=short", "Acme=0123456789abcdef", "acme=0123456789 abcdef"] {
            assert_eq!(bad.parse::<ApiKey>(), Err(BadKey), "{bad}");
        }
    }
}

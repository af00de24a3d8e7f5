//! Where a model is and how patiently it is asked.

use std::fmt;
use std::time::Duration;

use proto::model::ModelError;

use crate::profile::{self, Profile, Rules};
use crate::reader::Think;

const DEFAULT_BASE: &str = "https://api.openai.com/v1";

/// A shorter key is one that a local server does not look at, and may be a part of any text.
const SHORTEST_SECRET: usize = 6;

/// How long each part of a reply may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// From the request to the first data.
    pub first_token: Duration,
    /// Between data. Comments do not count.
    pub idle: Duration,
    /// The whole reply.
    pub total: Duration,
    /// After a finish reason: what replaces a missing end mark.
    pub grace: Duration,
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            first_token: Duration::from_secs(30),
            idle: Duration::from_secs(30),
            total: Duration::from_mins(5),
            grace: Duration::from_secs(1),
        }
    }
}

/// How often a request is made before it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Requests in all, the first one included.
    pub attempts: u32,
    /// The pause before the second request; it doubles.
    pub backoff: Duration,
    /// The longest pause that a provider may ask for. One that asks for more is not waited for.
    pub longest_wait: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            attempts: 3,
            backoff: Duration::from_millis(500),
            longest_wait: Duration::from_mins(1),
        }
    }
}

/// One endpoint.
#[derive(Clone)]
pub struct Endpoint {
    /// Its address up to and with the version.
    pub base_url: String,
    /// Its key; local servers want none.
    pub api_key: String,
    /// The model to ask for in place of the one that a request names.
    pub model: Option<String>,
    /// What it accepts, when a setting says so; else the agent's word counts, then what the address
    /// suggests.
    pub profile: Option<Profile>,
    /// Where a thought in its text begins.
    pub think: Think,
    /// How long a reply may take.
    pub deadlines: Deadlines,
    /// How often it is asked.
    pub patience: Patience,
}

/// The key stays out of every log.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

/// Why settings name no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadEndpoint {
    /// There is nothing to go by.
    #[error("set OPENAI_API_KEY, or OPENAI_BASE_URL for an endpoint that needs no key")]
    Missing,
    /// The address is none.
    #[error("OPENAI_BASE_URL is `{0}`, which is no http or https address")]
    Address(String),
    /// The key cannot be sent.
    #[error("OPENAI_API_KEY holds characters that a key cannot have")]
    Key,
}

impl Endpoint {
    /// The same without the key, should a provider have sent it back in its words.
    pub(crate) fn without_key(&self, mut error: ModelError) -> ModelError {
        if self.api_key.len() >= SHORTEST_SECRET {
            error.message = error.message.replace(&self.api_key, "[redacted key]");
        }
        error
    }

    /// An endpoint with the usual patience; its profile is the agent's or guessed from the address.
    pub fn new(base_url: impl Into<String>, api_key: impl Into<String>) -> Self {
        let base_url = base_url.into().trim().trim_end_matches('/').to_owned();
        Self {
            profile: None,
            base_url,
            api_key: api_key.into(),
            model: None,
            think: Think::default(),
            deadlines: Deadlines::default(),
            patience: Patience::default(),
        }
    }

    /// The endpoint that `OPENAI_API_KEY` and `OPENAI_BASE_URL` name.
    pub fn from_env(read: &dyn Fn(&str) -> Option<String>) -> Result<Self, BadEndpoint> {
        let set = |name: &str| {
            read(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
        };
        let (key, base) = (set("OPENAI_API_KEY"), set("OPENAI_BASE_URL"));
        if key.is_none() && base.is_none() {
            return Err(BadEndpoint::Missing);
        }
        let base = base.unwrap_or_else(|| DEFAULT_BASE.to_owned());
        if !base.starts_with("http://") && !base.starts_with("https://") {
            return Err(BadEndpoint::Address(base));
        }
        let key = key.unwrap_or_default();
        if !key.chars().all(|c| c.is_ascii_graphic()) {
            return Err(BadEndpoint::Key);
        }
        Ok(Self::new(base, key))
    }

    /// The profile of a request: the setting's, else the agent's, else the one that the address
    /// suggests.
    pub fn profile_for(&self, agents: Option<Profile>) -> Profile {
        self.profile.or(agents).unwrap_or_else(|| profile::guess(&self.base_url))
    }

    /// What a request to it may look like.
    pub(crate) fn rules_for(&self, agents: Option<Profile>) -> Rules {
        profile::rules(self.profile_for(agents))
    }

    /// Whether it is on this machine: no proxy of the surroundings can lead there.
    pub(crate) fn is_local(&self) -> bool {
        let url = reqwest::Url::parse(&self.base_url).ok();
        let host = url.as_ref().and_then(reqwest::Url::host_str).unwrap_or_default();
        let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
        host == "localhost" || address.is_ok_and(|address| address.is_loopback())
    }

    /// The same, asking for this model whatever a request names.
    #[must_use]
    pub fn with_model(mut self, model: Option<String>) -> Self {
        self.model = model;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(key: Option<&str>, base: Option<&str>) -> Result<(String, String), BadEndpoint> {
        let read = |name: &str| match name {
            "OPENAI_API_KEY" => key.map(str::to_owned),
            "OPENAI_BASE_URL" => base.map(str::to_owned),
            _ => None,
        };
        Endpoint::from_env(&read).map(|endpoint| (endpoint.base_url, endpoint.api_key))
    }

    #[test]
    fn a_key_or_an_address_is_enough() {
        let pair = |base: &str, key: &str| Ok((base.to_owned(), key.to_owned()));
        assert_eq!(endpoint(Some(" k \n"), None), pair(DEFAULT_BASE, "k"));
        assert_eq!(
            endpoint(None, Some("http://localhost:8080/v1/")),
            pair("http://localhost:8080/v1", "")
        );
        assert_eq!(endpoint(None, Some(" ")), Err(BadEndpoint::Missing));
    }

    #[test]
    fn what_cannot_work_is_said_before_the_first_request() {
        let bad = BadEndpoint::Address("localhost".to_owned());
        assert_eq!(endpoint(None, Some("localhost")), Err(bad));
        assert_eq!(endpoint(Some("a b"), None), Err(BadEndpoint::Key));
    }

    #[test]
    fn an_endpoint_on_this_machine_is_asked_without_a_proxy() {
        let is_local = |url: &str| Endpoint::new(url, "").is_local();
        assert!(
            ["http://localhost:1/v1", "http://127.0.0.1:2/v1", "http://[::1]:3"]
                .iter()
                .all(|url| is_local(url))
        );
        assert!(
            !["https://api.openai.com/v1", "http://10.0.0.1/v1", "nothing"]
                .iter()
                .any(|url| is_local(url))
        );
    }

    #[test]
    fn a_key_is_never_printed() {
        let printed = format!("{:?}", Endpoint::new("http://x", "secret"));
        assert!(!printed.contains("secret"), "{printed}");
    }
}

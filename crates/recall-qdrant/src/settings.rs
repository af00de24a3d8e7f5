//! How Qdrant is reached.

use std::fmt;
use std::time::Duration;

/// A server and a collection on it.
#[derive(Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its address, with the port of gRPC: `http://127.0.0.1:6334`.
    pub url: String,
    /// Its key, where it asks for one.
    pub api_key: Option<String>,
    /// The collection; made if it is not there.
    pub collection: String,
    /// How long one request may take.
    pub request: Duration,
}

impl Settings {
    /// A server without a key.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            api_key: None,
            collection: "systole_memory".to_owned(),
            request: Duration::from_secs(5),
        }
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { collection, request, .. } = self;
        f.debug_struct("Settings")
            .field("collection", collection)
            .field("request", request)
            .finish_non_exhaustive()
    }
}

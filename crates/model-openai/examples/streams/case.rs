//! The index of a folder of streams.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use proto::agent::Protocol;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A folder of streams.
#[derive(Debug)]
pub(crate) struct Corpus {
    /// Its cases.
    pub(crate) cases: Vec<Case>,
    bodies: BTreeMap<String, Vec<u8>>,
}

/// One case.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Case {
    /// Its name.
    pub(crate) id: String,
    /// The body.
    pub(crate) file: String,
    /// native, text or contract.
    pub(crate) mode: String,
    /// The tools on offer.
    #[serde(default)]
    pub(crate) tools: Vec<String>,
    /// What must come out.
    pub(crate) expect: Map<String, Value>,
    /// Other acceptable outcomes, as overrides.
    #[serde(default)]
    pub(crate) accept: Vec<Map<String, Value>>,
    /// Status of the first response.
    pub(crate) status: Option<u16>,
    /// Headers of the first response.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
    /// Where segments end.
    pub(crate) splits: Option<Vec<usize>>,
    /// How much of the body is sent before the connection ends.
    pub(crate) disconnect_after: Option<usize>,
    /// How it ends.
    pub(crate) disconnect: Option<String>,
    /// How much of the body is sent before silence.
    pub(crate) stall_after: Option<usize>,
    /// What breaks the silence without saying anything.
    pub(crate) keepalive: Option<Value>,
    /// Bodies of successive requests.
    pub(crate) turns: Option<Vec<String>>,
    /// The case that answers the second request.
    pub(crate) then: Option<String>,
    /// What the following request must look like.
    pub(crate) next_request: Option<Map<String, Value>>,
    /// The profile of the endpoint.
    pub(crate) profile: Option<String>,
}

impl Corpus {
    /// Reads a folder.
    pub(crate) fn load(folder: &Path) -> Result<Self> {
        let index = folder.join("index.json");
        let text =
            std::fs::read_to_string(&index).with_context(|| format!("{}", index.display()))?;
        let cases: Vec<Case> = serde_json::from_str(&text).context("index.json")?;
        let mut bodies = BTreeMap::new();
        for file in cases.iter().flat_map(Case::files) {
            let body = std::fs::read(folder.join(&file)).with_context(|| file.clone())?;
            bodies.insert(file, body);
        }
        Ok(Self { cases, bodies })
    }

    /// The bytes of a file.
    pub(crate) fn body(&self, file: &str) -> Vec<u8> {
        self.bodies.get(file).cloned().unwrap_or_default()
    }

    /// A case by name.
    pub(crate) fn by_id(&self, id: &str) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == id)
    }
}

impl Case {
    /// Its bodies, in the order of the requests.
    pub(crate) fn files(&self) -> Vec<String> {
        self.turns.clone().unwrap_or_else(|| vec![self.file.clone()])
    }

    /// How calls are asked for.
    pub(crate) fn protocol(&self) -> Protocol {
        if self.mode == "contract" { Protocol::Contract } else { Protocol::Native }
    }

    /// The expectation and its alternatives.
    pub(crate) fn outcomes(&self) -> Vec<Map<String, Value>> {
        let with = |other: &Map<String, Value>| {
            let mut outcome = self.expect.clone();
            outcome.extend(other.clone());
            outcome
        };
        std::iter::once(self.expect.clone()).chain(self.accept.iter().map(with)).collect()
    }
}

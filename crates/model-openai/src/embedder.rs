//! Vectors of texts from an OpenAI-compatible endpoint, many texts in one request. A text that was
//! asked for lately is not asked for again.
#![expect(clippy::disallowed_types, reason = "a cache is locked for a moment, never over an await")]

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ports::BusError;
use ports::embedder::{Embedder, MOST_TEXTS};
use ports::recall::Space;
use proto::hash::sha256_hex;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::OnceCell;

use crate::client::{NoClient, http};
use crate::endpoint::Endpoint;

/// Texts whose vectors are remembered.
const REMEMBERED: usize = 4096;
/// Characters of one text: models take a few hundred words and leave the rest out.
const LONGEST: usize = 8000;
/// The largest answer.
const LARGEST: usize = 64 << 20;

/// Where vectors are made.
#[derive(Clone)]
pub struct EmbedderSettings {
    /// The endpoint's address up to and with the version.
    pub base_url: String,
    /// Its key; local servers want none.
    pub api_key: String,
    /// The model.
    pub model: String,
    /// How long one request may take.
    pub deadline: Duration,
}

impl fmt::Debug for EmbedderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { model, deadline, .. } = self;
        f.debug_struct("EmbedderSettings")
            .field("model", model)
            .field("deadline", deadline)
            .finish_non_exhaustive()
    }
}

/// Vectors from an endpoint.
pub struct OpenAiEmbedder {
    http: reqwest::Client,
    settings: EmbedderSettings,
    dimension: OnceCell<usize>,
    known: Mutex<BTreeMap<String, Arc<[f32]>>>,
}

impl fmt::Debug for OpenAiEmbedder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiEmbedder").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Vec<f32>,
}

impl OpenAiEmbedder {
    /// A client of the endpoint, which is asked when it is needed first.
    pub fn new(settings: EmbedderSettings) -> Result<Self, NoClient> {
        let deadline = settings.deadline;
        let is_local = Endpoint::new(settings.base_url.clone(), "").is_local();
        let http = http(|builder| {
            let builder = builder.timeout(deadline);
            if is_local { builder.no_proxy() } else { builder }
        })?;
        Ok(Self { http, settings, dimension: OnceCell::new(), known: Mutex::default() })
    }

    async fn ask(&self, texts: &[String]) -> Result<Vec<Arc<[f32]>>, BusError> {
        let url = format!("{}/embeddings", self.settings.base_url.trim_end_matches('/'));
        let cut = |text: &String| text.chars().take(LONGEST).collect::<String>();
        let input: Vec<String> = texts.iter().map(cut).collect();
        let body =
            json!({"model": self.settings.model, "input": input, "encoding_format": "float"});
        let mut request = self.http.post(url).json(&body);
        if !self.settings.api_key.is_empty() {
            request = request.bearer_auth(&self.settings.api_key);
        }
        let gone = |error: reqwest::Error| unavailable(&error.without_url());
        let response = request.send().await.map_err(gone)?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(gone)?;
        if !status.is_success() {
            let text: String = String::from_utf8_lossy(&bytes).chars().take(300).collect();
            let why = format!("the embedder answered {status}: {text}");
            let waits = status.is_server_error() || status.as_u16() == 429;
            return Err(if waits { BusError::Unavailable(why) } else { BusError::Refused(why) });
        }
        if bytes.len() > LARGEST {
            return Err(BusError::TooLarge { bytes: bytes.len(), limit: LARGEST });
        }
        let answer: Answer = serde_json::from_slice(&bytes)
            .map_err(|error| BusError::Refused(format!("not an answer of an embedder: {error}")))?;
        in_order(answer.data, texts.len())
    }

    fn remembered(&self, key: &str) -> Option<Arc<[f32]>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn remember(&self, key: String, vector: Arc<[f32]>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(key, vector);
    }

    /// Vectors of at most as many texts as one request takes.
    async fn part(&self, texts: &[String]) -> Result<Vec<Arc<[f32]>>, BusError> {
        let keys: Vec<String> = texts.iter().map(|text| sha256_hex(text.as_bytes())).collect();
        let mut found: Vec<Option<Arc<[f32]>>> =
            keys.iter().map(|key| self.remembered(key)).collect();
        let missing = found.iter().zip(texts).filter(|(found, _)| found.is_none());
        let missing: Vec<String> = missing.map(|(_, text)| text.clone()).collect();
        if !missing.is_empty() {
            let mut made = self.ask(&missing).await?.into_iter();
            for (place, key) in found.iter_mut().zip(keys).filter(|(place, _)| place.is_none()) {
                let Some(vector) = made.next() else { break };
                self.remember(key, Arc::clone(&vector));
                *place = Some(vector);
            }
        }
        Ok(found.into_iter().flatten().collect())
    }
}

fn unavailable(error: &dyn fmt::Display) -> BusError {
    BusError::Unavailable(format!("the embedder does not answer: {error}"))
}

/// One vector for each text, all of one length, each of length 1.
fn in_order(mut data: Vec<Item>, texts: usize) -> Result<Vec<Arc<[f32]>>, BusError> {
    data.sort_by_key(|item| item.index);
    let is_whole = data.len() == texts && data.iter().enumerate().all(|(n, item)| item.index == n);
    let length = data.first().map_or(0, |item| item.embedding.len());
    let is_even = length > 0 && data.iter().all(|item| item.embedding.len() == length);
    if !is_whole || !is_even {
        let why = format!("the embedder answered {} vectors for {texts} texts", data.len());
        return Err(BusError::Refused(why));
    }
    Ok(data.into_iter().map(|item| Arc::from(normal(item.embedding))).collect())
}

fn normal(vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    if length.is_finite() && length > 0.0 {
        vector.iter().map(|x| x / length).collect()
    } else {
        vector
    }
}

#[async_trait]
impl Embedder for OpenAiEmbedder {
    async fn space(&self) -> Result<Option<Space>, BusError> {
        let probe = || async {
            let made = self.ask(&["dimension".to_owned()]).await?;
            made.first().map(|vector| vector.len()).ok_or_else(|| unavailable(&"no vector came"))
        };
        let dimension = *self.dimension.get_or_try_init(probe).await?;
        Ok(Some(Space { model: self.settings.model.clone(), dimension }))
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Arc<[f32]>>, BusError> {
        let mut all = Vec::with_capacity(texts.len());
        for part in texts.chunks(MOST_TEXTS) {
            all.extend(self.part(part).await?);
        }
        Ok(all)
    }
}

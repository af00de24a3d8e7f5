//! The `fetch_url` builtin: a page as text.

use std::sync::Arc;

use async_trait::async_trait;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, Url};

use super::super::{Ended, Executor, Job, NotStarted, Output, Prepared};
use super::exchange::{Answer, Head, Request};
use super::kept::Kept;
use super::retry_after::Wait;
use super::verdict::Judge;
use super::{Ready, Targets, headers, html, refused, tls};

/// Bytes of a page that are kept. Markup takes most of a page.
const MOST_KEPT: u64 = 4 * 1024 * 1024;
const ACCEPT: &str = "text/html, text/plain, application/json, */*;q=0.5";

/// Fetches pages.
pub(in super::super) struct FetchTool {
    tls: tls::Tls,
    wait: Arc<Wait>,
    private: bool,
}

impl FetchTool {
    /// `private`: whether pages of private networks may be read.
    pub(in super::super) fn new(private: bool) -> Self {
        Self { tls: tls::Tls::default(), wait: Arc::default(), private }
    }
}

#[async_trait]
impl Executor for FetchTool {
    async fn prepare(&self, job: &Job) -> Result<Box<dyn Prepared>, NotStarted> {
        let url = job.call.arguments.get("url").and_then(serde_json::Value::as_str);
        let url = address(url.unwrap_or_default()).map_err(refused)?;
        self.wait.over().await;
        Ok(Box::new(Ready {
            request: Request {
                method: Method::GET,
                url,
                headers: headers::ours(ACCEPT),
                body: None,
            },
            most: MOST_KEPT,
            tls: self.tls.config(),
            targets: Targets::of_model(self.private),
            judge: Judge::of_page(job, Arc::clone(&self.wait)),
            is_page: true,
        }))
    }
}

fn address(text: &str) -> Result<Url, String> {
    let fix = "give one that begins with https:// or http://";
    let url = Url::parse(text.trim())
        .map_err(|error| format!("argument `url` is no address ({error}): {fix}"))?;
    if !["http", "https"].contains(&url.scheme()) {
        return Err(format!("argument `url` begins with {}: {fix}", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("argument `url` has a user or a password in it: leave them out".to_owned());
    }
    Ok(url)
}

/// A page that is there is read; all else ends as it does for any tool.
pub(super) fn page(judge: &Judge, answer: Answer, kept: Kept) -> Ended {
    let kind = match &answer {
        Answer::Complete { head, .. } if judge.is_success(head.status) => Some(kind(head)),
        Answer::Complete { .. }
        | Answer::Truncated { .. }
        | Answer::Lost(_)
        | Answer::NotConnected { .. }
        | Answer::Redirected { .. } => None,
    };
    match (judge.ended(answer, kept), kind) {
        (Ended::Done(output), Some(kind)) => readable(output, &kind),
        (ended, _) => ended,
    }
}

/// The media type, and whether its bytes are characters of Western Europe.
struct Kind {
    media: String,
    is_latin: bool,
}

fn kind(head: &Head) -> Kind {
    let text = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let text = text.unwrap_or_default().to_ascii_lowercase();
    let media = text.split(';').next().unwrap_or_default().trim().to_owned();
    let is_latin = ["iso-8859-1", "latin1", "windows-1252"].iter().any(|name| text.contains(name));
    Kind { media, is_latin }
}

fn readable(output: Output, kind: &Kind) -> Ended {
    let media = &kind.media;
    let is_markup = media.contains("html");
    let is_text = media.is_empty()
        || is_markup
        || media.starts_with("text/")
        || ["json", "xml", "javascript", "yaml", "csv"].iter().any(|word| media.contains(word));
    if !is_text {
        let why = format!("the address leads to {media}, which is not text");
        return Ended::Failed { output: Output::default(), why, retryable: false };
    }
    let text: String = if kind.is_latin {
        output.bytes.iter().map(|byte| char::from(*byte)).collect()
    } else {
        String::from_utf8_lossy(&output.bytes).into_owned()
    };
    if is_markup || (media.is_empty() && text.trim_start().starts_with('<')) {
        return Ended::Done(Output::from(html::text(&text)));
    }
    Ended::Done(if kind.is_latin { Output::from(text) } else { output })
}

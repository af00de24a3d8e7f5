//! Sends a request once and reads the answer.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Client, Method, Response, StatusCode, Url, redirect, retry};
use tower::util::MapResponseLayer;

use super::kept::Kept;
use super::targets::{self, Targets};

/// How often a server may send us on to another place of its own.
const MOST_REDIRECTS: u32 = 5;

/// A request in full.
pub(super) struct Request {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
}

/// Whether a connection stood, after which a server may have seen the request.
#[derive(Clone, Debug, Default)]
pub(super) struct Wire(Arc<AtomicBool>);

impl Wire {
    pub(super) fn stands(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn stand(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// How an exchange ended.
pub(super) enum Answer {
    /// The answer is there; its body is complete unless `cut`.
    Complete {
        /// Status and headers.
        head: Head,
        /// Whether more would have come than anybody reads.
        cut: bool,
    },
    /// The body broke off.
    Truncated {
        /// Status and headers.
        head: Head,
        /// What happened.
        why: String,
    },
    /// No answer came, though the request may have arrived.
    Lost(String),
    /// No connection stood.
    NotConnected {
        /// What happened.
        why: String,
        /// Whether it may pass.
        may_pass: bool,
    },
    /// The server sends us on, and we do not go.
    Redirected {
        /// Its status.
        status: StatusCode,
        /// Where it points.
        target: String,
        /// Why we do not go there.
        why: &'static str,
    },
}

/// What came before the body.
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
}

/// Sends `request`; follows a server that sends a `GET` on to another place of its own.
pub(super) async fn exchange(
    mut request: Request,
    (tls, targets): (rustls::ClientConfig, Targets),
    wire: &Wire,
    kept: &mut Kept,
) -> Answer {
    let client = match client(tls, &targets, wire) {
        Ok(client) => client,
        Err(error) => return Answer::NotConnected { why: told(error), may_pass: false },
    };
    let mut redirects = 0;
    loop {
        if let Err(why) = targets.check(&request.url) {
            return Answer::NotConnected { why, may_pass: false };
        }
        let response = match send(&client, &request).await {
            Ok(response) => response,
            Err(error) => return failed(error, wire, &request.url),
        };
        let target = match redirect(&request, &response, redirects) {
            Hop::Stay => return body(response, kept).await,
            Hop::Refuse(answer) => return answer,
            Hop::Go(target) => target,
        };
        kept.clear();
        redirects += 1;
        request.url = target;
    }
}

/// A client for one attempt: no pool, so that no request meets a connection that is dying; no
/// retries, so that nothing is sent twice; no proxy, so that the host is the one that was named.
fn client(
    tls: rustls::ClientConfig,
    targets: &Targets,
    wire: &Wire,
) -> Result<Client, reqwest::Error> {
    let wire = wire.clone();
    Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(redirect::Policy::none())
        .retry(retry::never())
        .pool_max_idle_per_host(0)
        .no_proxy()
        .dns_resolver(targets.clone())
        .referer(false)
        .connector_layer(MapResponseLayer::new(move |connection| {
            wire.stand();
            connection
        }))
        .build()
}

async fn send(client: &Client, request: &Request) -> Result<Response, reqwest::Error> {
    let mut sending = client
        .request(request.method.clone(), request.url.clone())
        .headers(request.headers.clone());
    if let Some(body) = &request.body {
        sending = sending.body(body.clone());
    }
    sending.send().await
}

fn failed(error: reqwest::Error, wire: &Wire, url: &Url) -> Answer {
    let may_pass = !is_tls(&error) && !targets::is_refusal(&error);
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or_default();
    let told = told(error);
    if wire.stands() {
        Answer::Lost(format!("{host}:{port} did not answer: {told}"))
    } else {
        Answer::NotConnected { why: format!("no connection to {host}:{port}: {told}"), may_pass }
    }
}

/// A server that cannot prove who it is will not be able to in a moment.
fn is_tls(error: &reqwest::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = error.source();
    while let Some(error) = next {
        if error.is::<rustls::Error>() {
            return true;
        }
        // An error of the system that wraps another does not name it as its source.
        let wrapped = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        next = match wrapped {
            Some(wrapped) => Some(wrapped),
            None => error.source(),
        };
    }
    false
}

/// The error with its causes, without the address, whose query may say more than it should.
fn told(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut told = String::new();
    let mut source = error.source();
    while let Some(error) = source {
        let text = error.to_string();
        if !told.contains(&text) {
            let mark = if told.is_empty() { "" } else { ": " };
            write!(told, "{mark}{text}").unwrap_or_default();
        }
        source = error.source();
    }
    if told.is_empty() { error.to_string() } else { told }
}

enum Hop {
    Stay,
    Go(Url),
    Refuse(Answer),
}

fn redirect(request: &Request, response: &Response, redirects: u32) -> Hop {
    let status = response.status();
    let location = response.headers().get(LOCATION).filter(|_| status.is_redirection());
    let Some(location) = location else { return Hop::Stay };
    let text = String::from_utf8_lossy(location.as_bytes()).into_owned();
    let Ok(target) = request.url.join(&text) else {
        return refuse(status, text, "it is no URL");
    };
    let text = target.to_string();
    if !is_same_host(&request.url, &target) {
        return refuse(status, text, "a tool talks to the host it names and to no other");
    }
    if request.method != Method::GET {
        return refuse(status, text, "only a GET is sent on");
    }
    if redirects >= MOST_REDIRECTS {
        return refuse(status, text, "it was sent on too often");
    }
    Hop::Go(target)
}

fn refuse(status: StatusCode, target: String, why: &'static str) -> Hop {
    Hop::Refuse(Answer::Redirected { status, target, why })
}

/// The same scheme, host and port, or the same host on the ports of HTTP and then HTTPS.
fn is_same_host(from: &Url, to: &Url) -> bool {
    let ports = (from.port_or_known_default(), to.port_or_known_default());
    let is_secured = from.scheme() == "http" && to.scheme() == "https";
    let is_upgrade = is_secured && ports == (Some(80), Some(443));
    let has_user = !to.username().is_empty() || to.password().is_some();
    !has_user
        && from.host() == to.host()
        && (is_upgrade || (from.scheme() == to.scheme() && ports.0 == ports.1))
}

async fn body(mut response: Response, kept: &mut Kept) -> Answer {
    let head = Head { status: response.status(), headers: std::mem::take(response.headers_mut()) };
    loop {
        match response.chunk().await {
            Ok(Some(bytes)) => kept.add(&bytes),
            Ok(None) => return Answer::Complete { head, cut: false },
            Err(error) => return Answer::Truncated { head, why: told(error) },
        }
        if kept.is_enough() {
            return Answer::Complete { head, cut: true };
        }
    }
}

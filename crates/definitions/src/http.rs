//! How a tool asks an HTTP server: the `http:` form of a run.

use std::path::PathBuf;

use serde_json::Value;

pub use crate::http_url::encode;

/// A request to make of a call, and what to keep of the answer.
///
/// Values of a call only ever fill holes: scheme, host, port, header names and names in the query
/// are the file's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRun {
    /// How it asks.
    pub method: Method,
    /// Scheme, host and port, such as `https://api.example.com:8443`; without holes.
    pub origin: String,
    /// The path as a template, from its `/` on. Its own text is percent-encoded already.
    pub path: String,
    /// The query, in the order of the file.
    pub query: Vec<QueryPart>,
    /// Headers with their names as written.
    pub headers: Vec<(String, Header)>,
    /// What is sent, see [`Body`].
    pub body: Body,
    /// What is kept of an answer.
    pub result: Pick,
    /// Statuses that mean success; empty for 200 to 299.
    pub success: Vec<u16>,
    /// Bytes of a body that are kept; the rest is read, counted and dropped.
    pub max_output_bytes: u64,
    /// Whether a name may lead into a private network. An address that the file itself names may
    /// always be private, unless it is link-local, where clouds keep their credentials.
    pub private: bool,
    /// Whether it finds out if an effect happened. Then only a clear no is a failure: 404, 410, or
    /// an answer without the result. All else that is no yes tells nothing.
    pub is_probe: bool,
}

/// The verbs that tools may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Method {
    /// `GET`.
    Get,
    /// `HEAD`.
    Head,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `PATCH`.
    Patch,
    /// `DELETE`.
    Delete,
}

impl Method {
    /// All of them as they are written.
    pub const ALL: &'static [(&'static str, Self)] = &[
        ("GET", Self::Get),
        ("HEAD", Self::Head),
        ("POST", Self::Post),
        ("PUT", Self::Put),
        ("PATCH", Self::Patch),
        ("DELETE", Self::Delete),
    ];

    /// Whether servers expect a body with it.
    pub fn has_body(self) -> bool {
        match self {
            Self::Post | Self::Put | Self::Patch => true,
            Self::Get | Self::Head | Self::Delete => false,
        }
    }

    /// Whether it asks without changing anything, so that a body has no meaning.
    pub fn only_reads(self) -> bool {
        match self {
            Self::Get | Self::Head => true,
            Self::Post | Self::Put | Self::Patch | Self::Delete => false,
        }
    }
}

/// One part of a query. Text of the file is percent-encoded already, values are not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryPart {
    /// Its name.
    pub name: String,
    /// What follows `=`, a template; nothing for a bare name.
    pub value: Option<String>,
}

/// Where a header's value comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Header {
    /// A template over the arguments; left out when one of them is absent.
    Template(String),
    /// A secret, read for each call and never shown.
    Secret {
        /// Where it lies.
        from: SecretPlace,
        /// What is put before it, such as `Bearer `.
        prefix: String,
    },
}

/// Where a secret lies.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SecretPlace {
    /// An environment variable of the worker.
    Env(String),
    /// A file; absolute after loading. Line ends at its end do not belong to it.
    File(PathBuf),
}

/// What a request carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Nothing.
    None,
    /// The arguments as one JSON object.
    Arguments,
    /// JSON whose texts are templates. A text that is one hole becomes the value with its type.
    Template(Value),
}

/// What is kept of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The whole body as text.
    Whole,
    /// The value that a JSON pointer names.
    One(String),
    /// The values that JSON pointers name, in one object.
    Several(Vec<String>),
}

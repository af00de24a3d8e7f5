//! The headers of a request, with secrets that are read for it alone.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use definitions::http::{Header, SecretPlace};
use definitions::template::Template;
use proto::call::ToolCall;
use proto::tool::Effect;
use reqwest::header::{ACCEPT, HeaderMap, HeaderName, HeaderValue, USER_AGENT};

use super::Places;

/// Longest secret in a file.
const LONGEST_SECRET: u64 = 64 * 1024;
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Headers, and the secrets that are in them.
pub(super) struct Headers {
    pub(super) map: HeaderMap,
    pub(super) secrets: Vec<String>,
}

/// What every request of ours carries.
pub(super) fn ours(accept: &'static str) -> HeaderMap {
    let agent = concat!("systole/", env!("CARGO_PKG_VERSION"));
    HeaderMap::from_iter([
        (USER_AGENT, HeaderValue::from_static(agent)),
        (ACCEPT, HeaderValue::from_static(accept)),
    ])
}

/// The headers for one call. No error shows a secret.
pub(super) fn headers(
    wanted: &[(String, Header)],
    accept: &'static str,
    places: &Places,
    call: &ToolCall,
) -> Result<Headers, String> {
    let mut map = ours(accept);
    let mut secrets = Vec::new();
    if call.terms.effect == Effect::Idempotent {
        let key = HeaderValue::from_str(&call.idempotency_key);
        map.extend(key.ok().map(|key| (IDEMPOTENCY_KEY, key)));
    }
    for (name, header) in wanted {
        let value = match header {
            Header::Template(text) => match Template::parse(text).fill(&call.arguments) {
                Some(text) => value(&text, name)?,
                None => continue,
            },
            Header::Secret { from, prefix } => {
                let secret = secret(from, places)?;
                let mut value = value(&format!("{prefix}{secret}"), name)?;
                value.set_sensitive(true);
                secrets.push(secret);
                value
            }
        };
        let name = HeaderName::from_bytes(name.as_bytes())
            .map_err(|_bad| format!("the tool's header `{name}` has no valid name"))?;
        map.insert(name, value);
    }
    Ok(Headers { map, secrets })
}

/// A value is one line: a line break would begin another header.
fn value(text: &str, name: &str) -> Result<HeaderValue, String> {
    HeaderValue::from_bytes(text.as_bytes()).map_err(|_bad| {
        format!("the value for the header `{name}` has a line break or a control character in it")
    })
}

pub(in crate::executor) fn secret(from: &SecretPlace, places: &Places) -> Result<String, String> {
    let (text, place) = match from {
        SecretPlace::Env(name) => {
            let found = places.environment.get(&OsString::from(name));
            let place = format!("the environment variable {name}");
            let text = found.and_then(|value| value.to_str()).map(str::to_owned);
            (text.ok_or_else(|| format!("{place}, which the tool needs, is not set"))?, place)
        }
        SecretPlace::File(path) => {
            let place = format!("the file `{}`", path.display());
            let text = read(&places.folder.join(path));
            (text.map_err(|why| format!("{place}, which the tool needs: {why}"))?, place)
        }
    };
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() {
        return Err(format!("{place}, which the tool needs, is empty"));
    }
    Ok(text.to_owned())
}

fn read(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    let read = file.take(LONGEST_SECRET).read_to_string(&mut text);
    read.map(|_| text).map_err(|error| error.to_string())
}

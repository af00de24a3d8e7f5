//! Takes a URL template apart: what the file fixes, and what a call may fill.

use crate::http::QueryPart;
use crate::template::Template;

/// A URL in parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub(crate) origin: String,
    pub(crate) path: String,
    pub(crate) query: Vec<QueryPart>,
}

/// What is wrong with a URL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Bad {
    pub(crate) expected: &'static str,
    pub(crate) found: String,
    pub(crate) fix: &'static str,
}

fn bad(expected: &'static str, found: impl Into<String>, fix: &'static str) -> Bad {
    Bad { expected, found: found.into(), fix }
}

/// Takes it apart. Only the path and values of the query may have holes.
pub(crate) fn split(url: &str) -> Result<Parts, Bad> {
    if let Some(c) = url.chars().find(|c| c.is_whitespace() || c.is_control() || *c == '\\') {
        let found = format!("{c:?} in it");
        return Err(bad("a URL", found, "percent-encode it, such as %20 for a blank"));
    }
    let (scheme, rest) = url.split_once("://").ok_or_else(|| no_scheme(url))?;
    if !["http", "https"].contains(&scheme) {
        return Err(no_scheme(scheme));
    }
    if url.contains('#') {
        let fix = "leave it out, or write %23 if it belongs to the path";
        return Err(bad("a URL without a fragment", "`#`", fix));
    }
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
    check_authority(authority)?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let path = if path.is_empty() { "/" } else { path };
    Ok(Parts {
        origin: format!("{scheme}://{authority}"),
        path: path.to_owned(),
        query: parse_query(query)?,
    })
}

fn no_scheme(found: &str) -> Bad {
    let found = format!("`{}`", found.chars().take(40).collect::<String>());
    bad("a URL that begins with http:// or https://", found, "write `https://host/path`")
}

fn check_authority(authority: &str) -> Result<(), Bad> {
    if authority.contains(['{', '}']) {
        let fix = "write the host out: a model must not choose whom the tool talks to";
        return Err(bad("a fixed host and port", format!("`{authority}`"), fix));
    }
    if authority.contains('@') {
        let fix = "write `headers: { Authorization: { env: NAME } }`";
        return Err(bad("a URL without credentials", "a user or a password", fix));
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    };
    let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|port| port > 0));
    if is_host(host) && is_port {
        return Ok(());
    }
    let found = format!("`{authority}`");
    Err(bad("a host, and a port if it has one", found, "write such as api.example.com:8443"))
}

fn is_host(host: &str) -> bool {
    if let Some(inner) = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        return inner.parse::<core::net::Ipv6Addr>().is_ok();
    }
    let ok = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.' || c == '_';
    !host.is_empty() && host.chars().all(ok)
}

fn parse_query(query: &str) -> Result<Vec<QueryPart>, Bad> {
    let parts = query.split('&').filter(|part| !part.is_empty()).map(|part| {
        let (name, value) =
            part.split_once('=').map_or((part, None), |(name, value)| (name, Some(value)));
        if Template::parse(name).names().next().is_some() {
            let fix = "write `name={argument}`; only values are filled";
            return Err(bad("fixed names in the query", format!("`{part}`"), fix));
        }
        Ok(QueryPart { name: name.to_owned(), value: value.map(str::to_owned) })
    });
    parts.collect()
}

/// Percent-encodes everything but letters, digits and `-._~`, so that no byte has a meaning in a
/// path or a query.
pub fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            encoded.extend(digits(byte));
        }
    }
    encoded
}

fn digits(byte: u8) -> [char; 2] {
    let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
    [digit(byte >> 4).to_ascii_uppercase(), digit(byte & 15).to_ascii_uppercase()]
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(url: &str, expected: &Expect) {
        let line = match split(url) {
            Ok(Parts { origin, path, query }) => {
                let query: Vec<String> = query
                    .into_iter()
                    .map(|part| format!("{} -> {:?}", part.name, part.value))
                    .collect();
                format!("{origin} | {path} | {}", query.join(", "))
            }
            Err(Bad { expected, found, fix }) => format!("{expected}; {found}; {fix}"),
        };
        expected.assert_eq(&line);
    }

    #[test]
    fn a_url_is_taken_apart() {
        check("https://api.example.com", &expect!["https://api.example.com | / | "]);
        check(
            "http://[::1]:80/a/{b}?c={d}&flag&e=",
            &expect![[
                r#"http://[::1]:80 | /a/{b} | c -> Some("{d}"), flag -> None, e -> Some("")"#
            ]],
        );
        check("https://h?x={y}", &expect![[r#"https://h | / | x -> Some("{y}")"#]]);
    }

    #[test]
    fn whom_a_tool_talks_to_is_fixed() {
        check(
            "https://{host}/a",
            &expect![
                "a fixed host and port; `{host}`; write the host out: a model must not choose whom the tool talks to"
            ],
        );
        check(
            "https://h:{port}/a",
            &expect![
                "a fixed host and port; `h:{port}`; write the host out: a model must not choose whom the tool talks to"
            ],
        );
        check(
            "{scheme}://h/a",
            &expect![
                "a URL that begins with http:// or https://; `{scheme}`; write `https://host/path`"
            ],
        );
        check(
            "file:///etc/passwd",
            &expect![
                "a URL that begins with http:// or https://; `file`; write `https://host/path`"
            ],
        );
        check(
            "https://u:secret@h/",
            &expect![
                "a URL without credentials; a user or a password; write `headers: { Authorization: { env: NAME } }`"
            ],
        );
        check(
            r"https://h\{a}/",
            &expect![[r"a URL; '\\' in it; percent-encode it, such as %20 for a blank"]],
        );
        check(
            "https://h:99999/",
            &expect![
                "a host, and a port if it has one; `h:99999`; write such as api.example.com:8443"
            ],
        );
        check(
            "https:///a",
            &expect!["a host, and a port if it has one; ``; write such as api.example.com:8443"],
        );
        check(
            "https://h/a?{b}=1",
            &expect![
                "fixed names in the query; `{b}=1`; write `name={argument}`; only values are filled"
            ],
        );
        check(
            "https://h/a#{b}",
            &expect![
                "a URL without a fragment; `#`; leave it out, or write %23 if it belongs to the path"
            ],
        );
    }

    #[test]
    fn every_byte_with_a_meaning_is_encoded() {
        assert_eq!(encode("a-b._~Z9"), "a-b._~Z9");
        assert_eq!(encode("/?#&=%+ @:é\n"), "%2F%3F%23%26%3D%25%2B%20%40%3A%C3%A9%0A");
    }
}

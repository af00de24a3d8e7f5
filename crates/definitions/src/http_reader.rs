//! Reads `http:`.

use std::collections::BTreeSet;

use crate::fields::Fields;
use crate::http::{Body, Header, HttpRun, Method, Pick, QueryPart, SecretPlace};
use crate::http_url;
use crate::problem::Report;
use crate::run::Surroundings;
use crate::run_reader::{
    FILE, MAX_OUTPUT_BYTES, MOST_OUTPUT_BYTES, URL, joined, scalar, variables,
};
use crate::template::Template;
use crate::yaml::{Kind, Node, Place};

/// Headers that the client writes by itself, or that would change how the request is framed.
const OURS: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-connection",
];

/// Templates with their places.
type Templates<'n> = Vec<(Template, Place<'n>)>;

/// Reads a map, or a text, which is the URL.
pub(crate) fn read<'n>(
    at: &Place<'n>,
    method: Method,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<(HttpRun, Templates<'n>)> {
    let mut templates = Vec::new();
    if at.node().as_text().is_some() {
        let (origin, path, query) = url(at, around, &mut templates, report)?;
        let run = HttpRun {
            method,
            origin,
            path,
            query,
            headers: Vec::new(),
            body: default_body(method),
            result: Pick::Whole,
            success: Vec::new(),
            max_output_bytes: MAX_OUTPUT_BYTES,
            private: false,
            is_probe: false,
        };
        return Some((run, templates));
    }
    let mut fields = Fields::of(at, report)?;
    let run = request(&mut fields, method, around, &mut templates, report);
    fields.close(report);
    Some((run?, templates))
}

fn request<'n>(
    fields: &mut Fields<'n>,
    method: Method,
    around: &Surroundings<'_>,
    templates: &mut Templates<'n>,
    report: &mut Report,
) -> Option<HttpRun> {
    let method = fields.get("method").map_or(Some(method), |at| at.choice(Method::ALL, report));
    let url = fields
        .required("url", "where to ask: `https://…`", report)
        .and_then(|at| url(&at, around, templates, report));
    let more = fields.get("query").map_or(Some(Vec::new()), |at| query(&at, templates, report));
    let headers = fields
        .get("headers")
        .map_or(Some(Vec::new()), |at| headers(&at, around, templates, report));
    let body = body(fields, method, templates, report);
    let result = fields.get("result").map_or(Some(Pick::Whole), |at| pick(&at, report));
    let success = fields.get("success").map_or(Some(Vec::new()), |at| statuses(&at, report));
    let most = fields
        .get("max_output_bytes")
        .map_or(Some(MAX_OUTPUT_BYTES), |at| at.whole(1, MOST_OUTPUT_BYTES, report));
    let private = fields.get("private").map_or(Some(false), |at| at.truth(report));
    let (origin, path, mut query) = url?;
    query.extend(more?);
    Some(HttpRun {
        method: method?,
        origin,
        path,
        query,
        headers: headers?,
        body: body?,
        result: result?,
        success: success?,
        max_output_bytes: most?,
        private: private?,
        is_probe: false,
    })
}

type Url = (String, String, Vec<QueryPart>);

fn url<'n>(
    at: &Place<'n>,
    around: &Surroundings<'_>,
    templates: &mut Templates<'n>,
    report: &mut Report,
) -> Option<Url> {
    let text = variables(at, at.words(report)?, &URL, around, report)?;
    match http_url::split(&text) {
        Ok(parts) => {
            templates.push((Template::parse(&text), at.clone()));
            Some((parts.origin, parts.path, parts.query))
        }
        Err(bad) => {
            report.broken(at, bad.expected, bad.found, bad.fix);
            None
        }
    }
}

fn query<'n>(
    at: &Place<'n>,
    templates: &mut Templates<'n>,
    report: &mut Report,
) -> Option<Vec<QueryPart>> {
    let parts: Vec<Option<QueryPart>> = entries(at, report)?
        .into_iter()
        .map(|(name, place)| {
            fixed(&place, name, "name", report)?;
            let template = Template::parse(&scalar(&place, report)?);
            let value = Some(template.with_text(http_url::encode));
            templates.push((template, place));
            Some(QueryPart { name: http_url::encode(name), value })
        })
        .collect();
    parts.into_iter().collect()
}

fn entries<'n>(at: &Place<'n>, report: &mut Report) -> Option<Vec<(&'n str, Place<'n>)>> {
    let Kind::Map(entries) = &at.node().kind else {
        report.wrong(at, "a map of names and values", "write `name: value` lines here");
        return None;
    };
    let places = entries.iter().map(|entry| {
        let name = entry.name.as_str();
        (name, at.child(name, &entry.node))
    });
    Some(places.collect())
}

/// A name is the file's, never the model's.
fn fixed(place: &Place<'_>, name: &str, what: &str, report: &mut Report) -> Option<()> {
    if Template::parse(name).names().next().is_none() {
        return Some(());
    }
    let fix = format!("write the {what} out; only values are filled");
    report.broken(place, format!("a fixed {what}"), format!("`{name}`"), fix);
    None
}

pub(crate) fn headers<'n>(
    at: &Place<'n>,
    around: &Surroundings<'_>,
    templates: &mut Templates<'n>,
    report: &mut Report,
) -> Option<Vec<(String, Header)>> {
    let mut seen = BTreeSet::new();
    let headers: Vec<Option<(String, Header)>> = entries(at, report)?
        .into_iter()
        .map(|(name, place)| {
            let known = header_name(&place, name, report);
            if !seen.insert(name.to_ascii_lowercase()) {
                let found = format!("`{name}` a second time");
                report.broken(&place, "each header once", found, "leave one of them out");
            }
            let header = header(&place, around, templates, report);
            known.and(header).map(|header| (name.to_owned(), header))
        })
        .collect();
    headers.into_iter().collect()
}

fn header_name(place: &Place<'_>, name: &str, report: &mut Report) -> Option<()> {
    fixed(place, name, "header name", report)?;
    let ok = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(ok) {
        let found = format!("`{name}`");
        report.broken(place, "a header name", found, "use letters, digits and hyphens");
        return None;
    }
    if OURS.contains(&name.to_ascii_lowercase().as_str()) {
        let found = format!("`{name}`, which the client writes");
        report.broken(place, "a header that a tool may set", found, "leave it out");
        return None;
    }
    Some(())
}

fn header<'n>(
    place: &Place<'n>,
    around: &Surroundings<'_>,
    templates: &mut Templates<'n>,
    report: &mut Report,
) -> Option<Header> {
    if let Kind::Map(_) = place.node().kind {
        return secret(place, around, report);
    }
    let text = scalar(place, report)?;
    if text.chars().any(|c| c.is_control() && c != '\t') {
        report.wrong(place, "one line", "write it without line breaks");
        return None;
    }
    templates.push((Template::parse(&text), place.clone()));
    Some(Header::Template(text))
}

pub(crate) fn secret(
    place: &Place<'_>,
    around: &Surroundings<'_>,
    report: &mut Report,
) -> Option<Header> {
    let mut fields = Fields::of(place, report)?;
    let from = fields.either(&[("env", true), ("file", false)], report);
    let prefix = match fields.get("prefix") {
        Some(at) => at.text(report).map(str::to_owned),
        None => Some(String::new()),
    };
    fields.close(report);
    let Some((is_variable, at)) = from else {
        let fix = "write `{ env: NAME }` or `{ file: path }`";
        report.wrong(place, "where the secret lies", fix);
        return None;
    };
    let text = at.words(report)?;
    let from = if is_variable {
        SecretPlace::Env(text.to_owned())
    } else {
        let text = variables(&at, text, &FILE, around, report)?;
        SecretPlace::File(joined(around.folder, &text))
    };
    Some(Header::Secret { from, prefix: prefix? })
}

fn default_body(method: Method) -> Body {
    if method.has_body() { Body::Arguments } else { Body::None }
}

fn body<'n>(
    fields: &mut Fields<'n>,
    method: Option<Method>,
    templates: &mut Templates<'n>,
    report: &mut Report,
) -> Option<Body> {
    let at = fields.get("body");
    let method = method?;
    let Some(at) = at else { return Some(default_body(method)) };
    if method.only_reads() {
        let fix = "write `method: POST`, or put the values into `query`";
        report.wrong(&at, "no body for a method that only reads", fix);
        return None;
    }
    let is_json = match &at.node().kind {
        Kind::Map(_) | Kind::List(_) => true,
        Kind::Text(text) => Template::parse(text).hole().is_some(),
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => false,
    };
    if !is_json {
        let fix = "write fields with `\"{argument}\"`, or one `\"{argument}\"` that is the body";
        report.wrong(&at, "a JSON object or list", fix);
        return None;
    }
    json(&at, templates, report)?;
    Some(Body::Template(at.node().to_json()))
}

fn json<'n>(at: &Place<'n>, templates: &mut Templates<'n>, report: &mut Report) -> Option<()> {
    match &at.node().kind {
        Kind::Null | Kind::Bool(_) | Kind::Number(_) => Some(()),
        Kind::Text(text) => {
            templates.push((Template::parse(text), at.clone()));
            Some(())
        }
        Kind::List(items) => {
            let places = items.iter().enumerate().map(|(index, item)| at.item(index, item));
            let read: Vec<_> = places.map(|place| json(&place, templates, report)).collect();
            read.into_iter().collect()
        }
        Kind::Map(_) => {
            let entries = entries(at, report)?.into_iter();
            let read: Vec<_> = entries
                .map(|(name, place)| {
                    fixed(&place, name, "field name", report)?;
                    json(&place, templates, report)
                })
                .collect();
            read.into_iter().collect()
        }
    }
}

fn pick(at: &Place<'_>, report: &mut Report) -> Option<Pick> {
    if at.node().as_text().is_some() {
        return pointer(at, report).map(Pick::One);
    }
    let items = at.list(report)?;
    if items.is_empty() {
        report.wrong(at, "at least one JSON pointer", "write such as `[/id, /status]`");
        return None;
    }
    let pointers: Option<Vec<String>> = items.iter().map(|item| pointer(item, report)).collect();
    pointers.map(Pick::Several)
}

fn pointer(at: &Place<'_>, report: &mut Report) -> Option<String> {
    let text = at.text(report)?;
    if text.is_empty() || text.starts_with('/') {
        return Some(text.to_owned());
    }
    let fix = format!("write `/{}`", text.trim_start_matches("$.").replace('.', "/"));
    report.wrong(at, "a JSON pointer", fix);
    None
}

fn statuses(at: &Place<'_>, report: &mut Report) -> Option<Vec<u16>> {
    let one = |place: &Place<'_>, report: &mut Report| {
        place.whole(200, 599, report).and_then(|status| u16::try_from(status).ok())
    };
    if let Node { kind: Kind::Number(_), .. } = at.node() {
        return one(at, report).map(|status| vec![status]);
    }
    at.list(report)?.iter().map(|item| one(item, report)).collect()
}

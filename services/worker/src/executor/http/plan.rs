//! From a call to the request.

use definitions::http::{Body, HttpRun, Method, Pick};
use definitions::template::Template;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use serde_json::{Map, Value};

use super::super::Job;
use super::exchange::Request;
use super::{Places, address, headers};

/// A request, and the secrets in it.
pub(super) struct Plan {
    pub(super) request: Request,
    pub(super) secrets: Vec<String>,
}

/// Makes the request of a call; the error says what is in the way.
pub(super) fn plan(run: &HttpRun, places: &Places, job: &Job) -> Result<Plan, String> {
    let arguments = &job.call.arguments;
    let url = address::address(run, arguments)?;
    let accept = match &run.result {
        Pick::Whole => "*/*",
        Pick::One(_) | Pick::Several(_) => "application/json",
    };
    let mut headers = headers::headers(&run.headers, accept, places, &job.call)?;
    let body = body(&run.body, arguments)?;
    if body.is_some() && !headers.map.contains_key(CONTENT_TYPE) {
        headers.map.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let request = Request { method: method(run.method), url, headers: headers.map, body };
    Ok(Plan { request, secrets: headers.secrets })
}

/// The request in words, without its headers, which may hold secrets.
pub(in crate::executor) fn words(
    run: &HttpRun,
    arguments: &Map<String, Value>,
) -> Result<String, String> {
    let url = address::address(run, arguments)?;
    let body = body(&run.body, arguments)?.unwrap_or_default();
    let with = if body.is_empty() { "" } else { " with " };
    Ok(format!("{} {url}{with}{}", method(run.method), String::from_utf8_lossy(&body)))
}

fn method(method: Method) -> reqwest::Method {
    match method {
        Method::Get => reqwest::Method::GET,
        Method::Head => reqwest::Method::HEAD,
        Method::Post => reqwest::Method::POST,
        Method::Put => reqwest::Method::PUT,
        Method::Patch => reqwest::Method::PATCH,
        Method::Delete => reqwest::Method::DELETE,
    }
}

fn body(body: &Body, arguments: &Map<String, Value>) -> Result<Option<Vec<u8>>, String> {
    let value = match body {
        Body::None => return Ok(None),
        Body::Arguments => Value::Object(arguments.clone()),
        Body::Template(template) => {
            let filled = filled(template, arguments);
            filled.ok_or_else(|| "the argument that is the body is absent".to_owned())?
        }
    };
    serde_json::to_vec(&value).map(Some).map_err(|error| error.to_string())
}

/// The template with its holes filled; a field or an item whose argument is absent is left out.
fn filled(template: &Value, arguments: &Map<String, Value>) -> Option<Value> {
    match template {
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(template.clone()),
        Value::String(text) => {
            let template = Template::parse(text);
            match template.hole() {
                Some(name) => arguments.get(name).cloned(),
                None => template.fill(arguments).map(Value::String),
            }
        }
        Value::Array(items) => {
            Some(items.iter().filter_map(|item| filled(item, arguments)).collect())
        }
        Value::Object(fields) => {
            let fields = fields.iter().filter_map(|(name, field)| {
                filled(field, arguments).map(|field| (name.clone(), field))
            });
            Some(Value::Object(fields.collect()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_that_is_one_hole_becomes_the_value_itself() {
        let template = json!({
            "n": "{n}", "text": "at most {n}", "list": ["{a}", "{absent}", 1], "gone": "{absent}",
            "gone too": "x{absent}", "null": "{null}", "deep": {"o": "{o}"}, "plain": "{ x }",
        });
        let arguments = json!({"n": 3, "a": "b\"c", "null": null, "o": {"k": [true]}});
        let expected = json!({
            "n": 3, "text": "at most 3", "list": ["b\"c", 1], "null": null,
            "deep": {"o": {"k": [true]}}, "plain": "{ x }",
        });
        assert_eq!(filled(&template, arguments.as_object().unwrap()), Some(expected));
    }
}

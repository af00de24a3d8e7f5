//! From a URL template and a call's arguments to the address.
//!
//! A value is percent-encoded as a whole: it cannot end its path segment or its part of the query,
//! and it cannot become `.` or `..`, which every client and server would resolve.

use definitions::http::{HttpRun, QueryPart, encode};
use definitions::template::{Template, shown};
use reqwest::Url;
use serde_json::{Map, Value};

/// The address; the error says which argument is in the way.
pub(super) fn address(run: &HttpRun, arguments: &Map<String, Value>) -> Result<Url, String> {
    let segments: Result<Vec<String>, String> =
        run.path.split('/').map(|segment| filled(segment, arguments)).collect();
    let path = segments?.join("/");
    let query: Vec<String> = run.query.iter().flat_map(|part| parts(part, arguments)).collect();
    let mark = if query.is_empty() { "" } else { "?" };
    let text = format!("{}{path}{mark}{}", run.origin, query.join("&"));
    let address = parse(&text)?;
    let fixed = parse(&run.origin)?;
    if address.origin() != fixed.origin() || !address.username().is_empty() {
        return Err(format!("the arguments would lead away from {}", run.origin));
    }
    Ok(address)
}

fn parse(text: &str) -> Result<Url, String> {
    Url::parse(text).map_err(|error| format!("the tool's URL cannot be used: {error}"))
}

/// One segment of the path.
fn filled(segment: &str, arguments: &Map<String, Value>) -> Result<String, String> {
    let template = Template::parse(segment);
    let names: Vec<&str> = template.names().collect();
    let Some(name) = names.first() else { return Ok(segment.to_owned()) };
    let text = template.fill_with(arguments, encode).unwrap_or_default();
    if text.is_empty() {
        let names = names.join("`, `");
        return Err(format!("the URL needs the argument `{names}`, which is absent or empty"));
    }
    if is_dots(&text) {
        return Err(format!(
            "the argument `{name}` makes `{text}` of a part of the URL's path, which leads elsewhere"
        ));
    }
    Ok(text)
}

fn is_dots(segment: &str) -> bool {
    let plain = segment.to_ascii_lowercase().replace("%2e", ".");
    plain == "." || plain == ".."
}

/// One part of the query: left out without its argument, repeated for a list.
fn parts(part: &QueryPart, arguments: &Map<String, Value>) -> Vec<String> {
    let Some(value) = &part.value else { return vec![part.name.clone()] };
    let template = Template::parse(value);
    let list = template.hole().and_then(|name| arguments.get(name)).and_then(Value::as_array);
    let values: Vec<String> = match list {
        Some(items) => items.iter().filter_map(shown).map(|item| encode(&item)).collect(),
        None => template.fill_with(arguments, encode).into_iter().collect(),
    };
    values.into_iter().map(|value| format!("{}={value}", part.name)).collect()
}

#[cfg(test)]
mod tests {
    use definitions::http::{Body, Method, Pick};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn run(path: &str, query: &[(&str, &str)]) -> HttpRun {
        let part = |(name, value): &(&str, &str)| QueryPart {
            name: (*name).to_owned(),
            value: Some((*value).to_owned()),
        };
        HttpRun {
            method: Method::Get,
            origin: "https://api.example.com:8443".to_owned(),
            path: path.to_owned(),
            query: query.iter().map(part).collect(),
            headers: Vec::new(),
            body: Body::None,
            result: Pick::Whole,
            success: Vec::new(),
            max_output_bytes: 1000,
            private: false,
            is_probe: false,
        }
    }

    fn at(run: &HttpRun, arguments: Value) -> Result<String, String> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        address(run, &arguments).map(String::from)
    }

    #[test]
    fn a_value_fills_its_place_and_no_more() {
        let run = run("/orders/{id}/x", &[("q", "a{q}"), ("tag", "{tags}"), ("none", "{none}")]);
        let arguments = json!({"id": "a/b?c#d", "q": "1&z=2", "tags": ["x y", 3], "none": null});
        let expected =
            "https://api.example.com:8443/orders/a%2Fb%3Fc%23d/x?q=a1%26z%3D2&tag=x%20y&tag=3";
        assert_eq!(at(&run, arguments).unwrap(), expected);
    }

    #[test]
    fn a_part_of_the_path_is_there_and_leads_nowhere_else() {
        let run = run("/users/{id}", &[]);
        for arguments in [json!({}), json!({"id": null}), json!({"id": ""})] {
            let why = "the URL needs the argument `id`, which is absent or empty";
            assert_eq!(at(&run, arguments).unwrap_err(), why);
        }
        let why = "the argument `id` makes `..` of a part of the URL's path, which leads elsewhere";
        assert_eq!(at(&run, json!({"id": ".."})).unwrap_err(), why);
        let encoded = at(&run, json!({"id": "%2e%2E"})).unwrap();
        assert_eq!(encoded, "https://api.example.com:8443/users/%252e%252E");
    }

    fn value() -> impl Strategy<Value = String> {
        let tricky = prop::sample::select(vec![
            "/",
            "//evil.example",
            "@evil.example",
            ":99",
            "?",
            "#",
            "\\",
            "..",
            ".",
            "%2e",
            "\r\n",
            "\0",
            "[",
            "]",
            "é",
            " ",
            "&",
            "=",
            "x",
            "http://evil.example/",
            "\t",
        ]);
        prop_oneof![
            any::<String>(),
            prop::collection::vec(tricky, 0..6).prop_map(|parts| parts.concat()),
        ]
    }

    proptest! {
        #[test]
        fn no_value_changes_scheme_host_port_or_shape(a in value(), b in value()) {
            let run = run("/x/{a}/{b}{a}/end", &[("q", "{b}"), ("r", "1{a}")]);
            let Ok(text) = at(&run, json!({"a": a, "b": b})) else { return Ok(()) };
            let url = Url::parse(&text).unwrap();
            prop_assert_eq!(url.scheme(), "https");
            prop_assert_eq!(url.host_str(), Some("api.example.com"));
            prop_assert_eq!(url.port(), Some(8443));
            prop_assert_eq!((url.username(), url.password(), url.fragment()), ("", None, None));
            let segments: Vec<&str> = url.path_segments().unwrap().collect();
            prop_assert_eq!((segments.len(), segments[0], segments[3]), (4, "x", "end"));
            let pairs: Vec<(String, String)> = url.query_pairs().into_owned().collect();
            let expected =
                [("q".to_owned(), b), ("r".to_owned(), format!("1{a}"))];
            prop_assert_eq!(pairs, expected);
        }
    }
}

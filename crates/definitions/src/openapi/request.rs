//! From an operation to a tool of a manifest: its parameters, its request, what repeating does.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::operation::{Operation, follow};
use super::{Options, schema};
use crate::http::Method;

/// Longest description of a tool, in characters.
const LONGEST_WORDS: usize = 1000;
/// The argument that is the body.
const BODY: &str = "body";

/// The fields of a tool but its name, with notes; the error says why there is none.
pub(super) fn tool(
    document: &Value,
    operation: &Operation<'_>,
    options: &Options,
) -> Result<(Map<String, Value>, Vec<String>), String> {
    let mut draft = Draft { path: operation.path.to_owned(), ..Draft::default() };
    for parameter in operation.parameters(document) {
        draft.parameter(document, parameter, options)?;
    }
    if draft.path.split('/').any(|part| part.contains('{') && !draft.fills(part)) {
        return Err(format!("its path {} has a part that no parameter fills", operation.path));
    }
    draft.body(document, operation)?;
    draft.headers(document, operation, options);
    let server = server(document, operation, options)?;
    let parameters = schema::parameters(document, &draft.properties, &draft.required)?;
    let run = draft.run(operation, &server, options);
    let fields = json!({
        "description": description(operation),
        "parameters": parameters,
        "effect": effect(operation.method),
        "run": { "http": run },
    });
    let Value::Object(fields) = fields else { return Err("it cannot be written".to_owned()) };
    Ok((fields, draft.notes))
}

#[derive(Default)]
struct Draft {
    /// With holes under the names of arguments.
    path: String,
    query: Map<String, Value>,
    headers: Map<String, Value>,
    properties: Vec<(String, Value)>,
    required: Vec<String>,
    names: BTreeSet<String>,
    has_body: bool,
    notes: Vec<String>,
}

impl Draft {
    fn fills(&self, part: &str) -> bool {
        crate::template::Template::parse(part).names().all(|name| self.names.contains(name))
            && part.matches('{').count() == crate::template::Template::parse(part).names().count()
    }

    fn parameter(
        &mut self,
        document: &Value,
        parameter: &Map<String, Value>,
        options: &Options,
    ) -> Result<(), String> {
        let text = |key: &str| parameter.get(key).and_then(Value::as_str).unwrap_or_default();
        let (name, place) = (text("name"), text("in"));
        let is_required = parameter.get("required") == Some(&Value::Bool(true));
        match place {
            "path" => {
                let argument = self.argument(name, parameter, true);
                let hole = format!("{{{argument}}}");
                self.path = self.path.replace(&format!("{{{name}}}"), &hole);
            }
            "query" if is_odd(document, parameter) => {
                self.refuse(is_required, &format!("the query parameter `{name}`, which is written in a way that no template can"))?;
            }
            "query" => {
                let argument = self.argument(name, parameter, is_required);
                self.query.insert(name.to_owned(), Value::from(format!("{{{argument}}}")));
            }
            "header" if options.headers.keys().any(|known| known.eq_ignore_ascii_case(name)) => {}
            "header" if options.model_headers.iter().any(|known| known.eq_ignore_ascii_case(name)) => {
                let argument = self.argument(name, parameter, is_required);
                self.headers.insert(name.to_owned(), Value::from(format!("{{{argument}}}")));
            }
            "header" if ["accept", "content-type", "authorization"].contains(&name.to_ascii_lowercase().as_str()) => {}
            "header" => self.refuse(
                is_required,
                &format!("the header `{name}`, which a model may not choose: write it under `headers`, or its name under `model_headers`"),
            )?,
            _ => self.refuse(is_required, &format!("the {place} parameter `{name}`"))?,
        }
        Ok(())
    }

    /// Leaves a parameter out, unless the operation needs it.
    fn refuse(&mut self, is_required: bool, what: &str) -> Result<(), String> {
        if is_required {
            return Err(format!("it needs {what}"));
        }
        self.notes.push(format!("leaves out {what}"));
        Ok(())
    }

    /// A new argument, under a name that fits into a hole.
    fn argument(
        &mut self,
        name: &str,
        parameter: &Map<String, Value>,
        is_required: bool,
    ) -> String {
        let argument = self.free(name);
        let described = parameter.get("description").cloned();
        let content = parameter.get("content").and_then(Value::as_object);
        let content = content.and_then(|content| content.values().next()?.get("schema"));
        let mut schema = parameter.get("schema").or(content).cloned().unwrap_or_else(|| json!({}));
        if let (Some(words), Some(fields)) = (described, schema.as_object_mut()) {
            fields.insert("description".to_owned(), words);
        }
        self.properties.push((argument.clone(), schema));
        if is_required {
            self.required.push(argument.clone());
        }
        argument
    }

    fn free(&mut self, name: &str) -> String {
        let letter = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' };
        let mut argument: String = name.chars().map(letter).collect();
        if argument.is_empty() || argument.starts_with(|c: char| c.is_ascii_digit()) {
            argument.insert(0, '_');
        }
        while !self.names.insert(argument.clone()) {
            argument.push('_');
        }
        argument
    }

    fn body(&mut self, document: &Value, operation: &Operation<'_>) -> Result<(), String> {
        let Some(body) = operation.own.get("requestBody").and_then(|body| follow(document, body))
        else {
            return Ok(());
        };
        if operation.method.only_reads() {
            return Ok(());
        }
        let is_required = body.get("required") == Some(&Value::Bool(true));
        let content = body.get("content").and_then(Value::as_object);
        let json = content.into_iter().flatten().find(|(kind, _)| is_json(kind));
        let Some((kind, media)) = json else {
            let kinds: Vec<&str> =
                content.into_iter().flatten().map(|(kind, _)| kind.as_str()).collect();
            return self.refuse(is_required, &format!("a body of {}", kinds.join(" or ")));
        };
        if !kind.starts_with("application/json") {
            self.headers.insert("Content-Type".to_owned(), Value::from(kind.as_str()));
        }
        let schema = media.get("schema").cloned().unwrap_or_else(|| json!({ "type": "object" }));
        let argument = self.free(BODY);
        self.properties.push((argument.clone(), schema));
        self.required.push(argument);
        self.has_body = true;
        Ok(())
    }

    fn headers(&mut self, document: &Value, operation: &Operation<'_>, options: &Options) {
        self.headers.extend(options.headers.clone());
        let security = operation.own.get("security").or_else(|| document.get("security"));
        let asked = security.and_then(Value::as_array).filter(|all| !all.is_empty());
        let is_optional = asked.is_some_and(|all| all.iter().any(|one| *one == json!({})));
        let named = asked.into_iter().flatten().filter_map(Value::as_object);
        let schemes: Vec<&str> = named.flat_map(Map::keys).map(String::as_str).collect();
        let found = schemes.iter().find_map(|name| place_of(document, name));
        match (&options.auth, found) {
            (Some(auth), found) => {
                let (header, secret) = secret(auth, found);
                self.headers.insert(header, secret);
            }
            (None, _) if schemes.is_empty() || is_optional => {}
            (None, Some(_)) => self.notes.push(format!(
                "needs authentication ({}), and no secret is named: write `auth`",
                schemes.join(", ")
            )),
            (None, None) => self.notes.push(format!(
                "needs authentication ({}) in a way that is not supported",
                schemes.join(", ")
            )),
        }
    }

    fn run(&self, operation: &Operation<'_>, server: &str, options: &Options) -> Value {
        let methods = Method::ALL.iter();
        let method = methods.clone().find(|(_, method)| *method == operation.method);
        let mut run = Map::from_iter([
            ("method".to_owned(), Value::from(method.map_or("GET", |(word, _)| word))),
            ("url".to_owned(), Value::from(format!("{server}{}", self.path))),
        ]);
        if !self.query.is_empty() {
            run.insert("query".to_owned(), Value::Object(self.query.clone()));
        }
        if !self.headers.is_empty() {
            run.insert("headers".to_owned(), Value::Object(self.headers.clone()));
        }
        if self.has_body {
            let argument = self.properties.last().map_or(BODY, |(name, _)| name);
            run.insert("body".to_owned(), Value::from(format!("{{{argument}}}")));
        } else if operation.method.has_body() {
            // Without a body of its own, an operation would be sent its arguments a second time.
            run.insert("body".to_owned(), json!({}));
        }
        if options.private {
            run.insert("private".to_owned(), Value::from(true));
        }
        Value::Object(run)
    }
}

fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind == "application/json" || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// Whether a query parameter is written otherwise than as `name=value`, once for each value.
fn is_odd(document: &Value, parameter: &Map<String, Value>) -> bool {
    let schema = parameter.get("schema").and_then(|schema| follow(document, schema));
    let kind = schema.and_then(|schema| schema.get("type")).and_then(Value::as_str);
    let style = parameter.get("style").and_then(Value::as_str).unwrap_or("form");
    let explodes = parameter.get("explode") != Some(&Value::Bool(false));
    match kind {
        Some("array") => style != "form" || !explodes,
        Some("object") => true,
        Some(_) | None => false,
    }
}

/// The header of a security scheme and what stands before the secret.
fn place_of(document: &Value, name: &str) -> Option<(String, String)> {
    let scheme = document.get("components")?.get("securitySchemes")?.get(name)?;
    let scheme = follow(document, scheme)?;
    let text = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
    let authorization = |prefix: &str| Some(("Authorization".to_owned(), prefix.to_owned()));
    match (text("type"), text("scheme").to_ascii_lowercase().as_str(), text("in")) {
        ("http", "basic", _) => authorization("Basic "),
        ("http", "bearer", _) | ("oauth2" | "openIdConnect", _, _) => authorization("Bearer "),
        ("apiKey", _, "header") => Some((text("name").to_owned(), String::new())),
        _ => None,
    }
}

/// The header with its secret by reference; the manifest's word wins over the description's.
fn secret(auth: &Value, found: Option<(String, String)>) -> (String, Value) {
    let (header, prefix) =
        found.unwrap_or_else(|| ("Authorization".to_owned(), "Bearer ".to_owned()));
    let mut secret = auth.as_object().cloned().unwrap_or_default();
    let own = secret.remove("header").and_then(|name| name.as_str().map(str::to_owned));
    let prefix = if own.is_some() { String::new() } else { prefix };
    if !prefix.is_empty() {
        secret.entry("prefix").or_insert_with(|| Value::from(prefix));
    }
    (own.unwrap_or(header), Value::Object(secret))
}

fn server(
    document: &Value,
    operation: &Operation<'_>,
    options: &Options,
) -> Result<String, String> {
    if let Some(server) = &options.server {
        return Ok(server.trim_end_matches('/').to_owned());
    }
    let own = operation.own.get("servers").or_else(|| operation.item.get("servers"));
    let servers = own.or_else(|| document.get("servers")).and_then(Value::as_array);
    let first = servers.and_then(|all| all.first());
    let mut url = first.and_then(|one| one.get("url")?.as_str()).unwrap_or("/").to_owned();
    let variables = first.and_then(|one| one.get("variables")?.as_object());
    for (name, variable) in variables.into_iter().flatten() {
        let value = variable.get("default").and_then(Value::as_str).unwrap_or_default();
        url = url.replace(&format!("{{{name}}}"), value);
    }
    if !url.starts_with("http://") && !url.starts_with("https://") {
        return Err("the description does not say at which host it is: write `server: https://…`"
            .to_owned());
    }
    if url.contains(['{', '}']) {
        return Err(format!("its server {url} is not fixed: write `server: https://…`"));
    }
    Ok(url.trim_end_matches('/').to_owned())
}

/// Methods say what repeating does, as far as servers keep to it.
fn effect(method: Method) -> &'static str {
    match method {
        Method::Get | Method::Head => "read_only",
        Method::Put | Method::Delete => "idempotent",
        Method::Post | Method::Patch => "irreversible",
    }
}

fn description(operation: &Operation<'_>) -> String {
    let text =
        |key: &str| operation.own.get(key).and_then(Value::as_str).unwrap_or_default().trim();
    let (summary, words) = (text("summary"), text("description"));
    let both = match (summary.is_empty(), words.is_empty()) {
        (true, true) => format!("Asks {} {}.", operation.id, operation.path),
        (true, false) => words.to_owned(),
        (false, true) => summary.to_owned(),
        (false, false) if words.starts_with(summary) => words.to_owned(),
        (false, false) => format!("{summary}. {words}"),
    };
    let is_old = operation.own.get("deprecated") == Some(&Value::Bool(true));
    let both = if is_old { format!("Deprecated. {both}") } else { both };
    both.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(LONGEST_WORDS).collect()
}

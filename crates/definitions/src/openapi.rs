//! The operations of an `OpenAPI` description, version 3.0 or 3.1, as tools.
//!
//! An operation becomes a tool with an `http:` run: parameters of the path and the query and the body
//! become one schema, values fill holes that the description fixes. What would let a model choose a
//! header, a cookie or a host is left out unless the manifest asks for it. The description is data of
//! a stranger: it is bounded, its references are followed inside it only, and never in circles.
//!
//! Reading order: [`tools`] · `operation` finds operations · `request` makes the run · `schema` makes
//! parameters a model can fill.

mod operation;
mod request;
mod schema;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use operation::Operation;

/// Longest name of a tool.
const LONGEST_NAME: usize = 64;

/// Which operations become tools.
#[derive(Clone, Debug)]
pub enum Chosen<'a> {
    /// Every one that can.
    All,
    /// Those with one of these tags.
    Tagged(&'a [String]),
    /// Those with these names.
    Named(Vec<&'a str>),
}

/// What the manifest says of a description as a whole.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Where the API is, when the description is not believed.
    pub server: Option<String>,
    /// A secret by reference, `{ env: NAME }` or `{ file: path }`, with `header` and `prefix` when the
    /// description does not say them.
    pub auth: Option<Value>,
    /// Headers of every request.
    pub headers: Map<String, Value>,
    /// Whether its host may lie in a private network.
    pub private: bool,
    /// Header parameters that a model may fill.
    pub model_headers: Vec<String>,
}

/// What became of a description.
#[derive(Clone, Debug, Default)]
pub struct Tools {
    /// The tools.
    pub tools: Vec<OperationTool>,
    /// Chosen operations that cannot be tools, with the reason.
    pub left_out: Vec<(String, String)>,
}

/// One operation as a tool.
#[derive(Clone, Debug)]
pub struct OperationTool {
    /// The operation's name in the description.
    pub operation: String,
    /// The tool, as it would stand in a manifest.
    pub fields: Map<String, Value>,
    /// What a person should know before the tool is used.
    pub notes: Vec<String>,
}

/// A description as JSON, from JSON or YAML.
pub fn parse(name: &str, text: &str) -> Result<Value, String> {
    crate::sources::parse(name, text)
}

/// The chosen operations as tools; the error says why the document is no description.
pub fn tools(document: &Value, chosen: &Chosen<'_>, options: &Options) -> Result<Tools, String> {
    check_version(document)?;
    let all = operation::all(document);
    let mut made = Tools::default();
    let mut names = BTreeSet::new();
    for operation in all.iter().filter(|operation| is_chosen(operation, chosen)) {
        match request::tool(document, operation, options) {
            Ok((mut fields, notes)) => {
                let name = free_name(&operation.id, &mut names);
                fields.insert("name".to_owned(), Value::from(name));
                made.tools.push(OperationTool { operation: operation.id.clone(), fields, notes });
            }
            Err(why) => made.left_out.push((operation.id.clone(), why)),
        }
    }
    if let Chosen::Named(wanted) = chosen {
        let missing = wanted.iter().filter(|name| !all.iter().any(|one| one.is_named(name)));
        for name in missing {
            made.left_out.push(((*name).to_owned(), missing_words(name, &all)));
        }
        // The names of the manifest are the ones it is told about.
        for tool in &mut made.tools {
            if let Some(name) = wanted.iter().find(|name| is_alias(&tool.operation, name)) {
                tool.operation = (*name).to_owned();
            }
        }
    }
    Ok(made)
}

fn is_chosen(operation: &Operation<'_>, chosen: &Chosen<'_>) -> bool {
    match chosen {
        Chosen::All => true,
        Chosen::Tagged(tags) => operation.tags().any(|tag| tags.iter().any(|one| one == tag)),
        Chosen::Named(names) => names.iter().any(|name| operation.is_named(name)),
    }
}

fn is_alias(operation: &str, name: &str) -> bool {
    operation == name || tool_name(operation) == name
}

fn missing_words(name: &str, all: &[Operation<'_>]) -> String {
    let known = all.iter().map(|operation| operation.id.as_str());
    let near = argument_check::nearest(name, known);
    let hint = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    format!("the description has no operation of that name{hint}")
}

fn check_version(document: &Value) -> Result<(), String> {
    match document.get("openapi").and_then(Value::as_str) {
        Some(version) if version.starts_with("3.0") || version.starts_with("3.1") => Ok(()),
        Some(version) => Err(format!("version {version}")),
        None if document.get("swagger").is_some() => {
            Err("a Swagger 2.0 file, which a converter makes into OpenAPI 3".to_owned())
        }
        None => Err("a file without `openapi: 3.…`".to_owned()),
    }
}

/// A name that models can send, from any other.
pub fn tool_name(text: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let name: String = text.chars().map(letter).take(LONGEST_NAME).collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

fn free_name(id: &str, names: &mut BTreeSet<String>) -> String {
    let name = tool_name(id);
    let mut candidate = name.clone();
    let mut number: u32 = 1;
    while !names.insert(candidate.clone()) {
        number = number.saturating_add(1);
        let end = format!("_{number}");
        let room = LONGEST_NAME.saturating_sub(end.len());
        candidate = name.chars().take(room).collect::<String>() + &end;
    }
    candidate
}

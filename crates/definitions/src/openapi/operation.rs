//! The operations of a description, and what its references point to.

use serde_json::{Map, Value};

use crate::http::Method;

/// A reference to a reference to a reference …
const MOST_HOPS: usize = 16;
/// The most operations of one description.
const MOST_OPERATIONS: usize = 5000;

const METHODS: [(&str, Method); 6] = [
    ("get", Method::Get),
    ("head", Method::Head),
    ("post", Method::Post),
    ("put", Method::Put),
    ("patch", Method::Patch),
    ("delete", Method::Delete),
];

/// One operation.
pub(super) struct Operation<'d> {
    /// Its `operationId`, or a name made of method and path.
    pub(super) id: String,
    pub(super) method: Method,
    pub(super) path: &'d str,
    /// The path's own fields.
    pub(super) item: &'d Map<String, Value>,
    /// The operation's own fields.
    pub(super) own: &'d Map<String, Value>,
}

impl<'d> Operation<'d> {
    pub(super) fn is_named(&self, name: &str) -> bool {
        super::is_alias(&self.id, name)
    }

    pub(super) fn tags(&self) -> impl Iterator<Item = &'d str> {
        let tags = self.own.get("tags").and_then(Value::as_array);
        tags.into_iter().flatten().filter_map(Value::as_str)
    }

    /// The parameters of the operation, then those of its path that it does not replace.
    pub(super) fn parameters(&self, document: &'d Value) -> Vec<&'d Map<String, Value>> {
        let of = |fields: &'d Map<String, Value>| {
            let list = fields.get("parameters").and_then(Value::as_array);
            list.into_iter().flatten().filter_map(|one| follow(document, one)?.as_object())
        };
        let mut all: Vec<&Map<String, Value>> = of(self.own).collect();
        for parameter in of(self.item) {
            let same = |known: &&Map<String, Value>| {
                ["name", "in"].iter().all(|key| known.get(*key) == parameter.get(*key))
            };
            if !all.iter().any(same) {
                all.push(parameter);
            }
        }
        all
    }
}

/// Every operation, in the order of the paths.
pub(super) fn all(document: &Value) -> Vec<Operation<'_>> {
    let paths = document.get("paths").and_then(Value::as_object);
    let mut all = Vec::new();
    for (path, item) in paths.into_iter().flatten() {
        let Some(item) = follow(document, item).and_then(Value::as_object) else { continue };
        for (word, method) in METHODS {
            let Some(own) = item.get(word).and_then(Value::as_object) else { continue };
            if all.len() >= MOST_OPERATIONS {
                return all;
            }
            let named = own.get("operationId").and_then(Value::as_str).filter(|id| !id.is_empty());
            let id = named
                .map_or_else(|| format!("{word}{}", path.replace(['{', '}'], "")), str::to_owned);
            all.push(Operation { id, method, path, item, own });
        }
    }
    all
}

/// What a value is after its references; nothing for one that leads outside or nowhere.
pub(super) fn follow<'d>(document: &'d Value, value: &'d Value) -> Option<&'d Value> {
    let mut value = value;
    for _ in 0..MOST_HOPS {
        let Some(reference) = reference(value) else { return Some(value) };
        value = target(document, reference)?;
    }
    None
}

/// The reference that a value is.
pub(super) fn reference(value: &Value) -> Option<&str> {
    value.get("$ref").and_then(Value::as_str)
}

/// What a reference inside the document points to.
pub(super) fn target<'d>(document: &'d Value, reference: &str) -> Option<&'d Value> {
    let pointer = reference.strip_prefix('#')?;
    document.pointer(&decoded(pointer))
}

/// A pointer in a fragment may be percent-encoded.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex =
            |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        if let (b'%', [high, low, tail @ ..]) = (first, after)
            && let (Some(high), Some(low)) = (hex(high), hex(low))
        {
            bytes.push((high << 4) | low);
            rest = tail;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

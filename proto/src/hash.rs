//! Hashes over canonical JSON, so that equal values hash equally whatever their key order.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::ids::{ArgumentsHash, ArtifactId, Fingerprint};

/// Lowercase hex of the SHA-256 of `bytes`.
pub fn sha256_hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().flat_map(|byte| [hex_digit(byte >> 4), hex_digit(byte & 15)]).collect()
}

fn hex_digit(nibble: u8) -> char {
    char::from_digit(u32::from(nibble), 16).unwrap_or('0')
}

/// The text of a value with object keys sorted and no blanks.
///
/// Numbers keep the form `serde_json` gives them: `1` and `1.0` stay different.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    text
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => write_object(map, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            out.push_str(&value.to_string());
        }
    }
}

fn write_object(map: &Map<String, Value>, out: &mut String) {
    let mut keys: Vec<&String> = map.keys().collect();
    keys.sort();
    out.push('{');
    for (i, key) in keys.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        out.push_str(&Value::String(key.clone()).to_string());
        out.push(':');
        write_canonical(map.get(key).unwrap_or(&Value::Null), out);
    }
    out.push('}');
}

/// The hash that approvals, caches and repeated-call detection use.
pub fn arguments_hash(arguments: &Map<String, Value>) -> ArgumentsHash {
    let mut text = String::new();
    write_object(arguments, &mut text);
    ArgumentsHash::new(sha256_hex(text.as_bytes()))
        .unwrap_or_else(|_| unreachable!("hex of a digest"))
}

/// The address of a payload.
pub fn artifact_id(bytes: &[u8]) -> ArtifactId {
    ArtifactId::new(sha256_hex(bytes)).unwrap_or_else(|_| unreachable!("hex of a digest"))
}

/// The fingerprint of anything that has a canonical text.
pub fn fingerprint(text: &str) -> Fingerprint {
    Fingerprint::new(sha256_hex(text.as_bytes()))
        .unwrap_or_else(|_| unreachable!("hex of a digest"))
}

//! docker-compose.yml against the schema of the Compose Specification.

#![cfg(test)]

use std::path::Path;

use jsonschema::{Draft, Validator};
use serde_json::Value;

fn schema() -> Validator {
    let mut schema: Value =
        serde_json::from_str(include_str!("fixtures/compose-spec.json")).unwrap();
    // The schema names its dialect by an address that no validator knows; it is draft 7.
    schema.as_object_mut().unwrap().remove("$schema");
    jsonschema::options().with_draft(Draft::Draft7).build(&schema).unwrap()
}

fn compose() -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docker-compose.yml")).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

fn wrongs(file: &Value) -> Vec<String> {
    schema().iter_errors(file).map(|error| format!("{}: {error}", error.instance_path())).collect()
}

#[test]
fn the_file_is_what_the_compose_specification_allows() {
    assert_eq!(wrongs(&compose()), Vec::<String>::new());
}

#[test]
fn what_an_engine_would_refuse_is_found() {
    let mut file = compose();
    file["services"]["nats"]["healthcheck"]["tries"] = Value::from(3);
    file["services"]["redis"]["ports"] = Value::from("6379");
    let wrongs = wrongs(&file);
    assert_eq!(wrongs.len(), 2, "{wrongs:#?}");
    assert!(wrongs.iter().any(|wrong| wrong.contains("'tries'")), "{wrongs:#?}");
    assert!(wrongs.iter().any(|wrong| wrong.contains("/redis/ports")), "{wrongs:#?}");
}

//! What the gateway says of itself in `/openapi.json`, held against what it does.

use expect_test::expect_file;
use jsonschema::Draft;
use serde_json::{Value, json};

use crate::client::Answer;
use crate::world::World;

/// Fails if an answer is not as the document says; every answer of these tests passes here.
pub(crate) fn hold(line: &str, answer: &Answer) {
    let document = gateway::openapi::document();
    let (method, path) = line.split_once(' ').unwrap();
    let path = path.split('?').next().unwrap();
    let all = document["paths"].as_object().unwrap();
    let Some(template) = all.keys().find(|template| fits(template, path)) else { return };
    let answers = &document["paths"][template][method.to_lowercase()]["responses"];
    if answers.is_null() {
        return;
    }
    let named = &answers[answer.status.to_string()];
    assert!(answer.status >= 400 || !named.is_null(), "{line}: {} is not told", answer.status);
    let told = if named.is_null() { &answers["default"] } else { named };
    let schema = &told["content"]["application/json"]["schema"];
    let schema = json!({ "allOf": [schema], "components": document["components"] });
    let validator = jsonschema::options().with_draft(Draft::Draft202012).build(&schema).unwrap();
    let wrongs: Vec<String> =
        validator.iter_errors(&answer.body).map(|error| error.to_string()).collect();
    assert!(wrongs.is_empty(), "{line}: {wrongs:#?}\n{:#}", answer.body);
}

fn fits(template: &str, path: &str) -> bool {
    let (told, asked) = (template.split('/'), path.split('/'));
    template.split('/').count() == path.split('/').count()
        && told.zip(asked).all(|(told, asked)| told == asked || told.starts_with('{'))
}

#[tokio::test]
async fn the_document_is_served_and_is_the_one_in_the_documentation() {
    let world = World::new().await;
    let answer = world.get("/openapi.json").await;
    assert_eq!((answer.status, &answer.body), (200, &gateway::openapi::document()));
    let text = serde_json::to_string_pretty(&answer.body).unwrap();
    expect_file!["../../../../docs/openapi.json"].assert_eq(&format!("{text}\n"));
}

#[tokio::test]
async fn every_path_of_the_document_is_answered_and_every_reference_leads_somewhere() {
    let world = World::new().await;
    let document = gateway::openapi::document();
    for (template, operations) in document["paths"].as_object().unwrap() {
        let path =
            template.replace("{thread}", "x").replace("{call}", "y").replace("{place}", "0.0");
        for method in operations.as_object().unwrap().keys() {
            let body = json!({});
            let answer = match method.as_str() {
                "post" => world.post(&path, &body).await,
                _ => world.get(&path).await,
            };
            let message = answer.body["error"]["message"].as_str().unwrap();
            assert!(!message.contains("there is nothing at"), "{template}: {message}");
            assert_ne!(answer.status, 405, "{method} {template}");
        }
    }
    let mut open = vec![&document];
    while let Some(value) = open.pop() {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        match value {
            Value::Object(fields) => open.extend(fields.values()),
            Value::Array(items) => open.extend(items),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

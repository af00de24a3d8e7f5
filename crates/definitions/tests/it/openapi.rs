//! The operations of an API's description as tools.

use std::path::Path;

use definitions::http::{Body, Header, HttpRun, Method, SecretPlace};
use definitions::manifest::Manifest;
use definitions::openapi::{self, Chosen, Options};
use definitions::problem::Problem;
use definitions::run::{Run, Surroundings, Unset};
use expect_test::expect;
use proto::tool::Effect;
use serde_json::{Value, json};

use crate::told;

const SHOP: &str = r##"
openapi: 3.0.3
servers: [{ url: "https://{region}.shop.example/v1/", variables: { region: { default: eu } } }]
security: [{ key: [] }]
paths:
  /pets/{pet-id}:
    parameters: [{ $ref: "#/components/parameters/Id" }]
    get:
      operationId: pets/get
      summary: Gets one pet
      tags: [pets]
      parameters:
        - { name: "fields[]", in: query, schema: { type: array, items: { type: string } } }
        - { name: X-Trace, in: header, schema: { type: string } }
        - { name: session, in: cookie, schema: { type: string } }
    put:
      operationId: putPet
      requestBody: { required: true, content: { application/json: { schema: { $ref: "#/components/schemas/Pet" } } } }
    patch:
      operationId: patchPet
      requestBody: { content: { application/merge-patch+json: { schema: { type: object } } } }
    delete: { operationId: dropPet }
  /pets:
    post:
      tags: [pets]
      requestBody: { content: { multipart/form-data: { schema: { type: object } } } }
  /upload:
    post:
      operationId: upload
      requestBody: { required: true, content: { multipart/form-data: { schema: { type: object } } } }
components:
  securitySchemes: { key: { type: apiKey, in: header, name: X-Key } }
  parameters:
    Id: { name: pet-id, in: path, required: true, description: Which pet., schema: { type: integer, minimum: 0, exclusiveMinimum: true } }
  schemas:
    Pet:
      type: object
      required: [id, name, owner]
      properties:
        id: { type: integer, readOnly: true }
        name: { type: string, nullable: true, pattern: "^(?<!x)\\p{IsBasicLatin}+$" }
        owner: { allOf: [{ $ref: "#/components/schemas/Owner" }] }
        parent: { $ref: "#/components/schemas/Pet" }
    Owner: { type: object, properties: { name: { type: string }, pets: { type: array, items: { $ref: "#/components/schemas/Pet" } } } }
"##;

fn read(text: &str, shop: &str) -> Result<Manifest, Vec<Problem>> {
    let document = |path: &Path| {
        let known = path == Path::new("/api/shop.yaml");
        if known { Ok(shop.to_owned()) } else { Err("there is no such file".to_owned()) }
    };
    let around = Surroundings {
        folder: Path::new("/api"),
        variable: &|_| None,
        unset: Unset::Problem,
        document: &document,
    };
    Manifest::parse("tools.yaml", text, &around)
}

fn shop(more: &str) -> Manifest {
    let text = format!("sources:\n- openapi: shop.yaml\n  {more}\n");
    read(&text, SHOP).unwrap_or_else(|problems| panic!("{}", told(&problems)))
}

fn http(run: &Run) -> &HttpRun {
    let Run::Http(run) = run else { panic!("{run:?}") };
    run
}

#[test]
fn an_operation_is_a_tool_with_a_request_and_one_schema() {
    let manifest = shop("operations: [pets/get]\n  auth: { env: SHOP_KEY }");
    let tool = &manifest.tools[0];
    assert_eq!(tool.contract.name.as_str(), "pets_get");
    assert_eq!(tool.contract.description, "Gets one pet");
    assert_eq!(tool.contract.effect, Effect::ReadOnly);
    let expected = json!({
        "type": "object", "additionalProperties": false, "required": ["pet_id"],
        "properties": {
            "pet_id": { "type": "integer", "exclusiveMinimum": 0, "description": "Which pet." },
            "fields__": { "type": "array", "items": { "type": "string" } },
        },
    });
    assert_eq!(tool.contract.parameters, expected);
    let run = http(&tool.run);
    assert_eq!((run.method, run.origin.as_str()), (Method::Get, "https://eu.shop.example"));
    assert_eq!(run.path, "/v1/pets/{pet_id}");
    assert_eq!(run.query[0].name, "fields%5B%5D");
    let secret =
        Header::Secret { from: SecretPlace::Env("SHOP_KEY".to_owned()), prefix: String::new() };
    assert_eq!(run.headers, [("X-Key".to_owned(), secret)]);
    assert_eq!(run.body, Body::None);
}

#[test]
fn the_method_says_what_repeating_does_unless_the_manifest_does() {
    let all = shop(
        "operations: { putPet: {}, patchPet: { name: mend }, dropPet: { effect: irreversible } }",
    );
    let told: Vec<(&str, Effect)> =
        all.tools.iter().map(|tool| (tool.contract.name.as_str(), tool.contract.effect)).collect();
    let expected = [
        ("putPet", Effect::Idempotent),
        ("mend", Effect::Irreversible),
        ("dropPet", Effect::Irreversible),
    ];
    assert_eq!(told, expected);
    let run = http(&all.tools[1].run);
    let kind = Header::Template("application/merge-patch+json".to_owned());
    assert_eq!(run.headers, [("Content-Type".to_owned(), kind)]);
    assert_eq!(run.body, Body::Template(json!("{body}")));
}

#[test]
fn references_are_followed_and_never_in_circles() {
    let manifest = shop("operations: [putPet]");
    let body = &manifest.tools[0].contract.parameters["properties"]["body"];
    expect![[r#"{"properties":{"name":{"type":["string","null"]},"owner":{"properties":{"name":{"type":"string"},"pets":{"items":{"description":"The same again, as deep as needed."},"type":"array"}},"type":"object"},"parent":{"description":"The same again, as deep as needed."}},"required":["name","owner"],"type":"object"}"#]]
        .assert_eq(&body.to_string());
}

#[test]
fn tags_and_all_leave_out_what_cannot_be_a_tool() {
    let names = |more: &str| -> Vec<String> {
        shop(more).tools.iter().map(|tool| tool.contract.name.to_string()).collect()
    };
    assert_eq!(names("tags: [pets]"), ["post_pets", "pets_get"]);
    assert_eq!(
        names("operations: all\n  prefix: shop_"),
        ["shop_post_pets", "shop_pets_get", "shop_putPet", "shop_patchPet", "shop_dropPet"]
    );
}

#[test]
fn a_model_chooses_a_header_only_where_the_manifest_says_so() {
    let plain = shop("operations: [pets/get]");
    assert_eq!(http(&plain.tools[0].run).headers, []);
    let chosen = shop("operations: [pets/get]\n  model_headers: [x-trace]");
    let header = Header::Template("{X_Trace}".to_owned());
    assert_eq!(http(&chosen.tools[0].run).headers, [("X-Trace".to_owned(), header)]);
    let fixed = shop(
        "operations: [pets/get]\n  headers: { X-Trace: mine }\n  server: https://other.example",
    );
    let run = http(&fixed.tools[0].run);
    assert_eq!(run.headers, [("X-Trace".to_owned(), Header::Template("mine".to_owned()))]);
    assert_eq!(run.origin, "https://other.example");
}

#[test]
fn what_is_named_and_cannot_be_a_tool_is_a_problem() {
    let problems = |text: &str| told(&read(text, SHOP).unwrap_err());
    let found = [
        problems("sources: [{ openapi: shop.yaml, operations: [upload, pets/got] }]"),
        problems("sources: [{ openapi: other.yaml, operations: all }]"),
        problems("sources: [{ openapi: shop.yaml }]"),
        problems("sources: [{ openapi: \"https://h.example/x.json\", operations: all }]"),
    ];
    expect![[r#"
        tools.yaml:1:46: sources[0].operations[0]: expected an operation that can be a tool; found it needs a body of multipart/form-data. Fix: leave it out
        tools.yaml:1:54: sources[0].operations[1]: expected an operation that can be a tool; found the description has no operation of that name; did you mean `pets/get`?. Fix: leave it out
        tools.yaml:1:22: sources[0].openapi: expected an OpenAPI file; found `other.yaml`: there is no such file. Fix: name a file that is there
        tools.yaml:1:11: sources[0].operations: expected which operations become tools; found nothing. Fix: write `operations: [name, …]`, `tags: [name]` or `operations: all`
        tools.yaml:1:22: sources[0].openapi: expected a file; found "https://h.example/x.json". Fix: run `systole tools import openapi URL`, which keeps a copy that can be reviewed"#]]
    .assert_eq(&found.join("\n"));
}

#[test]
fn hostile_descriptions_end_and_stay_small() {
    let wide: Vec<Value> =
        (0..40).map(|n| json!({"$ref": format!("#/components/schemas/S{n}")})).collect();
    let schemas: serde_json::Map<String, Value> = (0..40)
        .map(|n| (format!("S{n}"), json!({"type": "object", "properties": {"x": {"oneOf": wide}}})))
        .collect();
    let document = json!({
        "openapi": "3.1.0", "servers": [{"url": "https://h.example"}],
        "paths": {
            "/a": {"post": {"operationId": "a", "requestBody": {"content": {"application/json": {
                "schema": {"oneOf": wide}}}}}},
            "/loop": {"$ref": "#/paths/~1loop"},
            "/far": {"get": {"operationId": "far", "parameters": [
                {"$ref": "https://evil.example/x.json"},
                {"name": "q", "in": "query", "schema": {"$ref": "file:///etc/passwd"}}]}},
            "/{hole}": {"get": {"operationId": "hole"}},
            "/host": {"get": {"operationId": "host", "servers": [{"url": "https://{h}.example"}]}},
        },
        "components": {"schemas": schemas},
    });
    let made = openapi::tools(&document, &Chosen::All, &Options::default()).unwrap();
    let names: Vec<&str> = made.tools.iter().map(|tool| tool.operation.as_str()).collect();
    assert_eq!(names, ["a", "far"]);
    assert!(made.tools[0].fields["parameters"].to_string().len() <= 24 * 1024);
    let far = &made.tools[1].fields["parameters"]["properties"];
    assert_eq!(far, &json!({"q": {}}), "nothing outside the document is read");
    expect![[r#"[("host", "its server https://{h}.example is not fixed: write `server: https://…`"), ("hole", "its path /{hole} has a part that no parameter fills")]"#]]
        .assert_eq(&format!("{:?}", made.left_out));
    assert!(openapi::tools(&json!({"swagger": "2.0"}), &Chosen::All, &Options::default()).is_err());
}

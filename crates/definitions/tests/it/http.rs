//! Tools that ask HTTP servers.

use std::path::PathBuf;

use definitions::http::{Body, Header, HttpRun, Method, Pick, QueryPart, SecretPlace};
use definitions::run::Run;
use expect_test::{Expect, expect};
use serde_json::json;

use crate::{manifest, told};

fn tool(effect: &str, run: &str) -> String {
    let run: Vec<String> = run.lines().map(|line| format!("      {line}")).collect();
    format!(
        "tools:\n  - name: t\n    description: Does one thing well.\n    parameters: {{ id: {{ type: string, required: true }}, days: integer }}\n    effect: {effect}\n    run:\n{}\n",
        run.join("\n")
    )
}

fn read(effect: &str, run: &str) -> HttpRun {
    let manifest = manifest(&tool(effect, run)).unwrap();
    let Some(Run::Http(run)) = manifest.tools.first().map(|tool| &tool.run) else {
        unreachable!("it is an http tool")
    };
    run.clone()
}

fn wrong(run: &str, expected: &Expect) {
    expected.assert_eq(&told(&manifest(&tool("read_only", run)).unwrap_err()));
}

#[test]
fn every_part_of_a_request_is_read() {
    let run = read(
        "idempotent",
        "http:
  method: PUT
  url: https://api.example.com:8443/items/{id}?lang=en
  query: { days: \"{days}\", a b: \"x y {id}\" }
  headers:
    Authorization: { env: API_TOKEN, prefix: \"Bearer \" }
    X-Key: { file: secrets/key }
    X-Item: \"item {id}\"
  body: { item: { id: \"{id}\", days: \"{days}\", n: 1 }, tags: [\"{id}\"] }
  result: [/id, /status]
  success: [200, 404]
  max_output_bytes: 2000",
    );
    let part = |name: &str, value: &str| QueryPart {
        name: name.to_owned(),
        value: Some(value.to_owned()),
    };
    let secret = |from, prefix: &str| Header::Secret { from, prefix: prefix.to_owned() };
    let expected = HttpRun {
        method: Method::Put,
        origin: "https://api.example.com:8443".to_owned(),
        path: "/items/{id}".to_owned(),
        query: vec![part("lang", "en"), part("days", "{days}"), part("a%20b", "x%20y%20{id}")],
        headers: vec![
            (
                "Authorization".to_owned(),
                secret(SecretPlace::Env("API_TOKEN".to_owned()), "Bearer "),
            ),
            (
                "X-Key".to_owned(),
                secret(SecretPlace::File(PathBuf::from("/agents/ops/secrets/key")), ""),
            ),
            ("X-Item".to_owned(), Header::Template("item {id}".to_owned())),
        ],
        body: Body::Template(json!({
            "item": { "id": "{id}", "days": "{days}", "n": 1 }, "tags": ["{id}"],
        })),
        result: Pick::Several(vec!["/id".to_owned(), "/status".to_owned()]),
        success: vec![200, 404],
        max_output_bytes: 2000,
        private: false,
        is_probe: false,
    };
    assert_eq!(run, expected);
}

#[test]
fn a_request_follows_the_effect_unless_it_says_otherwise() {
    let asked = |effect, run| {
        let run = read(effect, run);
        (run.method, run.body)
    };
    assert_eq!(asked("read_only", "http: https://h/{id}"), (Method::Get, Body::None));
    assert_eq!(asked("irreversible", "http: https://h/{id}"), (Method::Post, Body::Arguments));
    let delete = "http: { url: https://h/a, method: DELETE }";
    assert_eq!(asked("idempotent", delete), (Method::Delete, Body::None));
    let search = "http: { url: https://h/a, method: POST, body: \"{id}\" }";
    assert_eq!(asked("read_only", search), (Method::Post, Body::Template(json!("{id}"))));
}

#[test]
fn a_probe_asks_without_changing_anything() {
    let text = tool("checkable", "http: https://h/{id}") + "    probe: { http: https://h/{id} }\n";
    let text = text.replace("https://h/{id} }", "\"https://h/{id}\" }");
    let definition = manifest(&text).unwrap().tools.remove(0);
    let (Run::Http(run), Some(Run::Http(probe))) = (definition.run, definition.probe) else {
        panic!("both are requests")
    };
    assert_eq!((run.method, run.is_probe), (Method::Post, false));
    assert_eq!((probe.method, probe.is_probe), (Method::Get, true));
}

#[test]
fn servers_get_more_time_and_those_of_others_even_more() {
    let timeout = |text: &str| manifest(text).unwrap().tools[0].contract.timeout_ms;
    let http = tool("read_only", "http: https://h/{id}");
    assert_eq!(timeout(&http), 15_000);
    assert_eq!(timeout(&format!("{http}    external: true\n")), 30_000);
    assert_eq!(timeout(&format!("{http}    external: true\n    timeout_ms: 7\n")), 7);
    let fetch = "tools: [{ name: f, run: { builtin: fetch_url } }]";
    assert_eq!(timeout(fetch), 15_000);
    let expand = manifest("tools: [{ name: e, run: { builtin: expand } }]").unwrap();
    let contract = &expand.tools[0].contract;
    assert_eq!((contract.timeout_ms, contract.result_tokens), (3000, 10_000));
    let problems = manifest("tools: [{ name: c, external: true, run: { builtin: clock } }]");
    expect!["tools.yaml:1:30: tools[0].external: expected no such field: only http, mcp and fetch_url ask servers; found true. Fix: leave it out, or say `timeout_ms`"].assert_eq(&told(&problems.unwrap_err()));
}

#[test]
fn a_template_that_names_a_missing_field_is_told_with_its_place() {
    wrong(
        "http:
  url: https://h/{idd}
  query: { q: \"{query}\" }
  headers: { X-A: \"{header}\" }
  method: POST
  body: { a: { b: [\"{day}\"] } }",
        &expect![[r"
            tools.yaml:8:14: tools[0].run.http.url: expected the name of a parameter (days, id); found `{idd}`. Fix: write `{id}`
            tools.yaml:9:21: tools[0].run.http.query.q: expected the name of a parameter (days, id); found `{query}`. Fix: add it to the parameters
            tools.yaml:10:25: tools[0].run.http.headers.X-A: expected the name of a parameter (days, id); found `{header}`. Fix: add it to the parameters
            tools.yaml:12:26: tools[0].run.http.body.a.b[0]: expected the name of a parameter (days, id); found `{day}`. Fix: write `{days}`"]],
    );
}

#[test]
fn a_model_chooses_neither_host_nor_header() {
    wrong(
        "http: \"https://{id}/a\"",
        &expect![
            "tools.yaml:7:13: tools[0].run.http: expected a fixed host and port; found `{id}`. Fix: write the host out: a model must not choose whom the tool talks to"
        ],
    );
    wrong(
        "http: \"https://h:{days}/a\"",
        &expect![
            "tools.yaml:7:13: tools[0].run.http: expected a fixed host and port; found `h:{days}`. Fix: write the host out: a model must not choose whom the tool talks to"
        ],
    );
    wrong(
        "http: { url: https://h/, headers: { \"X-{id}\": a } }",
        &expect![
            "tools.yaml:7:53: tools[0].run.http.headers.X-{id}: expected a fixed header name; found `X-{id}`. Fix: write the header name out; only values are filled"
        ],
    );
    wrong(
        "http: { url: https://h/, query: { \"{id}\": a } }",
        &expect![
            "tools.yaml:7:49: tools[0].run.http.query.{id}: expected a fixed name; found `{id}`. Fix: write the name out; only values are filled"
        ],
    );
    wrong(
        "http: { url: https://h/, method: POST, body: { \"{id}\": a } }",
        &expect![
            "tools.yaml:7:62: tools[0].run.http.body.{id}: expected a fixed field name; found `{id}`. Fix: write the field name out; only values are filled"
        ],
    );
}

#[test]
fn what_no_request_can_be_made_of_is_told() {
    wrong(
        "http: file:///etc/passwd",
        &expect![
            "tools.yaml:7:13: tools[0].run.http: expected a URL that begins with http:// or https://; found `file`. Fix: write `https://host/path`"
        ],
    );
    wrong(
        "http: \"${API}/a\"",
        &expect![
            "tools.yaml:7:13: tools[0].run.http: expected a URL; found ${API}, which is not set. Fix: set API, or write `${API:-otherwise}`"
        ],
    );
    wrong(
        "http: { url: https://h/, body: { a: b } }",
        &expect![
            "tools.yaml:7:38: tools[0].run.http.body: expected no body for a method that only reads; found a map of a. Fix: write `method: POST`, or put the values into `query`"
        ],
    );
    wrong(
        "http: { url: https://h/, method: POST, body: text }",
        &expect![[
            r#"tools.yaml:7:52: tools[0].run.http.body: expected a JSON object or list; found "text". Fix: write fields with `"{argument}"`, or one `"{argument}"` that is the body"#
        ]],
    );
    wrong(
        "http: { url: https://h/, method: get }",
        &expect![[
            r#"tools.yaml:7:40: tools[0].run.http.method: expected one of GET, HEAD, POST, PUT, PATCH, DELETE; found "get". Fix: write `GET`"#
        ]],
    );
    wrong(
        "http: { url: https://h/, headers: { Host: a, x: { key: K } } }",
        &expect![[r"
            tools.yaml:7:49: tools[0].run.http.headers.Host: expected a header that a tool may set; found `Host`, which the client writes. Fix: leave it out
            tools.yaml:7:55: tools[0].run.http.headers.x: expected where the secret lies; found a map of key. Fix: write `{ env: NAME }` or `{ file: path }`
            tools.yaml:7:57: tools[0].run.http.headers.x.key: expected one of env, file, prefix; found an unknown field. Fix: leave it out"]],
    );
    wrong(
        "http: { url: https://h/, result: data.items, success: [2] }",
        &expect![[r#"
        tools.yaml:7:40: tools[0].run.http.result: expected a JSON pointer; found "data.items". Fix: write `/data/items`
        tools.yaml:7:62: tools[0].run.http.success[0]: expected a whole number from 200 to 599; found 2. Fix: write such a number without quotes"#]],
    );
    wrong(
        "http: { uri: https://h/ }",
        &expect![[r"
        tools.yaml:7:13: tools[0].run.http.url: expected where to ask: `https://…`; found nothing. Fix: add `url: …`
        tools.yaml:7:15: tools[0].run.http.uri: expected a known field; found an unknown field. Fix: did you mean `url`? Else leave it out"]],
    );
}

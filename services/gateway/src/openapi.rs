//! `GET /openapi.json`: what the gateway takes and answers, for programs that make clients of it.
//!
//! What is taken is described by the types that take it; the gateway's tests hold every answer
//! against what is said of answers here.

use std::collections::BTreeMap;

use axum::Json;
use proto::event::ThreadEvent;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::approvals::NewDecision;
use crate::cancel::NewCancel;
use crate::inputs::{Accepted, NewInput};
use crate::threads::NewThread;

/// Where it is served.
pub(crate) const PATH: &str = "/openapi.json";

/// Serves it.
pub(crate) async fn get() -> Json<Value> {
    Json(document())
}

/// One request and its answers.
struct Operation {
    method: &'static str,
    path: &'static str,
    id: &'static str,
    summary: &'static str,
    body: Option<Value>,
    /// Whether it may be sent again with a key.
    keyed: bool,
    /// Status, meaning, schema; refusals are the same everywhere.
    answers: Answers,
}

/// The document, in the form of `OpenAPI` 3.1.
pub fn document() -> Value {
    let settings = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into());
    let mut schemas = SchemaGenerator::new(settings);
    let mut paths: BTreeMap<&str, BTreeMap<&str, Value>> = BTreeMap::new();
    for operation in operations(&mut schemas) {
        let path = paths.entry(operation.path).or_default();
        path.insert(operation.method, described(&operation));
    }
    let mut components = schemas.take_definitions(true);
    components.insert("Refusal".to_owned(), refusal());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Systole gateway",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Threads of agents over HTTP; docs/http.md tells it in words.",
        },
        "security": [{}, { "key": [] }],
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API key; without keys the gateway serves its own machine only.",
                },
            },
        },
    })
}

type Answers = Vec<(&'static str, &'static str, Value)>;

impl Operation {
    fn get(path: &'static str, id: &'static str, summary: &'static str, answers: Answers) -> Self {
        Self { method: "get", path, id, summary, body: None, keyed: false, answers }
    }

    fn post(
        path: &'static str,
        id: &'static str,
        summary: &'static str,
        body: Value,
        answers: Answers,
    ) -> Self {
        Self { method: "post", path, id, summary, body: Some(body), keyed: true, answers }
    }
}

fn operations(schemas: &mut SchemaGenerator) -> Vec<Operation> {
    [of_threads(schemas), of_runs(schemas), of_memory()].into_iter().flatten().collect()
}

fn of_threads(schemas: &mut SchemaGenerator) -> Vec<Operation> {
    let accepted = reference::<Accepted>(schemas);
    vec![
        Operation::post(
            "/v1/threads",
            "createThread",
            "Begins a thread, with an input or without",
            reference::<NewThread>(schemas),
            vec![("201", "The thread", begun(&accepted))],
        ),
        Operation::get(
            "/v1/threads/{thread}",
            "showThread",
            "How the thread stands",
            vec![("200", "The thread", standing(schemas))],
        ),
        Operation::post(
            "/v1/threads/{thread}/inputs",
            "sendInput",
            "Says something",
            reference::<NewInput>(schemas),
            vec![("202", "Where the input lies", accepted)],
        ),
        Operation::get(
            "/v1/threads/{thread}/events",
            "readEvents",
            "The thread as it happens",
            vec![(
                "200",
                "Server-sent events; each `data` is such an object. `Last-Event-ID` resumes.",
                reference::<ThreadEvent>(schemas),
            )],
        ),
    ]
}

fn of_runs(schemas: &mut SchemaGenerator) -> Vec<Operation> {
    let over = ("200", "The run is over, or there was none", receipt());
    let stopping = ("202", "The run still stops", receipt());
    vec![
        Operation::post(
            "/v1/threads/{thread}/cancel",
            "cancelRun",
            "Stops the run",
            reference::<NewCancel>(schemas),
            vec![over, stopping],
        ),
        Operation::post(
            "/v1/threads/{thread}/approvals/{call}",
            "decideCall",
            "Approves or denies a call that waits for a person's word",
            reference::<NewDecision>(schemas),
            vec![("200", "The decision stands", decided())],
        ),
    ]
}

fn of_memory() -> Vec<Operation> {
    let one = "/v1/memory/{thread}/{place}";
    let page =
        object(&["memories"], &json!({ "memories": { "type": "array", "items": memory() } }));
    let around = object(
        &["memory", "around", "why"],
        &json!({
            "memory": memory(),
            "around": { "type": "array", "items": memory(), "description": "The turns beside it" },
            "why": { "type": ["object", "null"], "description": "How its importance came about" },
        }),
    );
    let gone = object(&["forgotten"], &json!({ "forgotten": { "type": "integer", "minimum": 0 } }));
    let forget = Operation::get(
        one,
        "forgetMemory",
        "Removes a memory for good",
        vec![("200", "How many went", gone)],
    );
    vec![
        Operation::get(
            "/v1/memory",
            "listMemories",
            "What is remembered",
            vec![("200", "Memories", page)],
        ),
        Operation::get(one, "showMemory", "A memory, and why", vec![("200", "The memory", around)]),
        Operation { method: "delete", ..forget },
    ]
}

fn memory() -> Value {
    let maybe = |kind: &str| json!({ "type": [kind, "null"] });
    object(
        &["id", "kind", "from", "text", "at", "importance"],
        &json!({
            "id": { "type": "string" },
            "kind": { "type": "string" },
            "from": { "type": "object", "description": "Who said it, or document, version and section" },
            "text": { "type": "string" },
            "at": { "type": "integer" },
            "importance": { "type": "number" },
            "holds_until": maybe("integer"),
            "superseded_by": maybe("string"),
            "score": maybe("number"),
        }),
    )
}

fn reference<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    schemas.subschema_for::<T>().to_value()
}

fn described(operation: &Operation) -> Value {
    let is_stream = operation.id == "readEvents";
    let content = |schema: &Value| {
        let kind = if is_stream { "text/event-stream" } else { "application/json" };
        json!({ (kind): { "schema": schema } })
    };
    let mut answers = Map::new();
    for (status, meaning, schema) in &operation.answers {
        let answer = json!({ "description": meaning, "content": content(schema) });
        answers.insert((*status).to_owned(), answer);
    }
    let refused = json!({ "$ref": "#/components/schemas/Refusal" });
    let refused = json!({
        "description": "Refused, with what to do",
        "content": { "application/json": { "schema": refused } },
    });
    answers.insert("default".to_owned(), refused);
    let body = operation.body.as_ref().map(|schema| {
        let required = operation.id != "cancelRun";
        json!({ "required": required, "content": { "application/json": { "schema": schema } } })
    });
    let fields = [
        ("operationId", Some(json!(operation.id))),
        ("summary", Some(json!(operation.summary))),
        ("parameters", Some(json!(parameters(operation, is_stream)))),
        ("requestBody", body),
        ("responses", Some(Value::Object(answers))),
    ];
    let told = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(told.collect())
}

/// Those of the path, and the headers that are read.
fn parameters(operation: &Operation, is_stream: bool) -> Vec<Value> {
    let text = |place: &str, name: &str, description: &str| {
        json!({
            "in": place,
            "name": name,
            "required": place == "path",
            "description": description,
            "schema": { "type": "string" },
        })
    };
    let mut all = Vec::new();
    if operation.path.contains("{thread}") {
        all.push(text("path", "thread", "The id that POST /v1/threads answered"));
    }
    if operation.path.contains("{call}") {
        all.push(text("path", "call", "The id that the event `approval_asked` named"));
    }
    if operation.path.contains("{place}") {
        all.push(text("path", "place", "The memory's place in it, as in its id: TURN.PART"));
    }
    if operation.id == "listMemories" {
        all.push(text("query", "q", "Words to look for; without them all memories, by id"));
        all.push(text("query", "thread", "Only what this thread said"));
        all.push(text("query", "after", "The id of the last one of the page before"));
        all.push(text("query", "limit", "At most so many, 100 at most; 20 unless it is said"));
    }
    if operation.keyed {
        all.push(text("header", "Idempotency-Key", "The same key is the same request, for ever"));
    }
    if is_stream {
        all.push(text("header", "Last-Event-ID", "The last event that was read"));
    }
    all
}

fn object(required: &[&str], properties: &Value) -> Value {
    json!({
        "type": "object",
        "required": required,
        "properties": properties,
        "additionalProperties": false,
    })
}

fn begun(accepted: &Value) -> Value {
    object(
        &["thread", "agent", "input", "events"],
        &json!({
            "thread": { "type": "string" },
            "agent": { "type": "string" },
            "input": { "anyOf": [accepted, { "type": "null" }] },
            "events": { "type": "string", "description": "The path of its events" },
        }),
    )
}

fn standing(schemas: &mut SchemaGenerator) -> Value {
    let end = json!({ "anyOf": [reference::<ThreadEvent>(schemas), { "type": "null" }] });
    let count = json!({ "type": "integer", "minimum": 0 });
    let maybe = |kind: &str| json!({ "type": [kind, "null"] });
    object(
        &["thread", "agent", "active", "state", "runs", "open_calls", "finished"],
        &json!({
            "thread": { "type": "string" },
            "agent": maybe("string"),
            "active": { "type": "boolean" },
            "state": { "type": "string" },
            "stopping": { "type": "boolean" },
            "run": maybe("integer"),
            "turn": maybe("integer"),
            "runs": count,
            "waiting_inputs": count,
            "sequence": count,
            "id": maybe("string"),
            "at": maybe("integer"),
            "usage": maybe("object"),
            "open_calls": { "type": "array", "items": open_call() },
            "finished": end,
        }),
    )
}

fn open_call() -> Value {
    object(
        &["tool_call_id", "tool", "arguments", "turn", "dispatched", "started", "approval"],
        &json!({
            "tool_call_id": { "type": "string" },
            "tool": { "type": "string" },
            "arguments": {},
            "turn": { "type": "integer" },
            "dispatched": { "type": "boolean" },
            "started": { "type": "boolean" },
            "approval": {
                "type": ["object", "null"],
                "description": "What a decision has to name, while the call waits for one",
                "required": ["arguments_hash", "expires"],
            },
        }),
    )
}

fn receipt() -> Value {
    let call = object(
        &["tool_call_id", "tool", "code", "receipt"],
        &json!({
            "tool_call_id": { "type": "string" },
            "tool": { "type": "string" },
            "code": { "type": ["string", "null"] },
            "receipt": { "type": ["string", "null"], "description": "How far the call had come" },
        }),
    );
    object(
        &["thread", "cancelled", "state", "calls"],
        &json!({
            "thread": { "type": "string" },
            "cancelled": { "type": "boolean" },
            "state": { "enum": ["at_rest", "ended", "stopping"] },
            "run": { "type": "integer" },
            "calls": { "type": "array", "items": call },
            "finished": { "type": ["object", "null"] },
        }),
    )
}

fn decided() -> Value {
    object(
        &["thread", "tool_call_id", "approve"],
        &json!({
            "thread": { "type": "string" },
            "tool_call_id": { "type": "string" },
            "approve": { "type": "boolean" },
        }),
    )
}

fn refusal() -> Value {
    let text = json!({ "type": "string" });
    let error = object(
        &["code", "message", "fix", "docs"],
        &json!({ "code": text, "message": text, "fix": text, "docs": text }),
    );
    object(&["error"], &json!({ "error": error }))
}

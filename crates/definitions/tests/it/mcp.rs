//! Tools of MCP servers: what a manifest may say of them, and what a server may add.

use std::path::PathBuf;

use definitions::lint::lint;
use definitions::mcp::{EnvValue, LiveTool, McpHttp, McpPlace, McpProcess, McpRun};
use definitions::run::Run;
use expect_test::expect;
use proto::tool::Effect;
use serde_json::json;

use crate::{lines, manifest, told};

const SERVER: &str = "sources:\n- mcp: { command: [node, ./server.js], env: [KEY] }\n  ";

fn mcp(run: &Run) -> &McpRun {
    let Run::Mcp(run) = run else { panic!("{run:?}") };
    run
}

#[test]
fn a_source_brings_the_tools_that_it_is_asked_for() {
    let text = format!(
        "{SERVER}prefix: s_\n  defaults: {{ timeout_ms: 5000 }}\n  tools:\n    echo: {{}}\n    \
         \"get/sum\": {{ name: add, effect: read_only, timeout_ms: 100, description: Adds two. }}\n"
    );
    let tools = manifest(&text).unwrap().tools;
    let names: Vec<&str> = tools.iter().map(|tool| tool.contract.name.as_str()).collect();
    assert_eq!(names, ["s_echo", "add"]);
    let limits: Vec<u64> = tools.iter().map(|tool| tool.contract.timeout_ms).collect();
    assert_eq!(limits, [5000, 100]);
    assert_eq!(tools[0].contract.effect, Effect::Irreversible);
    assert_eq!(mcp(&tools[1].run).tool, "get/sum");
    let stated = mcp(&tools[1].run).stated;
    assert!(stated.description && stated.effect && !stated.parameters);
    assert_eq!(mcp(&tools[0].run).server, mcp(&tools[1].run).server, "they share its processes");
    let process = McpProcess {
        argv: vec!["node".to_owned(), "./server.js".to_owned()],
        folder: PathBuf::from("/agents/ops"),
        env: vec![(
            "KEY".to_owned(),
            EnvValue::Secret(definitions::http::SecretPlace::Env("KEY".to_owned())),
        )],
    };
    assert_eq!(mcp(&tools[0].run).server.place, McpPlace::Process(process));
}

#[test]
fn one_tool_may_name_its_server_itself() {
    let text = "name: t\nrun: { mcp: { url: \"https://h.example/mcp\", tool: t, private: true, headers: { Authorization: { env: K, prefix: \"Bearer \" } } } }\n";
    let tools = manifest(text).unwrap().tools;
    let McpPlace::Http(McpHttp { url, headers, private: true }) = &mcp(&tools[0].run).server.place
    else {
        panic!("{:?}", tools[0].run)
    };
    assert_eq!((url.as_str(), headers.len()), ("https://h.example/mcp", 1));
}

#[test]
fn a_model_chooses_neither_server_nor_header() {
    let all = [
        "run: { mcp: { command: [node, \"{a}\"], tool: t } }",
        "run: { mcp: { url: \"https://h.example/{a}\", tool: t } }",
        "run: { mcp: { url: \"https://h.example/\", headers: { X: \"{a}\" }, tool: t } }",
        "run: { mcp: { tool: t } }",
        "run: { mcp: { command: [node] } }",
        "run: { openapi: x.yaml }",
    ];
    let found = all.map(|run| {
        let text = format!(
            "name: t\ndescription: d e f\nparameters: {{ a: {{ type: string }} }}\n{run}\n"
        );
        told(&manifest(&text).unwrap_err())
    });
    expect![[r#"
        tools.yaml:4:31: run.mcp.command[1]: expected fixed text; found "{a}". Fix: write it out: the server is started before anybody calls a tool
        tools.yaml:4:20: run.mcp.url: expected a fixed URL; found "https://h.example/{a}". Fix: write it out: a model must not choose the server
        tools.yaml:4:56: run.mcp.headers.X: expected fixed text; found "{a}". Fix: write it out: a model must not choose a header of the connection
        tools.yaml:4:13: run.mcp.command: expected how the server is reached; found nothing. Fix: write `command: [program, argument]`, or `url: https://…`
        tools.yaml:4:13: run.mcp.tool: expected the tool's name at the server; found nothing. Fix: add `tool: …`
        tools.yaml:4:17: run.openapi: expected how the tool runs: command, http, mcp or builtin; found openapi, which makes tools of its own. Fix: write `sources: [{ openapi: file.yaml, operations: [name] }]` beside `tools:`"#]]
    .assert_eq(&found.join("\n"));
}

#[test]
fn problems_of_a_source_name_their_place() {
    let found = [
        "sources:\n- { prefix: x }\n".to_owned(),
        format!("{SERVER}tools: [echo, echo]\n"),
        SERVER.to_owned(),
        format!("{SERVER}tools: {{ echo: {{ efect: read_only }} }}\n"),
        format!("{SERVER}tools: {{ echo: {{ run: {{ builtin: clock }} }} }}\n"),
    ]
    .map(|text| told(&manifest(&text).unwrap_err()));
    expect![[r"
        tools.yaml:2:3: sources[0]: expected where tools come from: mcp or openapi; found a map of prefix. Fix: write `- mcp: { command: […] }` or `- openapi: file.yaml`
        tools.yaml:3:17: sources[0].tools[1]: expected a name of its own for each tool; found `echo`, which line 3 has already. Fix: rename one of them
        tools.yaml:2:3: sources[0].tools: expected which of the server's tools may be called; found nothing. Fix: add `tools: …`
        tools.yaml:3:20: sources[0].tools.echo.efect: expected a known field; found an unknown field. Fix: did you mean `effect`? Else leave it out
        tools.yaml:3:18: sources[0].tools.echo: expected a tool without `run`; found a map of run. Fix: leave it out: the source says how its tools run"]]
    .assert_eq(&found.join("\n"));
}

fn live() -> LiveTool {
    LiveTool {
        name: "echo".to_owned(),
        description: Some("Says it again.".to_owned()),
        parameters: json!({"type": "object", "properties": {"a": {"type": "string"}}}),
        result_schema: Some(json!({"type": "object"})),
        read_only: true,
        idempotent: true,
    }
}

#[test]
fn a_server_fills_what_the_manifest_leaves_out_and_nothing_else() {
    let plain = manifest(&format!("{SERVER}tools: [echo]\n")).unwrap().tools.remove(0);
    let resolved = plain.resolved(&live()).unwrap();
    assert_eq!(resolved.contract.description, "Says it again.");
    assert_eq!(resolved.contract.parameters, live().parameters);
    assert_eq!(resolved.contract.effect, Effect::Irreversible, "nobody trusts it");
    assert_ne!(resolved.contract.fingerprint, plain.contract.fingerprint);
    let other = LiveTool { description: Some("Else.".to_owned()), ..live() };
    let other = plain.resolved(&other).unwrap();
    assert_ne!(other.contract.fingerprint, resolved.contract.fingerprint, "another tool");

    let own = "{ echo: { description: Own words of it., effect: idempotent, parameters: { b: { type: string } } } }";
    let own = manifest(&format!("{SERVER}tools: {own}\n")).unwrap().tools.remove(0);
    let kept = own.resolved(&live()).unwrap();
    assert_eq!(kept.contract.description, "Own words of it.");
    assert_eq!(kept.contract.parameters, own.contract.parameters);
    assert_eq!(kept.contract.effect, Effect::Idempotent);
    assert_ne!(
        kept.contract.fingerprint, own.contract.fingerprint,
        "a server that changes is told"
    );
}

#[test]
fn what_a_server_says_of_repeating_counts_only_where_it_is_trusted() {
    let trusting = SERVER.replace("env: [KEY]", "trust_annotations: true");
    let effects = [(true, true), (false, true), (false, false)].map(|(read_only, idempotent)| {
        let tool = manifest(&format!("{trusting}tools: [echo]\n")).unwrap().tools.remove(0);
        tool.resolved(&LiveTool { read_only, idempotent, ..live() }).unwrap().contract.effect
    });
    assert_eq!(effects, [Effect::ReadOnly, Effect::Idempotent, Effect::Irreversible]);
    let stated = "{ echo: { effect: irreversible } }";
    let tool = manifest(&format!("{trusting}tools: {stated}\n")).unwrap().tools.remove(0);
    assert_eq!(tool.resolved(&live()).unwrap().contract.effect, Effect::Irreversible);
}

#[test]
fn a_schema_that_is_too_large_for_a_record_is_refused() {
    let tool = manifest(&format!("{SERVER}tools: [echo]\n")).unwrap().tools.remove(0);
    let large = LiveTool { parameters: json!({"x": "y".repeat(70_000)}), ..live() };
    assert!(tool.resolved(&large).unwrap_err().contains("write one of your own"));
    let long = LiveTool { description: Some("é".repeat(100_000)), ..live() };
    assert_eq!(tool.resolved(&long).unwrap().contract.description.chars().count(), 4096);
}

#[test]
fn each_risk_of_a_server_is_told() {
    let text = "sources:\n- mcp: { command: [npx, some-server], env: [KEY], trust_annotations: true }\n  tools: [echo]\n- mcp: { url: \"http://h.example/mcp\", private: true }\n  tools:\n    far: { effect: read_only, description: Looks far away at something., parameters: {} }\n";
    let advice = lint(&manifest(text).unwrap());
    expect![[r"
        tools.yaml:3: echo.description and parameters: are what the server says whenever it starts, so it may tell models anything. Advice: let `systole tools import mcp` write description and parameters, and read them
        tools.yaml:3: echo.effect: is what the server says; if it is wrong, an effect may happen twice. Advice: write `effect` here once you know what the tool does
        tools.yaml:3: echo.run.mcp.command: runs whatever version the registry has when the worker starts. Advice: name a version, such as package@1.2.3, or install the server beforehand
        tools.yaml:3: echo.run.mcp.env: hands KEY to a program that somebody else wrote. Advice: give it a key of its own with few rights
        tools.yaml:6: far.run.mcp.url: talks in the clear. Advice: use https: whoever is on the way reads and changes what is said
        tools.yaml:6: far.run.mcp.private: lets a name lead into private networks, whoever answers for the name. Advice: leave it out if the host is public, or write its address"]]
    .assert_eq(&lines(&advice));
}

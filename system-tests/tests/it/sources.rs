//! Tools that others bring: MCP servers and descriptions of APIs, from an import to an answer.

use std::path::PathBuf;

use serde_json::Value;
use testkit::servers::{find_npm, require_server};

use crate::home::Home;
use crate::journal::violations;

const EVERYTHING: &str = "@modelcontextprotocol/server-everything/dist/index.js";
const GITHUB: &str = "@octokit/openapi/generated/api.github.com.json";
const SHOP: &str = "@readme/oas-examples/3.0/json/petstore.json";

fn npm(file: &str) -> Option<PathBuf> {
    require_server(file, find_npm(file))
}

/// An agent that calls one tool and tells what it said.
fn agent(home: &Home, tool: &str, arguments: &str) {
    home.write(
        "agent.yaml",
        &format!("name: tester\nrole: You test one tool.\nmodel: rehearsed\ntools: [{tool}]\n"),
    );
    home.write(
        "rehearsal.yaml",
        &format!(
            "rules:\n  - when: {{ last: user, not_called: [{tool}] }}\n    say: I try it.\n    \
             calls: [{{ tool: {tool}, arguments: {arguments} }}]\n  - when: {{ last: tool }}\n    \
             say: \"It said: {{{{observed.{tool}|nothing}}}}\"\n"
        ),
    );
}

#[test]
fn an_agent_calls_a_tool_of_the_reference_server_and_gets_its_answer() {
    let Some(program) = npm(EVERYTHING) else { return };
    let home = Home::new();
    agent(&home, "echo", "{ message: hello there }");
    let server = format!("[node, '{}', stdio]", program.display());
    home.write(
        "tools.yaml",
        &format!("sources:\n  - mcp: {{ command: {server} }}\n    tools: [echo]\n"),
    );
    let ended = home.run(["run", "agent.yaml", "go", "--json"]);
    assert_eq!(ended.answer(), "It said: Echo: hello there");
    assert!(ended.out.contains("tool_started"), "it counts as irreversible: {}", ended.out);
    assert_eq!(violations(&home), []);
}

#[test]
fn an_imported_server_is_reviewed_checked_and_called() {
    let Some(program) = npm(EVERYTHING) else { return };
    let home = Home::new();
    agent(&home, "echo", "{ message: again }");
    let program = program.display().to_string();
    let import =
        ["tools", "import", "mcp", "--tools", "get-sum,echo", "--", "node", &program, "stdio"];
    let written = home.run(import);
    assert_eq!(written.code, Some(0), "{written:?}");
    assert!(written.out.contains("tools.yaml is written: 2 tools"), "{}", written.out);
    let text = home.read("tools.yaml");
    assert!(text.contains("# - risk: the server is a program of somebody else"), "{text}");
    assert!(text.contains("effect: \"irreversible\""), "{text}");
    assert!(home.run(import).out.contains("tools.yaml is up to date: 2 tools"));
    home.write("tools.yaml", &format!("{text}# mine\n"));
    let refused = home.run(import);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.err.contains("is there and says something else"), "{}", refused.err);
    let forced = [&["tools", "import", "mcp", "--force"], &import[3..]].concat();
    assert_eq!(home.run(forced).code, Some(0));
    assert_eq!(home.read("tools.yaml"), text);
    let checked = home.run(["tools", "check", "agent.yaml", "tools.yaml"]);
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let ended = home.run(["run", "agent.yaml", "go", "--json", "--approve", "echo"]);
    assert_eq!(ended.answer(), "It said: Echo: again");
}

#[test]
fn a_server_that_does_not_start_is_told_before_the_run_begins() {
    let home = Home::new();
    agent(&home, "echo", "{}");
    home.write(
        "tools.yaml",
        "sources:\n  - mcp: { command: [/bin/sh, -c, 'echo no such luck >&2; exit 1'], start_timeout_ms: 5000 }\n    tools: [echo]\n",
    );
    let ended = home.run(["run", "agent.yaml", "go"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(
        ended.err.contains("MCP server /bin/sh") && ended.err.contains("no such luck"),
        "{}",
        ended.err
    );
}

#[test]
fn githubs_description_is_imported_whole() {
    let Some(file) = npm(GITHUB) else { return };
    let home = Home::new();
    let file = file.display().to_string();
    let imported = home.run(["tools", "import", "openapi", &file, "--auth-env", "GITHUB_TOKEN"]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let document: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let paths = document["paths"].as_object().unwrap().values();
    let methods = ["get", "head", "post", "put", "patch", "delete"];
    let operations: usize = paths
        .map(|item| methods.iter().filter(|method| item.get(**method).is_some()).count())
        .sum();
    let checked = home.run(["tools", "list", "tools.yaml", "--json"]);
    let tools = checked.events();
    let left_out = imported.out.matches("left out: ").count();
    assert!(operations > 900, "{operations}");
    assert!(tools.len() + 30 >= operations, "{} of {operations}; {}", tools.len(), imported.out);
    assert!(left_out <= 21, "{}", imported.out);
    let of = |name: &str| {
        let found = tools.iter().find(|tool| tool["tool"]["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}"))["tool"].clone()
    };
    assert_eq!(of("repos_get")["effect"], "read_only");
    let issue = of("issues_create");
    assert_eq!((&issue["effect"], &issue["approval"]), (&"irreversible".into(), &"always".into()));
    assert!(
        issue["parameters"]["properties"]["body"]["properties"]["title"].is_object(),
        "{issue}"
    );
    let text = home.read("tools.yaml");
    assert!(text.contains("url: \"https://api.github.com/repos/{owner}/{repo}/issues\""));
    assert!(text.contains("env: \"GITHUB_TOKEN\""), "the secret stays a reference");
}

#[test]
fn an_operation_of_an_imported_description_is_called() {
    let Some(file) = npm(SHOP) else { return };
    let home = Home::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked = std::thread::spawn(move || {
        use std::io::{BufRead as _, BufReader, Write as _};
        let (mut stream, _) = listener.accept().unwrap();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut head = String::new();
        while reader.read_line(&mut head).unwrap() > 2 {}
        let body = "{\"id\":7,\"name\":\"Rex\"}";
        let head_of = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(format!("{head_of}{body}").as_bytes()).unwrap();
        head
    });
    agent(&home, "getPetById", "{ petId: 7 }");
    let file = file.display().to_string();
    let server = format!("http://{address}/v2");
    let imported = home.run([
        "tools",
        "import",
        "openapi",
        &file,
        "--operations",
        "getPetById",
        "--server",
        &server,
    ]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    let ended = home.run(["run", "agent.yaml", "go", "--json"]);
    assert!(ended.answer().contains("Rex"), "{}", ended.out);
    let head = asked.join().unwrap();
    assert!(head.starts_with("GET /v2/pet/7 HTTP/1.1"), "{head}");
}

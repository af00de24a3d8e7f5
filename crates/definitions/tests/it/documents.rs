//! The examples of the documents are files that load.

use definitions::agent_file::AgentFile;
use definitions::lint::lint;

use crate::{lines, manifest};

/// The YAML blocks of a document.
fn examples(document: &str) -> Vec<&str> {
    let blocks = document.split("```yaml\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap()).collect()
}

#[test]
fn the_examples_of_the_tool_page_load_and_need_no_advice() {
    let examples = examples(include_str!("../../../../docs/tools.md"));
    assert!(examples.len() > 4);
    for example in examples {
        let manifest = manifest(example).unwrap_or_else(|problems| panic!("{}", lines(&problems)));
        assert_eq!(lint(&manifest), []);
    }
}

#[test]
fn the_examples_of_the_agent_page_load() {
    let examples = examples(include_str!("../../../../docs/agents.md"));
    assert_eq!(examples.len(), 1);
    for example in examples {
        AgentFile::parse("agent.yaml", example)
            .unwrap_or_else(|problems| panic!("{}", lines(&problems)));
    }
}

#[test]
fn every_known_field_has_its_line_in_the_documents() {
    let pages = concat!(
        include_str!("../../../../docs/tools.md"),
        include_str!("../../../../docs/agents.md")
    );
    let known = [
        manifest("tools:\n  - zzzzzz: 1\n").unwrap_err(),
        manifest("tools: [{name: a, description: b, retry: {zzzzzz: 1}, run: [c]}]").unwrap_err(),
        manifest("tools: [{name: a, description: b, run: {command: [c], zzzzzz: 1}}]").unwrap_err(),
        manifest("tools: [{name: a, run: {builtin: clock, zzzzzz: 1}}]").unwrap_err(),
        manifest("tools: [{name: a, description: b, run: {http: {url: 'https://h', zzzzzz: 1}}}]")
            .unwrap_err(),
        manifest("tools: [{name: a, description: b, run: [c], resource: {zzzzzz: 1}}]")
            .unwrap_err(),
        manifest("tools: [{name: a, description: b, run: [c], concurrency: {zzzzzz: 1}}]")
            .unwrap_err(),
        manifest("tools: [{name: a, description: b, run: [c], shape: {zzzzzz: 1}}]").unwrap_err(),
        manifest("tools: [{name: a, run: {mcp: {command: [c], tool: t, zzzzzz: 1}}}]").unwrap_err(),
        manifest("tools: [{name: a, run: {mcp: {url: 'https://h', tool: t, zzzzzz: 1}}}]")
            .unwrap_err(),
        manifest("sources: [{mcp: {command: [c]}, tools: [t], zzzzzz: 1}]").unwrap_err(),
        manifest("sources: [{openapi: shop.yaml, operations: all, zzzzzz: 1}]").unwrap_err(),
        AgentFile::parse("a", "zzzzzz: 1").unwrap_err(),
        AgentFile::parse("a", "limits: {zzzzzz: 1}").unwrap_err(),
    ];
    let unknown = known.iter().flatten().filter(|problem| problem.found == "an unknown field");
    let lists = unknown.filter_map(|problem| problem.expected.strip_prefix("one of "));
    let fields: Vec<&str> = lists.flat_map(|list| list.split(", ")).collect();
    assert!(fields.len() > 50, "{fields:?}");
    // Other spellings that the pages do not advertise.
    let quiet = ["attempts", "command", "initial_delay_ms", "timeout_s"];
    let missing: Vec<&&str> =
        fields.iter().filter(|field| !quiet.contains(field) && !pages.contains(**field)).collect();
    assert_eq!(missing, Vec::<&&str>::new());
}

//! Slips of the pen that would pass in silence, and files that are not there.

use std::path::Path;

use definitions::agent_file::AgentFile;
use definitions::lint::lint;
use definitions::manifest::Manifest;
use definitions::run::{Surroundings, Unset};
use expect_test::{Expect, expect};

use crate::manifests::{with, wrong};
use crate::{lines, manifest, told};

#[test]
fn a_misspelt_word_of_a_schema_is_told_with_the_word_that_is_meant() {
    wrong(
        &with("parameters: { a: { type: string, requird: true, descripton: The a. } }"),
        &expect![[r"
            tools.yaml:5:38: tools[0].parameters.a.requird: expected a word of JSON Schema; found `requird`, which means nothing. Fix: write `required`
            tools.yaml:5:53: tools[0].parameters.a.descripton: expected a word of JSON Schema; found `descripton`, which means nothing. Fix: write `description`"]],
    );
    wrong(
        &with(
            "parameters:\n  type: object\n  propertis: {}\n  properties:\n    a:\n      items: { typ: string }",
        ),
        &expect![[r"
            tools.yaml:7:7: tools[0].parameters.propertis: expected a word of JSON Schema; found `propertis`, which means nothing. Fix: write `properties`
            tools.yaml:10:20: tools[0].parameters.properties.a.items.typ: expected a word of JSON Schema; found `typ`, which means nothing. Fix: write `type`"]],
    );
    wrong(
        &with("result_schema: { type: object, requird: [a] }"),
        &expect![
            "tools.yaml:5:36: tools[0].result_schema.requird: expected a word of JSON Schema; found `requird`, which means nothing. Fix: write `required`"
        ],
    );
}

#[test]
fn a_comma_that_ends_a_text_too_early_is_told() {
    wrong(
        &with("parameters: { a: { type: string, description: How much, in cents. } }"),
        &expect![
            "tools.yaml:5:61: tools[0].parameters.a: expected fields of a schema; found `in cents.`. Fix: put the whole text in quotes: inside `{ }` a comma ends it"
        ],
    );
}

#[test]
fn words_of_somebody_else_are_allowed_and_get_advice() {
    let text = with(
        "effect: read_only\ntimeout_ms: 5000\nparameters: { a: { type: string, required: true, description: The a., x-order: 1, vendor: 2 } }",
    );
    let advice = lint(&manifest(&text).unwrap());
    expect!["tools.yaml:2: t.parameters.a: has `vendor`, which means nothing in JSON Schema. Advice: leave it out, or begin it with `x-` if it is meant for somebody else"].assert_eq(&lines(&advice));
}

#[test]
fn yes_is_no_truth_and_any_is_no_type() {
    wrong(
        &with("parameters: { a: { type: any, required: yes }, b: date, c: { type: Text } }"),
        &expect![[r#"
            tools.yaml:5:30: tools[0].parameters.a.type: expected one of string, number, integer, boolean, array, object, null; found "any". Fix: leave `type` out: then anything fits
            tools.yaml:5:45: tools[0].parameters.a.required: expected true or false; found "yes". Fix: write `required: true` without quotes; YAML reads `yes` and `no` as text
            tools.yaml:5:55: tools[0].parameters.b: expected one of string, number, integer, boolean, array, object, null; found "date". Fix: write `type: string` with `format: date`
            tools.yaml:5:72: tools[0].parameters.c.type: expected one of string, number, integer, boolean, array, object, null; found "Text". Fix: write `type: string`"#]],
    );
    wrong(
        &with("parameters:\n  type: object\n  properties: { a: { type: string } }\n  required: a"),
        &expect![[
            r#"tools.yaml:8:17: tools[0].parameters.required: expected a list of names; found "a". Fix: write `required: [a]`"#
        ]],
    );
}

#[test]
fn a_field_is_found_by_its_beginning() {
    wrong(
        "tools:\n  - name: t\n    description: Does one thing well.\n    perms: [ops]\n    desc: x\n    run: [bin]\n",
        &expect![[r"
            tools.yaml:4:5: tools[0].perms: expected one of approval, cache_ttl_ms, command, concurrency, description, effect, external, fallback, inputSchema, input_schema, max_retries, name, parameters, parameters_schema, permissions, probe, resource, result_schema, result_tokens, retry, retry_policy, run, shape, stale_ms, start_timeout_ms, timeout, timeout_ms, timeout_s, timeout_seconds, total_timeout_ms; found an unknown field. Fix: leave it out
            tools.yaml:5:5: tools[0].desc: expected a known field; found an unknown field. Fix: did you mean `description`? Else leave it out"]],
    );
}

#[test]
fn a_limit_of_a_few_milliseconds_gets_advice() {
    let text = with("effect: read_only\ntimeout: 3");
    expect!["tools.yaml:2: t.timeout_ms: is 3 ms: hardly anything ends so soon. Advice: write seconds as `3s` or `timeout_seconds: 3`"]
        .assert_eq(&lines(&lint(&manifest(&text).unwrap())));
}

#[test]
fn a_parameter_in_any_language_fills_its_hole_and_gets_advice() {
    let text = with(
        "effect: read_only\ntimeout_ms: 5000\nparameters: { größe: { type: integer, required: true, description: The size. } }\nrun: { command: [bin, \"{größe}\"] }",
    );
    expect!["tools.yaml:2: t.parameters.größe: has a name that some providers refuse. Advice: write it with A to Z, digits, `_` and `-`"]
        .assert_eq(&lines(&lint(&manifest(&text).unwrap())));
    wrong(
        &with("parameters: { größe: integer }\nrun: { command: [bin, \"{grösse}\"] }"),
        &expect![
            "tools.yaml:5:27: tools[0].run.command[1]: expected the name of a parameter (größe); found `{grösse}`. Fix: write `{größe}`"
        ],
    );
}

#[test]
fn a_variable_without_a_value_stands_for_the_right_thing_while_a_file_is_only_checked() {
    let around = |unset| Surroundings {
        folder: Path::new("/a"),
        variable: &|_| None,
        unset,
        document: &definitions::run::no_document,
    };
    for run in [
        "http: { url: \"${SHOP_URL}/v2\" }",
        "http: { url: \"https://${SHOP_HOST}/v2\" }",
        "http: { url: \"${SHOP_URL:-https://shop.example.com}/v2\" }",
        "{ command: [bin], folder: \"${WORK}\" }",
    ] {
        let text = with(&format!(
            "run: {}",
            if run.starts_with('{') { run.to_owned() } else { format!("{{ {run} }}") }
        ));
        let checked = Manifest::parse("tools.yaml", &text, &around(Unset::StandIn));
        assert!(checked.is_ok(), "{run}: {checked:?}");
        let used = Manifest::parse("tools.yaml", &text, &around(Unset::Problem));
        assert_eq!(used.is_ok(), run.contains(":-"), "{run}: {used:?}");
    }
}

const AGENT: &str = "name: a\nrole: r\nmodel: m\ntools: [pay]\n";

fn missing(more: &str, name: &str, near: Option<&str>, expected: &Expect) {
    let file = AgentFile::parse("agent.yaml", &format!("{AGENT}{more}")).unwrap();
    let problems = if more.contains("rehearsal") {
        file.missing_rehearsal(name, near)
    } else {
        file.missing_manifest(name, near)
    };
    expected.assert_eq(&told(&problems));
}

#[test]
fn a_file_that_is_not_there_is_told_where_it_is_named() {
    missing(
        "manifest: [other.yaml, tols.yaml]\n",
        "tols.yaml",
        Some("tools.yaml"),
        &expect![
            "agent.yaml:5:24: manifest[1]: expected a tool file that is there; found no file `tols.yaml`. Fix: write `tools.yaml`"
        ],
    );
    missing(
        "",
        "tools.yaml",
        None,
        &expect![
            "agent.yaml:4:8: manifest: expected a tool file that is there; found no file `tools.yaml`. Fix: make tools.yaml, or write `manifest:` with the path of another"
        ],
    );
    missing(
        "rehearsal: play.yaml\n",
        "play.yaml",
        None,
        &expect![
            "agent.yaml:5:12: rehearsal: expected a rehearsal that is there; found no file `play.yaml`. Fix: write its path, relative to this file, or make it"
        ],
    );
}

#[test]
fn a_tool_that_the_agent_may_not_call_is_told() {
    let text = with("effect: read_only\npermissions: [ops, pay]").replace("name: t", "name: pay");
    let manifest = manifest(&text).unwrap();
    let contracts = || manifest.tools.iter().map(|tool| &tool.contract);
    let without = AgentFile::parse("agent.yaml", AGENT).unwrap();
    expect!["agent.yaml:4:9: tools[0]: expected a tool that the agent may call; found `pay`, which needs one of ops, pay. Fix: add `permissions: [ops]`"]
        .assert_eq(&told(&without.not_permitted(contracts())));
    let with = AgentFile::parse("agent.yaml", &format!("{AGENT}permissions: [pay]\n")).unwrap();
    assert_eq!(with.not_permitted(contracts()), []);
}

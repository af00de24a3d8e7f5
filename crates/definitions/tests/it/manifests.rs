use std::path::PathBuf;

use definitions::run::{Builtin, BuiltinRun, CommandRun, Run};
use expect_test::{Expect, expect};
use proptest::prelude::*;
use proto::ids::ToolName;
use proto::tool::{Approval, Effect, Retry};
use serde_json::json;

use crate::{manifest, told};

const HEAD: &str = "tools:\n  - name: t\n    description: Does one thing well.\n";

/// One valid tool with the given lines added.
pub(crate) fn with(lines: &str) -> String {
    let run = if lines.contains("run:") { "" } else { "    run: { command: [bin] }\n" };
    let lines: Vec<String> = lines.lines().map(|line| format!("    {line}")).collect();
    let lines = lines.join("\n");
    format!("{HEAD}{run}{lines}\n")
}

pub(crate) fn wrong(text: &str, expected: &Expect) {
    let problems = manifest(text).unwrap_err();
    expected.assert_eq(&told(&problems));
}

#[test]
fn the_common_form_of_other_frameworks_loads() {
    let manifest = manifest(include_str!("../../fixtures/get_weather.yaml")).unwrap();
    let tool = &manifest.tools[0];
    assert_eq!(tool.contract.name, ToolName::new("get_weather").unwrap());
    assert_eq!(
        tool.contract.parameters,
        json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "description": "The name of the city" },
                "date": {
                    "type": "string",
                    "description": "The day to look up. Format: YYYY-MM-DD, today if absent",
                },
                "units": {
                    "type": "string",
                    "enum": ["metric", "imperial"],
                    "default": "metric",
                    "description": "The units of the answer",
                },
            },
            "required": ["city"],
            "additionalProperties": false,
        })
    );
    assert_eq!(tool.contract.timeout_ms, 3000);
    assert_eq!(tool.contract.retry, Retry { max_attempts: 3, backoff_ms: 500 });
}

#[test]
fn every_field_of_a_tool_is_read() {
    let manifest = manifest(include_str!("../../fixtures/everything.yaml")).unwrap();
    let restart = &manifest.tools[0];
    assert_eq!(restart.contract.effect, Effect::Checkable);
    assert_eq!(restart.contract.approval, Approval::Always);
    assert_eq!(restart.contract.retry, Retry { max_attempts: 2, backoff_ms: 250 });
    assert_eq!(restart.contract.permissions, ["ops"]);
    assert_eq!(restart.contract.result_schema, Some(json!({"type": "object"})));
    assert_eq!((restart.contract.timeout_ms, restart.contract.result_tokens), (15_000, 200));
    assert_eq!(
        restart.policy.resource.as_ref().map(|resource| resource.name.as_str()),
        Some("service/{service}")
    );
    let command = |argv: &[&str], folder: &str, env: &[&str], max_output_bytes| {
        Run::Command(CommandRun {
            argv: argv.iter().map(|&text| text.to_owned()).collect(),
            folder: Some(PathBuf::from(folder)),
            env: env.iter().map(|&text| text.to_owned()).collect(),
            max_output_bytes,
        })
    };
    let argv = ["/agents/bin/restart", "{service}"];
    assert_eq!(restart.run, command(&argv, "/agents/ops/state", &["PATH_TO_STATE"], 4096));
    let argv = ["systole", "probe", "{service}"];
    assert_eq!(restart.probe, Some(command(&argv, "/agents/ops", &[], 1024 * 1024)));
}

#[test]
fn a_builtin_brings_its_own_contract() {
    let manifest = manifest(include_str!("../../fixtures/everything.yaml")).unwrap();
    let read = &manifest.tools[1];
    let root = Some(PathBuf::from("/notes"));
    assert_eq!(
        read.run,
        Run::Builtin(BuiltinRun { builtin: Builtin::ReadFile, root, private: false })
    );
    assert_eq!(read.contract.effect, Effect::ReadOnly);
    assert_eq!(read.contract.description, Builtin::ReadFile.description());
    assert_eq!(read.contract.parameters, Builtin::ReadFile.parameters());
    assert_eq!((read.contract.timeout_ms, read.policy.cache_ttl_ms), (5000, 1000));
    let clock = &manifest.tools[2];
    assert_eq!(
        clock.run,
        Run::Builtin(BuiltinRun { builtin: Builtin::Clock, root: None, private: false })
    );
    assert_eq!(clock.contract.timeout_ms, 3000);
}

#[test]
fn defaults_are_the_careful_ones() {
    let manifest = manifest(&with("")).unwrap();
    let tool = &manifest.tools[0];
    assert_eq!(tool.contract.effect, Effect::Irreversible);
    assert_eq!(tool.contract.approval, Approval::Never);
    assert_eq!(tool.contract.retry, Retry { max_attempts: 3, backoff_ms: 500 });
    assert_eq!((tool.contract.timeout_ms, tool.contract.result_tokens), (3000, 300));
    assert_eq!(tool.policy.cache_ttl_ms, 0);
    let no_fields = json!({"type": "object", "properties": {}, "additionalProperties": false});
    assert_eq!(tool.contract.parameters, no_fields);
}

#[test]
fn timeouts_and_retries_load_in_every_form() {
    for (lines, timeout_ms, max_attempts, backoff_ms) in [
        ("timeout_ms: 1500", 1500, 3, 500),
        ("timeout: 1500", 1500, 3, 500),
        ("timeout: 2s", 2000, 3, 500),
        ("timeout: 250ms", 250, 3, 500),
        ("timeout_seconds: 1.5", 1500, 3, 500),
        ("timeout_seconds: 4", 4000, 3, 500),
        ("max_retries: 0", 3000, 1, 500),
        ("retry: { max_attempts: 5 }", 3000, 5, 500),
        ("retry: { max_retries: 5, backoff: 100 }", 3000, 6, 100),
        ("retry_policy: { backoff: 1.5s }", 3000, 3, 1500),
        ("retry_policy: { backoff_seconds: 2 }", 3000, 3, 2000),
        ("retry_policy: { max_attempts: 1, backoff: exponential }", 3000, 1, 500),
    ] {
        let manifest = manifest(&with(lines)).unwrap();
        let contract = &manifest.tools[0].contract;
        assert_eq!(contract.timeout_ms, timeout_ms, "{lines}");
        assert_eq!(contract.retry, Retry { max_attempts, backoff_ms }, "{lines}");
    }
}

#[test]
fn parameters_load_under_every_name_and_nested() {
    let schema =
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    for name in ["parameters", "parameters_schema", "input_schema", "inputSchema"] {
        let manifest = manifest(&with(&format!("{name}: {schema}"))).unwrap();
        assert_eq!(manifest.tools[0].contract.parameters, schema);
    }
    let nested = with(
        "parameters:\n  properties:\n    at:\n      type: object\n      properties:\n        x: {type: integer, required: true}",
    );
    assert_eq!(
        manifest(&nested).unwrap().tools[0].contract.parameters,
        json!({
            "type": "object",
            "properties": { "at": {
                "type": "object",
                "properties": { "x": {"type": "integer"} },
                "required": ["x"],
            } },
        })
    );
    let words = with("parameters: {city: str, days: int, exact: {type: bool, optional: false}}");
    assert_eq!(
        manifest(&words).unwrap().tools[0].contract.parameters,
        json!({
            "type": "object",
            "properties": {
                "city": {"type": "string"}, "days": {"type": "integer"}, "exact": {"type": "boolean"},
            },
            "required": ["exact"],
            "additionalProperties": false,
        })
    );
}

#[test]
fn a_bare_list_and_json_load_too() {
    let list =
        "- {name: a, description: One., run: [bin]}\n- {name: b, description: Two., run: [bin]}\n";
    assert_eq!(manifest(list).unwrap().tools.len(), 2);
    let json =
        r#"{"tools": [{"name": "a", "description": "One.", "run": {"command": ["bin", 5]}}]}"#;
    assert_eq!(manifest(json).unwrap().tools.len(), 1);
}

#[test]
fn every_problem_of_a_file_is_told_at_once() {
    let text = r#"tools:
  - name: "restart service"
    descripton: Restart it.
    effect: reads
    timeout_ms: fast
    retry: { max_attempts: 0, backof: 1 }
    approval: sometimes
    result_tokens: -1
    run: { command: "restart {service}" }
  - name: fine
    description: ""
    effect: read-only
    parameters: { city: { type: strng } }
    run: { command: ["bin", "{town}"] }
"#;
    wrong(
        text,
        &expect![[r#"
            tools.yaml:2:5: tools[0].description: expected what the tool does, for the model; found nothing. Fix: add `description: …`
            tools.yaml:2:11: tools[0].name: expected 1 to 64 of A-Z, a-z, 0-9, - and _; found "restart service". Fix: models can send only such a name
            tools.yaml:3:5: tools[0].descripton: expected a known field; found an unknown field. Fix: did you mean `description`? Else leave it out
            tools.yaml:4:13: tools[0].effect: expected one of read_only, idempotent, checkable, irreversible; found "reads". Fix: write one of them
            tools.yaml:5:17: tools[0].timeout_ms: expected milliseconds, at most a day; found "fast". Fix: write a whole number such as 3000, or 3s
            tools.yaml:6:28: tools[0].retry.max_attempts: expected a whole number from 1 to 20; found 0. Fix: write such a number without quotes
            tools.yaml:6:31: tools[0].retry.backof: expected a known field; found an unknown field. Fix: did you mean `backoff`? Else leave it out
            tools.yaml:7:15: tools[0].approval: expected one of never, always, when_tainted, { when: "<condition>" }; found "sometimes". Fix: write one of them
            tools.yaml:8:20: tools[0].result_tokens: expected a whole number from 1 to 100000; found -1. Fix: write such a number without quotes
            tools.yaml:9:21: tools[0].run.command: expected a list of program and arguments; found "restart {service}". Fix: write ["restart", "{service}"]: no shell splits it
            tools.yaml:11:18: tools[1].description: expected text that is not empty; found "". Fix: write it or leave the field out
            tools.yaml:12:13: tools[1].effect: expected one of read_only, idempotent, checkable, irreversible; found "read-only". Fix: write `read_only`
            tools.yaml:13:33: tools[1].parameters.city.type: expected a JSON Schema that can be used; found a part that must be one of string, number, integer, boolean, array, object, null. Fix: write `string`"#]],
    );
}

#[test]
fn an_unknown_field_is_told_with_what_was_meant() {
    wrong(
        &with("effekt: read_only"),
        &expect![
            "tools.yaml:5:5: tools[0].effekt: expected a known field; found an unknown field. Fix: did you mean `effect`? Else leave it out"
        ],
    );
    wrong(
        &with("colour: red"),
        &expect![
            "tools.yaml:5:5: tools[0].colour: expected one of approval, cache_ttl_ms, command, concurrency, description, effect, external, fallback, inputSchema, input_schema, max_retries, name, parameters, parameters_schema, permissions, probe, resource, result_schema, result_tokens, retry, retry_policy, run, shape, stale_ms, start_timeout_ms, timeout, timeout_ms, timeout_s, timeout_seconds, total_timeout_ms; found an unknown field. Fix: leave it out"
        ],
    );
    wrong(
        "tolls: []\n",
        &expect![[r"
            tools.yaml:1:1: tolls: expected a known field; found an unknown field. Fix: did you mean `tools`? Else leave it out
            tools.yaml:1:1: tools: expected a list of tools; found nothing. Fix: add `tools: …`"]],
    );
}

#[test]
fn a_tool_needs_a_name_a_description_and_a_run() {
    wrong(
        "tools:\n  - effect: read_only\n",
        &expect![[r"
            tools.yaml:2:5: tools[0].description: expected what the tool does, for the model; found nothing. Fix: add `description: …`
            tools.yaml:2:5: tools[0].name: expected the name that models call the tool by; found nothing. Fix: add `name: …`
            tools.yaml:2:5: tools[0].run: expected how the tool runs: command, http, mcp or builtin; found nothing. Fix: add `run: …`"]],
    );
}

#[test]
fn two_names_for_one_setting_contradict_each_other() {
    wrong(
        &with("timeout: 5\ntimeout_seconds: 5"),
        &expect![
            "tools.yaml:6:22: tools[0].timeout_seconds: expected only one of the two, and `tools[0].timeout` is there; found 5. Fix: leave this one out"
        ],
    );
    wrong(
        &with("retry: {max_attempts: 1}\nmax_retries: 2"),
        &expect![
            "tools.yaml:6:18: tools[0].max_retries: expected only one of the two, and `tools[0].retry` is there; found 2. Fix: leave this one out"
        ],
    );
}

#[test]
fn a_name_is_used_once() {
    let text = format!("{}  - name: t\n    description: Again.\n    run: [bin]\n", with(""));
    wrong(
        &text,
        &expect![
            "tools.yaml:6:5: tools[1]: expected a name of its own for each tool; found `t`, which line 2 has already. Fix: rename one of them"
        ],
    );
}

#[test]
fn effects_probes_and_caches_have_to_agree() {
    wrong(
        &with("effect: checkable"),
        &expect![
            "tools.yaml:2:5: tools[0].probe: expected a probe, because the effect is checkable; found nothing. Fix: add `probe: { command: […] }` that tells whether the effect happened, or write `irreversible`"
        ],
    );
    wrong(
        &with("effect: read_only\nprobe: [bin]"),
        &expect![
            "tools.yaml:6:12: tools[0].probe: expected a probe only for a checkable tool; found one for a tool that is read_only. Fix: write `effect: checkable` or leave the probe out"
        ],
    );
    wrong(
        &with("effect: idempotent\ncache_ttl_ms: 5"),
        &expect![
            "tools.yaml:6:19: tools[0].cache_ttl_ms: expected 0 unless the tool is read_only; found 5. Fix: leave it out: the result of an effect is not used again"
        ],
    );
}

#[test]
fn a_run_is_a_list_of_fixed_program_and_arguments() {
    wrong(
        &with("run: { command: [] }"),
        &expect![
            "tools.yaml:4:21: tools[0].run.command: expected a program and its arguments; found a list of 0. Fix: name the program first"
        ],
    );
    wrong(
        &with("run: { command: [\"{program}\"] }"),
        &expect![[r#"
            tools.yaml:4:22: tools[0].run.command[0]: expected a fixed program; found "{program}". Fix: a model must not choose the program: name it
            tools.yaml:4:22: tools[0].run.command[0]: expected the name of a parameter (); found `{program}`. Fix: add it to the parameters"#]],
    );
    wrong(
        &with("run: { command: [bin, {city}] }"),
        &expect![
            "tools.yaml:4:27: tools[0].run.command[1]: expected text; found a map of city. Fix: put `{name}` in quotes, or YAML takes it for a map"
        ],
    );
    wrong(
        &with("run: { shell: ls }"),
        &expect![[
            r#"tools.yaml:4:10: tools[0].run: expected how the tool runs: command, http, mcp or builtin; found a map of shell. Fix: write `{ command: [program, "{argument}"] }`, `{ http: { url: … } }` or `{ builtin: read_file }`"#
        ]],
    );
    wrong(
        &with("run: ls -l"),
        &expect![[
            r#"tools.yaml:4:10: tools[0].run: expected how the tool runs: command, http, mcp or builtin; found "ls -l". Fix: write `{ command: [program, "{argument}"] }`, `{ http: { url: … } }` or `{ builtin: read_file }`"#
        ]],
    );
}

#[test]
fn a_builtin_is_known_and_keeps_its_parameters() {
    wrong(
        &with("run: { builtin: readfile }"),
        &expect![[
            r#"tools.yaml:4:21: tools[0].run.builtin: expected one of list_files, read_file, search_files, write_file, edit_file, clock, fetch_url, expand, remember, recall, forget; found "readfile". Fix: write `read_file`"#
        ]],
    );
    wrong(
        &with("run: { builtin: clock, root: . }"),
        &expect![[
            r#"tools.yaml:4:34: tools[0].run.root: expected no root, for it reads no files; found ".". Fix: leave it out"#
        ]],
    );
    wrong(
        &with("run: { builtin: read_file, root: \"${NOWHERE}\" }"),
        &expect![
            "tools.yaml:4:38: tools[0].run.root: expected a folder; found ${NOWHERE}, which is not set. Fix: set NOWHERE, or write `${NOWHERE:-otherwise}`"
        ],
    );
    wrong(
        &with("run: { builtin: read_file }\nparameters: { file: string }"),
        &expect![
            "tools.yaml:5:17: tools[0].parameters: expected parameters that the builtin has: from_line, lines, path; found `file`. Fix: leave the parameters out"
        ],
    );
}

#[test]
fn a_schema_that_cannot_be_used_is_told_at_its_line() {
    wrong(
        &with(
            "parameters:\n  type: object\n  properties:\n    a: {$ref: \"https://example.com/a\"}",
        ),
        &expect![[
            r##"tools.yaml:6:7: tools[0].parameters: expected a JSON Schema that can be used; found a part that has a reference that cannot be followed: Resource 'https://example.com/a' is not present in a registry and retrieving it failed: Retrieval is disabled, cannot fetch https://example.com/a. Fix: references stay inside the schema: write `$ref: "#/$defs/…"`, nothing is fetched"##
        ]],
    );
    wrong(
        &with("parameters:\n  type: array"),
        &expect![
            "tools.yaml:6:13: tools[0].parameters.type: expected a JSON Schema that can be used; found a part that must be `object`: arguments are one JSON object. Fix: write `type: object` with `properties`"
        ],
    );
    wrong(
        &with("parameters:\n  type: object\n  properties:\n    a: {type: string, pattern: \"(\"}"),
        &expect![
            "tools.yaml:8:36: tools[0].parameters.properties.a.pattern: expected a JSON Schema that can be used; found a part that must be in the format regex. Fix: change it"
        ],
    );
    wrong(
        &with("parameters: [city]"),
        &expect![
            "tools.yaml:5:17: tools[0].parameters: expected a JSON Schema of type object, or a map of fields; found a list of 1. Fix: write `city: {type: string, required: true, description: …}` for each parameter"
        ],
    );
}

#[test]
fn a_file_that_is_not_yaml_is_one_problem_with_its_place() {
    wrong(
        "tools:\n  - name: a\n   description: b\n",
        &expect![
            "tools.yaml:3:4: expected one YAML document with unique names; found while parsing a block collection, did not find expected '-' indicator. Fix: indent line 3 like the lines it belongs to: it has 3 blanks, a line above has 2"
        ],
    );
    wrong(
        "tools: [\n",
        &expect![
            "tools.yaml:1:8: expected one YAML document with unique names; found unclosed bracket '['. Fix: correct the file at this place; put text with `: ` or `{` in quotes"
        ],
    );
    wrong(
        "tools:\n  - name: a\n    name: b\n",
        &expect![
            "tools.yaml:3:5: expected one YAML document with unique names; found duplicate mapping key `name` is not allowed here. Fix: correct the file at this place; put text with `: ` or `{` in quotes"
        ],
    );
    wrong(
        "",
        &expect![
            "tools.yaml:1:1: expected `tools:` with a list of tools; found nothing. Fix: write `tools:` and one `- name: …` each"
        ],
    );
    wrong(
        "just text\n",
        &expect![[
            r#"tools.yaml:1:1: expected `tools:` with a list of tools; found "just text". Fix: write `tools:` and one `- name: …` each"#
        ]],
    );
    wrong(
        "tools: [5]\n",
        &expect![
            "tools.yaml:1:9: tools[0]: expected a map of fields; found 5. Fix: write `name: value` lines here"
        ],
    );
}

#[test]
fn a_fingerprint_tells_tools_apart_and_not_folders() {
    let print = |text: &str| manifest(text).unwrap().tools[0].contract.fingerprint.clone();
    let same = print(&with("effect: read_only\ntimeout_ms: 5"));
    assert_eq!(same, print(&with("timeout: 5\neffect: read_only")));
    for other in [
        "effect: read_only\ntimeout_ms: 6",
        "effect: idempotent\ntimeout_ms: 5",
        "effect: read_only\ntimeout_ms: 5\nresource: x",
        "effect: read_only\ntimeout_ms: 5\nrun: [bin, more]",
    ] {
        assert_ne!(same, print(&with(other)), "{other}");
    }
    let elsewhere = {
        let variable = |_: &str| None;
        let folder = std::path::Path::new("/elsewhere");
        let around = definitions::run::Surroundings {
            folder,
            variable: &variable,
            unset: definitions::run::Unset::Problem,
            document: &definitions::run::no_document,
        };
        let text = with("effect: read_only\ntimeout_ms: 5\nrun: { command: [./bin] }");
        definitions::manifest::Manifest::parse("tools.yaml", &text, &around).unwrap()
    };
    let here = print(&with("effect: read_only\ntimeout_ms: 5\nrun: { command: [./bin] }"));
    assert_eq!(elsewhere.tools[0].contract.fingerprint, here);
}

#[test]
fn a_changed_program_is_another_tool() {
    let tool = manifest(&with("")).unwrap().tools.remove(0);
    let one = tool.clone().with_implementation_hash("aa");
    let two = tool.clone().with_implementation_hash("bb");
    assert_ne!(one.contract.fingerprint, two.contract.fingerprint);
    assert_ne!(one.contract.fingerprint, tool.contract.fingerprint);
    assert_eq!(one, tool.with_implementation_hash("aa"));
}

proptest! {
    /// Whatever somebody writes, reading it ends with a value or with problems that have a text.
    #[test]
    fn no_text_breaks_the_reader(text in "[a-z{}\\[\\]:,\\-#&*!|>'\"% \n0-9]{0,120}") {
        if let Err(problems) = manifest(&text) {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                prop_assert!(problem.to_string().contains("Fix: "));
            }
        }
    }

    /// The same for files that are nearly right.
    #[test]
    fn no_slip_breaks_the_reader(at in 0_usize..900, with in "[a-z:{}\\[\\] \n]{0,3}") {
        let whole = include_str!("../../fixtures/everything.yaml");
        let at = at.min(whole.len() - 1);
        let text = format!("{}{with}{}", &whole[..at], &whole[at + 1..]);
        if let Err(problems) = manifest(&text) {
            prop_assert!(!problems.is_empty());
        }
    }
}

#[test]
fn a_tab_is_told_where_it_is() {
    for (text, line) in [
        ("tools:\n  - name: a\n\tdescription: x\n", 3),
        ("tools:\n  - name: a\n    description: x y\n\n    \teffect: read_only\n", 5),
        ("tools:\n  - name: a\n    run:\n      command:\n\t- a\n", 5),
    ] {
        let problems = manifest(text).unwrap_err();
        assert_eq!((problems.len(), problems[0].line), (1, line), "{problems:?}");
        assert!(problems[0].fix.starts_with("replace the tab by spaces"), "{problems:?}");
    }
}

#[test]
fn a_command_in_one_text_is_told_as_a_list_that_can_be_pasted() {
    let text = |command: &str| {
        format!(
            "tools:\n  - name: a\n    description: does a\n    effect: read_only\n    \
             parameters: {{ x: {{ type: string }} }}\n    run: {{ command: {command} }}\n"
        )
    };
    let problems = manifest(&text("\"./a.sh {x}\"")).unwrap_err();
    let fix = problems[0].fix.strip_prefix("write ").unwrap();
    let list = fix.split_once(": no shell").unwrap().0;
    assert_eq!(list, r#"["./a.sh", "{x}"]"#);
    manifest(&text(list)).unwrap();
}

fn with_city(lines: &str) -> String {
    let text = with(lines);
    let city = "    parameters: { city: { type: string, description: \"A city.\" } }\n";
    format!("{text}{city}")
}

#[test]
fn a_condition_for_an_approval_is_compiled_when_the_file_is_read() {
    let read = manifest(&with_city("approval: { when: \"size(city) > 3\" }")).unwrap();
    assert_eq!(read.tools[0].contract.approval, Approval::When("size(city) > 3".to_owned()));
    wrong(
        &with_city("approval: { when: \"citi != 'Rome'\" }"),
        &expect![[
            r"tools.yaml:5:23: tools[0].approval.when: expected a condition over the arguments, in CEL; found `citi`, which is no parameter. Fix: write `city`"
        ]],
    );
    wrong(
        &with_city("approval: { when: \"city >\", of: 1 }"),
        &expect![[r"
            tools.yaml:5:23: tools[0].approval.when: expected a condition over the arguments, in CEL; found no expression in CEL (ERROR: <input>:1:7: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER} | city > | ......^). Fix: write a condition over the arguments, such as `amount > 100`
            tools.yaml:5:33: tools[0].approval.of: expected one of when; found an unknown field. Fix: leave it out"]],
    );
}

#[test]
fn what_is_shared_and_what_stands_in_is_read() {
    let text = "resource: { name: \"city/{city}\", cool_down_ms: 5s, rate: 2 per 10m }\n\
                concurrency: { per_worker: 2, fleet: 5 }\nstart_timeout_ms: 2m\n\
                total_timeout_ms: 9s\nshape: { keep: [/a/*/b], rows: 5, part: tail }\n\
                fallback: [{ command: [other, \"{city}\"] }]";
    let tool = manifest(&with_city(text)).unwrap().tools.remove(0);
    expect![[r#"
        (
            Policy {
                resource: Some(
                    Resource {
                        name: "city/{city}",
                        cool_down_ms: 5000,
                        rate: Some(
                            Rate {
                                most: 2,
                                per_ms: 600000,
                            },
                        ),
                    },
                ),
                cache_ttl_ms: 0,
                stale_ms: 0,
                concurrency: Concurrency {
                    per_worker: Some(
                        2,
                    ),
                    fleet: Some(
                        5,
                    ),
                },
                fallbacks: [
                    Command(
                        CommandRun {
                            argv: [
                                "other",
                                "{city}",
                            ],
                            folder: Some(
                                "/agents/ops",
                            ),
                            env: [],
                            max_output_bytes: 1048576,
                        },
                    ),
                ],
                shaping: Shaping {
                    keep: [
                        "/a/*/b",
                    ],
                    rows: Some(
                        5,
                    ),
                    part: Tail,
                },
            },
            Deadlines {
                start_ms: Some(
                    120000,
                ),
                total_ms: Some(
                    9000,
                ),
            },
        )
    "#]]
    .assert_debug_eq(&(tool.policy, tool.contract.deadlines));
    for wrong_text in [
        "resource: { name: \"{town}\" }",
        "resource: { name: x, rate: 2 per day }",
        "resource: { name: x, rate: 65 per 1m }",
        "concurrency: 0",
        "fallback: [{ command: [x, \"{town}\"] }]",
        "shape: { keep: a }",
        "effect: idempotent\nstale_ms: 5",
        "start_timeout_ms: soon",
    ] {
        assert_eq!(manifest(&with_city(wrong_text)).unwrap_err().len(), 1, "{wrong_text}");
    }
}

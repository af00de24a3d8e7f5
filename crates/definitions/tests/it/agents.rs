use std::collections::BTreeSet;

use definitions::agent_file::{AgentFile, price_table};
use expect_test::{Expect, expect};
use proto::agent::{EarlyDispatch, Limits, Price, Protocol};
use proto::ids::ToolName;

use crate::told;

const SMALL: &str =
    "name: ops\nrole: You repair services.\nmodel: gpt-5-mini\ntools: [probe, restart]\n";

fn wrong(text: &str, expected: &Expect) {
    let problems = AgentFile::parse("agent.yaml", text).unwrap_err();
    expected.assert_eq(&told(&problems));
}

#[test]
fn a_small_file_gets_the_defaults() {
    let file = AgentFile::parse("agent.yaml", SMALL).unwrap();
    let agent = &file.agent;
    assert_eq!((agent.name.as_str(), agent.model.as_str()), ("ops", "gpt-5-mini"));
    assert_eq!((agent.context_window, agent.approval_ms), (128_000, 900_000));
    assert!((agent.context_window_ratio - 0.7).abs() < f64::EPSILON);
    assert_eq!((agent.protocol, agent.early_dispatch), (Protocol::Native, EarlyDispatch::Safe));
    assert_eq!((agent.limits.clone(), agent.end_intent), (Limits::default(), true));
    assert_eq!((agent.temperature, agent.output_schema.clone()), (None, None));
    assert_eq!((file.manifests, file.rehearsal), (vec!["tools.yaml".to_owned()], None));
}

#[test]
fn models_behind_the_first_are_asked_when_it_fails() {
    let read = |model: &str| {
        let text = format!("name: a\nrole: You.\nmodel: {model}\ntools: []\n");
        AgentFile::parse("agent.yaml", &text).map(|file| (file.agent.model, file.agent.fallbacks))
    };
    assert_eq!(read("big").unwrap(), ("big".to_owned(), Vec::new()));
    assert_eq!(read("[big]").unwrap(), read("big").unwrap());
    let both = ("big".to_owned(), vec!["small".to_owned(), "other".to_owned()]);
    assert_eq!(read("[big, small, other]").unwrap(), both);
    for (wrong, said) in
        [("[]", "at least one model"), ("[a, ' ']", "not empty"), ("{}", "expected: \"text\"")]
    {
        let problems = format!("{:?}", read(wrong).unwrap_err());
        assert!(problems.contains(said), "{wrong}: {problems}");
    }
    let many = format!("[{}]", ["m"; 10].join(", "));
    assert!(format!("{:?}", read(&many).unwrap_err()).contains("at most 9 models"));
}

#[test]
fn every_field_of_an_agent_is_read() {
    let text = r"
name: ops
role: You repair services.
instructions:
  - Look before you act.
  - Say what you did not do.
model: gpt-5-mini
temperature: 0.2
context_window: 32000
context_window_ratio: 0.5
protocol: contract
early_dispatch: off
tools: [probe]
manifest: [tools.yaml, ../shared/tools.yaml]
rehearsal: other.yaml
permissions: [ops]
limits: { max_turns: 4, max_tokens: 9000, max_usd: 0.25, max_wall_s: 60, max_tool_calls: 7, max_repeats: 2 }
end_intent: off
output_schema: { type: object, required: [answer] }
price: { input: 0.15, output: 0.60 }
approval_timeout_s: 30
";
    let file = AgentFile::parse("agent.yaml", text).unwrap();
    let agent = &file.agent;
    assert_eq!(agent.instructions, ["Look before you act.", "Say what you did not do."]);
    assert_eq!((agent.temperature, agent.context_window), (Some(0.2), 32_000));
    assert_eq!((agent.protocol, agent.early_dispatch), (Protocol::Contract, EarlyDispatch::Off));
    assert_eq!((agent.end_intent, agent.approval_ms), (false, 30_000));
    let price = Price { input_nano_usd: 150, output_nano_usd: 600 };
    assert_eq!(agent.price, Some(price));
    assert_eq!(agent.permissions, ["ops"]);
    assert_eq!(
        agent.limits,
        Limits {
            max_turns: 4,
            max_tokens: 9000,
            max_micro_usd: 250_000,
            max_wall_ms: 60_000,
            max_tool_calls: 7,
            max_repeats: 2,
        }
    );
    assert!(agent.output_schema.is_some());
    assert_eq!(file.manifests, ["tools.yaml", "../shared/tools.yaml"]);
    assert_eq!(file.rehearsal.as_deref(), Some("other.yaml"));
}

#[test]
fn a_model_is_charged_at_its_own_price_and_a_table_fills_in_the_rest() {
    let text = "model: [big, small, odd]\nprice: { input: 1, output: 2 }\nprices: { small: { input: 0.5, output: 0 } }\n";
    let agent = AgentFile::parse("a", &SMALL.replace("model: gpt-5-mini\n", text)).unwrap().agent;
    let price = |input_nano_usd, output_nano_usd| Some(Price { input_nano_usd, output_nano_usd });
    assert_eq!(agent.price_of("big"), price(1000, 2000));
    assert_eq!(agent.price_of("small"), price(500, 0));
    assert_eq!((agent.price_of("odd"), agent.unpriced()), (None, vec!["odd"]));
    let table = price_table("prices.yaml", "odd: { input: 3, output: 4 }\n").unwrap();
    assert_eq!(table["odd"], price(3000, 4000).unwrap());
    let wrong = price_table("prices.yaml", "odd: 3\nbig: { input: -1 }\n").unwrap_err();
    assert_eq!(wrong.len(), 3, "{wrong:#?}");
}

#[test]
fn complexity_sets_the_turn_limit() {
    for (complexity, turns) in [(1, 4), (2, 4), (3, 5), (4, 5), (5, 6)] {
        let file = AgentFile::parse("a", &format!("{SMALL}complexity: {complexity}\n")).unwrap();
        assert_eq!(file.agent.limits.max_turns, turns);
    }
}

#[test]
fn every_problem_is_told_at_once() {
    let text = r#"name: "my agent"
rol: You repair.
model: 5
tools: [probe, probe, "no good", 5]
temperature: 3
context_window: big
context_window_ratio: 70
protocol: natve
early_dispatch: false
limits: { max_turns: 0, max_dollars: 1 }
complexity: 9
end_intent: maybe
output_schema: { type: objct }
approval_timeout_s: 0
"#;
    wrong(
        text,
        &expect![[r#"
            agent.yaml:1:1: role: expected who the agent is and what it does; found nothing. Fix: add `role: …`
            agent.yaml:1:7: name: expected 1 to 64 of A-Z, a-z, 0-9, - and _; found "my agent". Fix: choose such a name
            agent.yaml:2:1: rol: expected a known field; found an unknown field. Fix: did you mean `role`? Else leave it out
            agent.yaml:3:8: model: expected text; found 5. Fix: write text, in quotes if it looks like a number
            agent.yaml:4:16: tools[1]: expected each tool once; found "probe". Fix: leave the second one out
            agent.yaml:4:23: tools[2]: expected 1 to 64 of A-Z, a-z, 0-9, - and _; found "no good". Fix: write the name that the manifest has
            agent.yaml:4:34: tools[3]: expected text; found 5. Fix: write text, in quotes if it looks like a number
            agent.yaml:5:14: temperature: expected a number from 0 to 2; found 3. Fix: write such a number without quotes
            agent.yaml:6:17: context_window: expected a whole number from 1000 to 100000000; found "big". Fix: write such a number without quotes
            agent.yaml:7:23: context_window_ratio: expected a number from 0.05 to 1; found 70. Fix: write such a number without quotes
            agent.yaml:8:11: protocol: expected one of native, contract; found "natve". Fix: write `native`
            agent.yaml:9:17: early_dispatch: expected one of safe, all, off; found false. Fix: write one of them
            agent.yaml:10:22: limits.max_turns: expected a whole number from 1 to 1000; found 0. Fix: write such a number without quotes
            agent.yaml:10:22: limits.max_turns: expected no turn limit beside `complexity`, which sets it; found 0. Fix: leave one of the two out
            agent.yaml:10:25: limits.max_dollars: expected one of max_repeats, max_tokens, max_tool_calls, max_turns, max_usd, max_wall_s; found an unknown field. Fix: leave it out
            agent.yaml:11:13: complexity: expected a whole number from 1 to 5; found 9. Fix: write such a number without quotes
            agent.yaml:12:13: end_intent: expected one of on, off; found "maybe". Fix: write one of them
            agent.yaml:13:24: output_schema.type: expected a JSON Schema that can be used; found a part that must be one of string, number, integer, boolean, array, object, null. Fix: write `object`
            agent.yaml:14:21: approval_timeout_s: expected a whole number from 1 to 2592000; found 0. Fix: write such a number without quotes"#]],
    );
}

#[test]
fn a_turn_limit_beside_complexity_is_a_contradiction() {
    wrong(
        &format!("{SMALL}complexity: 2\nlimits: {{ max_turns: 5 }}\n"),
        &expect![
            "agent.yaml:6:22: limits.max_turns: expected no turn limit beside `complexity`, which sets it; found 5. Fix: leave one of the two out"
        ],
    );
}

#[test]
fn an_empty_file_lacks_everything() {
    wrong(
        "{}",
        &expect![[r"
            agent.yaml:1:1: model: expected the model to ask for; found nothing. Fix: add `model: …`
            agent.yaml:1:1: name: expected the agent's name; found nothing. Fix: add `name: …`
            agent.yaml:1:1: role: expected who the agent is and what it does; found nothing. Fix: add `role: …`
            agent.yaml:1:1: tools: expected the names of its tools, `[]` for none; found nothing. Fix: add `tools: …`"]],
    );
}

#[test]
fn a_tool_that_no_manifest_has_is_told_with_its_place() {
    let file = AgentFile::parse("agent.yaml", SMALL).unwrap();
    let known: BTreeSet<ToolName> =
        ["probe", "restart_service", "restrat"].map(|name| ToolName::new(name).unwrap()).into();
    expect!["agent.yaml:4:16: tools[1]: expected a tool of the manifests: probe, restart_service, restrat; found `restart`. Fix: write `restrat`"].assert_eq(&told(&file.unknown_tools(&known)));
    let all = ["probe", "restart"].map(|name| ToolName::new(name).unwrap()).into();
    assert_eq!(file.unknown_tools(&all), []);
}

#[test]
fn a_fingerprint_changes_with_the_words_and_not_with_the_layout() {
    let print = |text: &str| AgentFile::parse("a", text).unwrap().agent.fingerprint;
    let same = print(SMALL);
    assert_eq!(same, print(&format!("# A comment.\n{SMALL}end_intent: true\n")));
    assert_ne!(same, print(&SMALL.replace("repair", "break")));
}

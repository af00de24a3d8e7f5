//! Answers that are checked before they are given: a chain of verification, and a schema.

use serde_json::Value;

use crate::agents::{command, with_tool};
use crate::home::{Ended, Home};

const CHAIN: &str = r"
rules:
  - when: { turn: 1 }
    say: The disk is full.
  - when: { turn: 2 }
    say: Is the disk full?
  - when: { turn: 3 }
    calls: [{ tool: probe, arguments: {} }]
  - when: { last: tool }
    say: It is half empty.
  - say: The disk is half empty.
";

fn verified(protocol: &str) -> (Home, Ended) {
    let home = Home::new();
    with_tool(&home, &command("[echo, half empty]", "read_only", ""), "{}");
    let agent = home.read("agent.yaml");
    home.write("agent.yaml", &format!("{agent}verify: chain\nprotocol: {protocol}\n"));
    home.write("rehearsal.yaml", CHAIN);
    let ended = home.run(["run", "agent.yaml", "Is the disk full?", "--json"]);
    (home, ended)
}

fn of_type(ended: &Ended, kind: &str) -> Vec<Value> {
    ended.events().into_iter().filter(|event| event["type"] == kind).collect()
}

#[test]
fn a_draft_is_questioned_checked_by_a_tool_and_revised_and_readers_can_tell_it_apart() {
    for protocol in ["native", "contract"] {
        let (home, ended) = verified(protocol);
        assert_eq!(ended.answer(), "The disk is half empty.", "{protocol}");
        let verification = &ended.last()["verification"];
        assert_eq!(verification["verified"], "revised", "{protocol}: {verification}");
        assert_eq!(verification["draft"], "The disk is full.");
        let turns = of_type(&ended, "turn_started");
        let steps: Vec<_> =
            turns.iter().map(|turn| turn["verify"].as_str().unwrap_or("-")).collect();
        assert_eq!(steps, ["-", "questions", "check", "check", "revise"], "{protocol}");
        let is_draft = |event: &Value| event["draft"] == true;
        let drafts: Vec<bool> = turns.iter().map(is_draft).collect();
        assert_eq!(drafts, [true, true, true, true, false], "{protocol}");
        let deltas = of_type(&ended, "delta");
        for delta in &deltas {
            let turn = delta["turn"].as_u64().unwrap();
            assert_eq!(is_draft(delta), turn < 5, "{protocol}: {delta}");
        }
        assert!(deltas.iter().any(is_draft), "{protocol}: no word was heard");
        assert_eq!(of_type(&ended, "tool_call").len(), 1, "{protocol}");
        let shown = home.run(["show", "last"]).out;
        assert!(shown.contains("verifying: questions to the draft"), "{shown}");
    }
}

#[test]
fn an_answer_that_breaks_its_schema_is_repaired_once_in_both_protocols() {
    for protocol in ["native", "contract"] {
        let home = Home::new();
        crate::agents::talker(&home);
        let agent = home.read("agent.yaml");
        let schema = "output_schema: { type: object, required: [free] }\n";
        home.write("agent.yaml", &format!("{agent}protocol: {protocol}\n{schema}"));
        let rules =
            "rules:\n  - when: { turn: 1 }\n    say: half empty\n  - say: '{\"free\": 50}'\n";
        home.write("rehearsal.yaml", rules);
        let ended = home.run(["run", "agent.yaml", "How full is the disk?", "--json"]);
        assert_eq!(ended.answer(), "{\"free\": 50}", "{protocol}");
        assert_eq!(ended.last()["unevaluated"], Value::Null, "{protocol}");
        assert_eq!(ended.last()["turns"], 2, "{protocol}");
    }
}

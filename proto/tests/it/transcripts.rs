//! No transcript that a provider would refuse can be built.

use proto::ids::ToolCallId;
use proto::observation::Observation;
use proto::transcript::{AnsweredCall, Entry, RepeatedId, Transcript, TurnEntry};
use serde_json::{Map, json};

use crate::samples::observation;

fn turn(ids: &[&str]) -> Entry {
    let calls = ids.iter().map(|id| {
        let observation =
            Observation { tool_call_id: ToolCallId::new(*id).unwrap(), ..observation() };
        AnsweredCall::new("look", Map::new(), None, observation)
    });
    Entry::Turn(TurnEntry { calls: calls.collect(), ..TurnEntry::default() })
}

#[test]
fn an_id_is_used_once_within_a_turn_and_across_turns() {
    let entries = vec![turn(&["aaaaaaaaa", "bbbbbbbbb"]), turn(&["ccccccccc"])];
    assert_eq!(Transcript::new(entries.clone()).unwrap().entries(), entries);
    let repeated = Err(RepeatedId(ToolCallId::new("aaaaaaaaa").unwrap()));
    assert_eq!(Transcript::new(vec![turn(&["aaaaaaaaa", "aaaaaaaaa"])]), repeated);
    assert_eq!(Transcript::new(vec![turn(&["aaaaaaaaa"]), turn(&["aaaaaaaaa"])]), repeated);
}

#[test]
fn a_repeated_id_is_refused_from_the_wire_too() {
    let good = serde_json::to_value(vec![turn(&["aaaaaaaaa"])]).unwrap();
    assert!(serde_json::from_value::<Transcript>(good.clone()).is_ok());
    let twice = json!([good[0], good[0]]);
    let error = serde_json::from_value::<Transcript>(twice).unwrap_err();
    assert_eq!(error.to_string(), "tool call id aaaaaaaaa appears twice in the transcript");
}

#[test]
fn a_call_without_its_observation_is_refused_from_the_wire() {
    let open = json!([{"entry": "turn", "text": "", "calls": [{"tool": "look", "arguments": {}}]}]);
    let error = serde_json::from_value::<Transcript>(open).unwrap_err();
    assert_eq!(error.to_string(), "missing field `observation`");
}

#[test]
fn the_id_of_a_call_is_that_of_its_observation() {
    let call = AnsweredCall::new("look", Map::new(), Some(json!(1)), observation());
    assert_eq!(call.tool_call_id(), &observation().tool_call_id);
    assert_eq!((call.tool(), call.opaque()), ("look", Some(&json!(1))));
}

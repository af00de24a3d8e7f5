//! Ids, codes and subjects.

use std::fmt::Display;

use proptest::prelude::*;
use proto::error_code::ErrorCode;
use proto::ids::{
    AgentName, ArgumentsHash, ArtifactId, BadName, Fingerprint, InputKey, InstanceId, Nonce,
    Partition, TenantId, ThreadId, ThreadRef, ToolCallId, ToolName,
};
use proto::subject::{BadSubject, Leaf, Subject, plan_filter};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Whether a name is refused is the same as made and as read from the wire.
fn check<T: DeserializeOwned + Display>(
    make: fn(&str) -> Result<T, BadName>,
    good: &[&str],
    bad: &[&str],
) {
    let read = |text: &str| serde_json::from_value::<T>(Value::String(text.into()));
    for good in good {
        assert_eq!(make(good).unwrap().to_string(), *good);
        assert_eq!(read(good).unwrap().to_string(), *good);
    }
    for bad in bad {
        assert!(make(bad).is_err(), "{bad} was made");
        assert!(read(bad).is_err(), "{bad} was read");
    }
}

#[test]
fn names_accept_what_their_rule_says_and_nothing_else() {
    let long = "a".repeat(65);
    let tokens = ["", " ", "a b", "a.b", "a*", "a>", "\u{e4}", "a/b", "a\n", "a\0", &long];
    check(|text| TenantId::new(text), &["a", "a-b_9"], &tokens);
    check(|text| TenantId::new(text), &[], &["A"]);
    check(|text| AgentName::new(text), &["a", "A-b_9"], &tokens);
    check(|text| ToolName::new(text), &["a", "A-b_9"], &tokens);
    check(|text| InstanceId::new(text), &["a", "A-b_9"], &tokens);
    let ids = ["", "abc123xy", "abc123xyz0", "ABC123XYZ", "abc-23xyz"];
    check(|text| ToolCallId::new(text), &["abc123xyz"], &ids);
    let nonces = ["", "00ff", "00FF00FF00FF00FF", "00ff00ff00ff00fg"];
    check(|text| Nonce::new(text), &["00ff00ff00ff00ff"], &nonces);
}

#[test]
fn hashes_and_keys_accept_what_their_rule_says_and_nothing_else() {
    let hex = "0123456789abcdef".repeat(4);
    let bad = ["", "ab", &hex[1..], &hex.to_uppercase()];
    check(|text| ArtifactId::new(text), &[&hex], &bad);
    check(|text| Fingerprint::new(text), &[&hex], &bad);
    check(|text| ArgumentsHash::new(text), &[&hex], &bad);
    let keys = ["a", "order/7:retry?", &"k".repeat(128)];
    check(|text| InputKey::new(text), &keys, &["", "a b", "\u{e4}", &"k".repeat(129)]);
}

#[test]
fn a_bad_name_says_what_it_should_be_and_is_cut() {
    let error = ToolName::new("no good").unwrap_err();
    assert_eq!(
        error.to_string(),
        "tool name `no good` is not valid: expected 1 to 64 of A-Z, a-z, 0-9, - and _"
    );
    let error = ToolName::new("ä".repeat(1000)).unwrap_err();
    assert_eq!(error.value, "ä".repeat(80));
}

#[test]
fn a_thread_id_is_a_ulid() {
    let id = ThreadId::from_parts(1_700_000_000_000, 42);
    assert_eq!(id.to_string().parse::<ThreadId>(), Ok(id));
    for bad in ["", "abc", "01HF7YAT00000000000000001!", &"0".repeat(27)] {
        assert!(bad.parse::<ThreadId>().is_err(), "{bad}");
    }
}

#[test]
fn every_code_is_written_as_its_page_is_called() {
    for code in ErrorCode::ALL {
        assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        assert!(!code.meaning().is_empty());
        let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(code.as_str().chars().all(is_plain), "{code}");
    }
    let mut words: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    words.sort_unstable();
    words.dedup();
    assert_eq!(words.len(), ErrorCode::ALL.len());
}

fn thread() -> impl Strategy<Value = ThreadRef> {
    (any::<u16>(), "[a-z0-9_-]{1,64}", 0_u64..(1 << 48), any::<u128>()).prop_map(
        |(partition, tenant, at, chance)| ThreadRef {
            partition: Partition(partition),
            tenant: TenantId::new(tenant).unwrap(),
            thread: ThreadId::from_parts(at, chance),
        },
    )
}

fn leaf() -> impl Strategy<Value = Leaf> {
    prop_oneof![
        Just(Leaf::In),
        Just(Leaf::Fact),
        Just(Leaf::Observation),
        Just(Leaf::Schedule),
        Just(Leaf::Tick),
        "[a-zA-Z0-9_-]{1,64}".prop_map(|name| Leaf::ToolCall(ToolName::new(name).unwrap())),
        "[a-z0-9]{9}".prop_map(|id| Leaf::Start(ToolCallId::new(id).unwrap())),
    ]
}

proptest! {
    #[test]
    fn a_subject_is_read_back_as_it_was_written(thread in thread(), leaf in leaf()) {
        let subject = Subject::new(thread, leaf);
        prop_assert_eq!(subject.to_string().parse::<Subject>(), Ok(subject));
    }

    /// Two places never share a subject, or one thread could write into another.
    #[test]
    fn different_places_have_different_subjects(a in thread(), b in thread(), one in leaf(), other in leaf()) {
        let first = Subject::new(a, one);
        let second = Subject::new(b, other);
        prop_assert_eq!(first == second, first.to_string() == second.to_string());
    }

    /// The fence covers the plan and nothing else.
    #[test]
    fn the_fenced_chain_is_what_lies_under_plan(thread in thread(), leaf in leaf()) {
        let head = plan_filter(&thread).trim_end_matches('>').to_owned();
        let subject = Subject::new(thread, leaf);
        prop_assert_eq!(subject.leaf.is_plan(), subject.to_string().starts_with(&head));
    }

    #[test]
    fn no_text_breaks_the_reader_of_subjects(text in "(sy|sylive)?[.a-z0-9*>]{0,80}") {
        if let Ok(subject) = text.parse::<Subject>() {
            prop_assert_eq!(subject.to_string(), text);
        }
    }
}

#[test]
fn what_is_no_subject_is_refused() {
    let good = "sy.0.acme.01HF7YAT00000000000000001A";
    assert!(format!("{good}.in").parse::<Subject>().is_ok());
    for bad in [
        "",
        "sy",
        good,
        &format!("{good}.plan"),
        &format!("{good}.plan.>"),
        &format!("{good}.plan.tool_call.a.b"),
        &format!("{good}.start.short"),
        &format!("{good}.in.more"),
        &format!("x{good}.in"),
        "sy.0.acme.01hf7yat00000000000000001a.in ",
        "sy.99999.acme.01HF7YAT00000000000000001A.in",
        "sy.+1.acme.01HF7YAT00000000000000001A.in",
    ] {
        assert_eq!(bad.parse::<Subject>(), Err(BadSubject(bad.into())));
    }
}

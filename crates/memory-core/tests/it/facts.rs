//! Facts.

use memory_core::fact::{FactId, Ledger, MAX_FACTS, Stated};
use memory_core::fragment::FragmentId;
use proto::ids::{Partition, TenantId, ThreadId, ThreadRef};
use proto::time::Timestamp;

fn source(turn: u64) -> FactId {
    let tenant = TenantId::new("t").unwrap();
    let thread = ThreadRef { partition: Partition(0), tenant, thread: ThreadId::from_parts(1, 1) };
    FactId { source: FragmentId::new(&thread, turn, 0), number: 0 }
}

fn stated(subject: &str, attribute: &str, value: &str) -> Stated {
    Stated { subject: subject.into(), attribute: attribute.into(), value: value.into() }
}

fn held(ledger: &Ledger, at: i64) -> Vec<String> {
    ledger.as_of(Timestamp(at)).map(memory_core::fact::Fact::line).collect()
}

#[test]
fn another_value_takes_the_place_of_the_one_that_held() {
    let mut ledger = Ledger::default();
    ledger.state(stated("db", "port", "5439"), source(1), Timestamp(10), None);
    let new = ledger.state(stated("DB", "Port ", "8080"), source(2), Timestamp(20), None).unwrap();
    assert_eq!(new.supersedes, Some(source(1)));
    assert_eq!(held(&ledger, 15), ["db port: 5439"]);
    assert_eq!(held(&ledger, 20), ["DB Port : 8080"]);
    assert_eq!(ledger.all().count(), 2);
}

#[test]
fn what_has_another_subject_or_attribute_stands_beside_it() {
    let mut ledger = Ledger::default();
    ledger.state(stated("db", "port", "1"), source(1), Timestamp(1), None);
    ledger.state(stated("db", "host", "2"), source(2), Timestamp(2), None);
    ledger.state(stated("cache", "port", "3"), source(3), Timestamp(3), None);
    assert_eq!(held(&ledger, 9), ["cache port: 3", "db host: 2", "db port: 1"]);
}

#[test]
fn the_same_again_changes_nothing_and_what_ran_out_no_longer_holds() {
    let mut ledger = Ledger::default();
    let state = |ledger: &mut Ledger, at: i64, until: Option<i64>| {
        ledger.state(stated("a", "b", "c"), source(1), Timestamp(at), until.map(Timestamp))
    };
    assert!(state(&mut ledger, 1, Some(10)).is_some());
    assert!(state(&mut ledger, 5, None).is_none());
    assert_eq!(held(&ledger, 9), ["a b: c"]);
    assert_eq!(held(&ledger, 10), Vec::<String>::new());
    assert!(state(&mut ledger, 11, None).is_some());
    assert_eq!(Ledger::of(ledger.all().cloned()), ledger);
}

#[test]
fn a_ledger_is_bounded_and_lets_go_of_what_ended_first() {
    let mut ledger = Ledger::default();
    for n in 0..u64::try_from(MAX_FACTS).unwrap() {
        let at = Timestamp(i64::try_from(n).unwrap());
        ledger.state(stated("x", "y", &n.to_string()), source(n), at, None);
    }
    ledger.state(stated("kept", "y", "z"), source(9), Timestamp(0), None);
    assert_eq!(ledger.all().count(), MAX_FACTS);
    assert_eq!(ledger.as_of(Timestamp(100_000)).count(), 2);
}

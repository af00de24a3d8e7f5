//! Attempts that an earlier process left behind.

use bus_sqlite::SqliteBus;
use proto::call::{Barred, Start, Started};
use proto::envelope::Envelope;
use proto::error_code::ErrorCode;
use proto::ids::{InstanceId, Nonce, ToolCallId};
use proto::observation::Observation;
use proto::record::Record;
use proto::subject::Leaf;
use proto::time::Timestamp;

use crate::world::{Place, put};

fn call(text: &str) -> ToolCallId {
    ToolCallId::new(text).unwrap()
}

fn started(id: &str, process_group: Option<i32>) -> Started {
    Started {
        tool_call_id: call(id),
        attempt: 1,
        worker: InstanceId::new("w1").unwrap(),
        host: "here".to_owned(),
        process_group,
        at: Timestamp(1),
        until: Timestamp(2),
    }
}

async fn write(bus: &SqliteBus, n: u64, leaf: Leaf, body: Record) {
    let nonce = Nonce::new("0123456789abcdef").unwrap();
    put(bus, n, leaf, Envelope::new(nonce, None, body).encode()).await;
}

async fn start(bus: &SqliteBus, n: u64, id: &str, process_group: Option<i32>) {
    let record = Record::Start(Start::Started(started(id, process_group)));
    write(bus, n, Leaf::Start(call(id)), record).await;
}

async fn observe(bus: &SqliteBus, n: u64, id: &str) {
    let observation = Observation::synthesised(call(id), ErrorCode::ToolFailed, "failed");
    write(bus, n, Leaf::Observation, Record::Observation(observation)).await;
}

#[tokio::test]
async fn only_unobserved_attempts_with_a_process_group_are_reported() {
    let place = Place::new();
    let bus = place.open();
    start(&bus, 1, "observed1", Some(10)).await;
    start(&bus, 1, "leftover1", Some(11)).await;
    start(&bus, 1, "nogroup01", None).await;
    start(&bus, 2, "observed1", Some(12)).await;
    observe(&bus, 1, "observed1").await;
    observe(&bus, 1, "unrelated").await;
    let barred = Barred {
        tool_call_id: call("barred001"),
        by: InstanceId::new("p1").unwrap(),
        at: Timestamp(1),
    };
    write(&bus, 1, Leaf::Start(call("barred001")), Record::Start(Start::Barred(barred))).await;
    put(&bus, 1, Leaf::Start(call("strange01")), "not a record").await;
    put(&bus, 1, Leaf::Observation, "not a record").await;
    assert_eq!(bus.previous_starts().await, Ok(vec![]), "this process is no earlier one");
    bus.close().await.unwrap();
    let bus = place.open();
    let left = vec![started("leftover1", Some(11)), started("observed1", Some(12))];
    assert_eq!(bus.previous_starts().await, Ok(left));
}

#[tokio::test]
async fn what_was_killed_is_not_reported_again() {
    let place = Place::new();
    let bus = place.open();
    start(&bus, 1, "leftover1", Some(11)).await;
    bus.close().await.unwrap();
    let bus = place.open();
    start(&bus, 1, "ownattemp", Some(12)).await;
    bus.forget_previous_starts().await.unwrap();
    assert_eq!(bus.previous_starts().await, Ok(vec![]));
    bus.close().await.unwrap();
    let left = vec![started("ownattemp", Some(12))];
    assert_eq!(place.open().previous_starts().await, Ok(left));
}

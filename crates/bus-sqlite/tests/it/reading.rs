//! Readers beside the owner.

use bus_sqlite::SqliteBus;
use bytes::Bytes;
use ports::BusError;
use ports::artifacts::Artifacts;
use ports::journal::{AppendError, Fence, Journal};
use proto::ids::{Sequence, TenantId};
use proto::subject::Leaf;

use crate::world::{Place, append, put, records, thread};

#[tokio::test]
async fn a_reader_sees_what_the_owner_was_answered() {
    let place = Place::new();
    let bus = place.open();
    put(&bus, 1, Leaf::In, "first").await;
    let reader = SqliteBus::open_read_only(place.path(), place.clock()).unwrap();
    put(&bus, 1, Leaf::In, "second").await;
    let artifact = bus.put(&thread(1), Bytes::from("large")).await.unwrap();
    assert_eq!(records(&reader, 1).await, records(&bus, 1).await);
    let acme = TenantId::new("acme").unwrap();
    assert_eq!(reader.threads(&acme, 10).await, Ok(vec![thread(1)]));
    let found = reader.get(&thread(1), &artifact.id).await;
    assert_eq!(found, Ok(Some(Bytes::from("large"))));
}

#[tokio::test]
async fn a_reader_opens_what_nobody_owns_any_more() {
    let place = Place::new();
    let bus = place.open();
    put(&bus, 1, Leaf::In, "first").await;
    bus.close().await.unwrap();
    let reader = SqliteBus::open_read_only(place.path(), place.clock()).unwrap();
    assert_eq!(records(&reader, 1).await.len(), 1);
    assert!(SqliteBus::open(place.path(), place.options()).is_ok(), "a reader holds no lock");
}

#[tokio::test]
async fn a_reader_writes_nothing() {
    let place = Place::new();
    drop(place.open());
    let reader = SqliteBus::open_read_only(place.path(), place.clock()).unwrap();
    let refused = BusError::Refused("the store is opened for reading only".to_owned());
    let append = reader.append(append(1, Leaf::In, "no", Fence::None)).await;
    assert_eq!(append, Err(AppendError::Bus(refused.clone())));
    assert_eq!(reader.purge(&thread(1), Sequence(9)).await, Err(refused.clone()));
    assert_eq!(reader.erase(&thread(1)).await, Err(refused));
}

#[test]
fn a_reader_makes_no_file() {
    let place = Place::new();
    let refusal = SqliteBus::open_read_only(place.path(), place.clock()).map(drop).unwrap_err();
    let why = format!("{} does not exist", place.path().display());
    assert_eq!(refusal, BusError::Refused(why));
    assert!(!place.path().exists());
}

#[tokio::test]
async fn a_file_that_its_owner_never_filled_has_no_thread() {
    let place = Place::new();
    std::fs::write(place.path(), "").unwrap();
    let reader = SqliteBus::open_read_only(place.path(), place.clock()).unwrap();
    let acme = TenantId::new("acme").unwrap();
    assert_eq!(reader.threads(&acme, 10).await, Ok(vec![]));
}

#[tokio::test]
async fn a_reader_refuses_a_damaged_file() {
    let place = Place::new();
    std::fs::write(place.path(), "not a database ".repeat(100)).unwrap();
    let refusal = SqliteBus::open_read_only(place.path(), place.clock()).map(drop).unwrap_err();
    assert!(matches!(refusal, BusError::Corrupt(_)), "{refusal}");
}

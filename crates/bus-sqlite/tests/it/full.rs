//! A file that may not grow.

use bus_sqlite::SqliteBus;
use bytes::Bytes;
use futures_util::future::{join, join_all};
use ports::BusError;
use ports::artifacts::Artifacts;
use ports::journal::{AppendError, Fence, Journal};
use proto::ids::Sequence;
use proto::subject::Leaf;

use crate::world::{Place, append, put, records, thread};

fn open_small(place: &Place, bytes: u64) -> SqliteBus {
    let mut options = place.options();
    options.max_file_bytes = Some(bytes);
    SqliteBus::open(place.path(), options).unwrap()
}

async fn fill(bus: &SqliteBus) -> (Vec<u64>, AppendError) {
    let mut answered = Vec::new();
    loop {
        match bus.append(append(1, Leaf::In, vec![b'x'; 2000], Fence::None)).await {
            Ok(done) => answered.push(done.sequence.0),
            Err(error) => return (answered, error),
        }
    }
}

#[tokio::test]
async fn a_full_file_refuses_and_keeps_what_was_answered() {
    let place = Place::new();
    let bus = open_small(&place, 512 * 1024);
    let (answered, error) = fill(&bus).await;
    assert!(matches!(error, AppendError::Bus(BusError::Full(_))), "{error}");
    assert!(answered.len() > 50, "{}", answered.len());
    let kept: Vec<u64> = records(&bus, 1).await.into_iter().map(|(place, _)| place).collect();
    assert_eq!(kept, answered);
    bus.close().await.unwrap();
    let kept: Vec<u64> = records(&place.open(), 1).await.into_iter().map(|(n, _)| n).collect();
    assert_eq!(kept, answered);
}

#[tokio::test]
async fn a_file_that_has_room_again_takes_more() {
    let place = Place::new();
    let bus = open_small(&place, 512 * 1024);
    let (answered, _) = fill(&bus).await;
    let half = answered[answered.len() / 2];
    bus.purge(&thread(1), Sequence(half)).await.unwrap();
    let next = put(&bus, 1, Leaf::In, vec![b'y'; 2000]).await;
    assert!(next > *answered.last().unwrap());
}

#[tokio::test]
async fn what_does_not_fit_does_not_keep_out_what_does() {
    let place = Place::new();
    let bus = open_small(&place, 1024 * 1024);
    let other = thread(9);
    let large = bus.put(&other, Bytes::from(vec![b'z'; 8 << 20]));
    let small = join_all((0..20).map(|n| put(&bus, n, Leaf::Fact, "small")));
    let (refused, written) = join(large, small).await;
    assert!(matches!(refused, Err(BusError::Full(_))), "{refused:?}");
    assert_eq!(written.len(), 20);
    put(&bus, 1, Leaf::Fact, "afterwards").await;
}

#[tokio::test]
async fn a_store_without_room_for_its_tables_is_not_half_made() {
    let place = Place::new();
    let mut options = place.options();
    options.max_file_bytes = Some(8192);
    let refusal = SqliteBus::open(place.path(), options).unwrap_err();
    assert!(matches!(refusal, BusError::Full(_)), "{refusal}");
    put(&place.open(), 1, Leaf::In, "works with room").await;
}

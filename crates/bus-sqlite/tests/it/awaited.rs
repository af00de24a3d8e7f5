//! Notes on endings that somebody still has to be shown.

use bus_sqlite::SqliteBus;
use ports::journal::Journal;
use proto::ids::Sequence;
use proto::subject::Leaf;

use crate::world::{Place, put, thread};

#[tokio::test]
async fn a_note_stays_until_the_ending_was_shown() {
    let place = Place::new();
    let bus = place.open();
    bus.await_ending(&thread(1), b"first".to_vec()).await.unwrap();
    bus.await_ending(&thread(1), b"second".to_vec()).await.unwrap();
    bus.await_ending(&thread(2), b"other".to_vec()).await.unwrap();
    bus.close().await.unwrap();
    let bus = place.open();
    let kept = [(thread(1), b"second".to_vec()), (thread(2), b"other".to_vec())];
    assert_eq!(bus.awaited_endings().await.unwrap(), kept);
    let reader = SqliteBus::open_read_only(place.path(), place.clock()).unwrap();
    assert_eq!(reader.awaited_endings().await.unwrap(), kept);
    bus.ending_shown(&thread(1)).await.unwrap();
    bus.ending_shown(&thread(1)).await.unwrap();
    assert_eq!(bus.awaited_endings().await.unwrap(), kept[1..]);
}

#[tokio::test]
async fn a_thread_that_is_gone_has_no_ending() {
    let place = Place::new();
    let bus = place.open();
    put(&bus, 1, Leaf::In, "words").await;
    bus.await_ending(&thread(1), b"note".to_vec()).await.unwrap();
    bus.purge(&thread(1), Sequence(9)).await.unwrap();
    assert_eq!(bus.awaited_endings().await, Ok(vec![]));
}

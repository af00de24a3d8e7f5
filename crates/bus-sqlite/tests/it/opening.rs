//! How a file is opened, and when it is refused.

use bus_sqlite::SqliteBus;
use bytes::Bytes;
use ports::BusError;
use ports::journal::{AppendError, Fence, Journal};
use ports::queues::{Queue, Queues};
use proto::ids::Partition;
use proto::subject::Leaf;

use crate::world::{Place, append, content, put, records, thread};

#[tokio::test]
async fn folders_are_made_and_the_file_is_opened_again() {
    let place = Place::new();
    let path = place.path().with_file_name("new").join("folder").join("store.db");
    let bus = SqliteBus::open(&path, place.options()).unwrap();
    let sequence = put(&bus, 1, Leaf::In, "hello").await;
    drop(bus);
    let bus = SqliteBus::open(&path, place.options()).unwrap();
    assert_eq!(records(&bus, 1).await, [(sequence, Bytes::from("hello"))]);
}

#[tokio::test]
async fn a_second_owner_is_refused_and_told_who_the_first_is() {
    let place = Place::new();
    let first = place.open();
    let refusal = SqliteBus::open(place.path(), place.options()).unwrap_err();
    let path = place.path().canonicalize().unwrap();
    let why = format!("{} is in use by process {}", path.display(), std::process::id());
    assert_eq!(refusal, BusError::Locked(why));
    first.close().await.unwrap();
    assert!(SqliteBus::open(place.path(), place.options()).is_ok());
}

#[tokio::test]
async fn another_name_of_the_same_file_has_the_same_lock() {
    let place = Place::new();
    let first = place.open();
    let link = place.path().with_file_name("link.db");
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    let refusal = SqliteBus::open(&link, place.options()).unwrap_err();
    assert!(matches!(refusal, BusError::Locked(_)), "{refusal}");
    drop(first);
}

#[tokio::test]
async fn a_file_that_was_taken_away_takes_nothing_more() {
    let place = Place::new();
    let bus = place.open();
    bus.append(append(1, Leaf::In, "kept", Fence::None)).await.unwrap();
    std::fs::rename(place.path(), place.path().with_file_name("moved.db")).unwrap();
    let refused = bus.append(append(1, Leaf::In, "lost", Fence::None)).await.unwrap_err();
    assert!(matches!(&refused, AppendError::Bus(BusError::Corrupt(_))), "{refused}");
    let closed = bus.close().await.unwrap_err();
    assert!(closed.to_string().contains("was removed or replaced"), "{closed}");
}

#[tokio::test]
async fn a_closed_bus_says_so() {
    let place = Place::new();
    let bus = place.open();
    bus.close().await.unwrap();
    bus.close().await.unwrap();
    let closed = BusError::Unavailable("the store is closed".to_owned());
    let refused = bus.append(append(1, Leaf::In, "late", Fence::None)).await;
    assert_eq!(refused, Err(AppendError::Bus(closed.clone())));
    assert_eq!(bus.last(&append(1, Leaf::In, "", Fence::None).subject).await, Err(closed.clone()));
    let inbox = Queue::Inbox(Partition(0));
    assert_eq!(bus.pull(&inbox, 1, crate::world::PATIENCE).await, Err(closed));
}

#[test]
fn a_text_file_is_corrupt_and_stays_as_it_is() {
    let place = Place::new();
    let text = "these are my notes, not a database\n".repeat(100);
    std::fs::write(place.path(), &text).unwrap();
    let refusal = SqliteBus::open(place.path(), place.options()).unwrap_err();
    assert!(matches!(&refusal, BusError::Corrupt(why) if why.contains("store.db")), "{refusal}");
    assert_eq!(content(&place.path()), text.as_bytes());
}

async fn filled(place: &Place) {
    let bus = place.open();
    for n in 0..200 {
        put(&bus, n % 7, Leaf::In, vec![b'x'; 500]).await;
    }
    bus.close().await.unwrap();
}

#[tokio::test]
async fn a_damaged_page_is_found_and_the_file_stays_as_it_is() {
    let place = Place::new();
    filled(&place).await;
    let mut bytes = content(&place.path());
    for byte in &mut bytes[8192..20480] {
        *byte = 0x5a;
    }
    std::fs::write(place.path(), &bytes).unwrap();
    let refusal = SqliteBus::open(place.path(), place.options()).unwrap_err();
    assert!(matches!(refusal, BusError::Corrupt(_)), "{refusal}");
    assert!(content(&place.path()) == bytes, "the file was changed");
}

#[tokio::test]
async fn a_file_without_its_end_is_corrupt() {
    let place = Place::new();
    filled(&place).await;
    let bytes = content(&place.path());
    std::fs::write(place.path(), &bytes[..bytes.len() / 2]).unwrap();
    let refusal = SqliteBus::open(place.path(), place.options()).unwrap_err();
    assert!(matches!(refusal, BusError::Corrupt(_)), "{refusal}");
}

#[tokio::test]
async fn a_file_of_a_newer_build_is_refused_with_both_versions() {
    let place = Place::new();
    filled(&place).await;
    let sql = rusqlite::Connection::open(place.path()).unwrap();
    sql.execute_batch("PRAGMA user_version = 9").unwrap();
    drop(sql);
    let refusal = SqliteBus::open(place.path(), place.options()).unwrap_err().to_string();
    assert!(refusal.contains("schema version 9 and this build knows version 1"), "{refusal}");
}

#[test]
fn a_file_of_another_program_is_refused() {
    let place = Place::new();
    let sql = rusqlite::Connection::open(place.path()).unwrap();
    sql.execute_batch("CREATE TABLE bookmarks(url TEXT)").unwrap();
    drop(sql);
    let refusal = SqliteBus::open(place.path(), place.options()).unwrap_err();
    let path = place.path().canonicalize().unwrap();
    let why = format!("{}: it is a SQLite file of another program", path.display());
    assert_eq!(refusal, BusError::Refused(why));
}

#[test]
fn a_folder_is_not_a_store() {
    let place = Place::new();
    std::fs::create_dir(place.path()).unwrap();
    let refusal = SqliteBus::open(place.path(), place.options()).unwrap_err();
    assert!(matches!(refusal, BusError::Refused(_)), "{refusal}");
}

#[tokio::test]
async fn a_store_that_another_program_writes_to_is_locked() {
    let place = Place::new();
    filled(&place).await;
    let sql = rusqlite::Connection::open(place.path()).unwrap();
    sql.execute_batch("PRAGMA journal_mode = DELETE; BEGIN EXCLUSIVE").unwrap();
    let refusal = SqliteBus::open(place.path(), place.options()).unwrap_err();
    assert!(matches!(refusal, BusError::Locked(_)), "{refusal}");
    drop(sql);
    assert!(!records(&place.open(), 1).await.is_empty());
}

#[tokio::test]
async fn what_is_purged_or_erased_is_in_no_file_any_more() {
    let place = Place::new();
    let bus = place.open();
    let sequence = put(&bus, 1, Leaf::In, "a secret word: xylophone").await;
    put(&bus, 2, Leaf::In, "kept: glockenspiel").await;
    bus.purge(&thread(1), proto::ids::Sequence(sequence)).await.unwrap();
    bus.close().await.unwrap();
    let mut all = Vec::new();
    for file in std::fs::read_dir(place.path().parent().unwrap()).unwrap() {
        all.extend(content(&file.unwrap().path()));
    }
    let holds = |word: &[u8]| all.windows(word.len()).any(|window| window == word);
    assert!(holds(b"glockenspiel"));
    assert!(!holds(b"xylophone"));
}

//! What was forgotten is in no byte of the file or its log.

use std::path::Path;

use memory_core::fragment::{Fragment, FragmentId, Origin};
use memory_core::kind::Kind;
use ports::BusError;
use ports::recall::{Access, Kept, Recall, Scope};
use proto::ids::{TenantId, ThreadId};
use proto::time::Timestamp;
use recall_sqlite::{Options, SqliteRecall};

const CANARY: &str = "canary7f3a91";

fn kept(n: u64, text: String) -> Kept {
    let tenant = TenantId::new("acme").unwrap();
    let thread = ThreadId::from_parts(1_767_225_600_000 + n, u128::from(n));
    Kept::new(Fragment {
        id: FragmentId { tenant, thread, turn: 0, fragment: 0 },
        origin: Origin::User,
        kind: Kind::Talk,
        text,
        at: Timestamp(5),
        tokens: 1,
        entities: Vec::new(),
        importance: 0.0,
        explanation: None,
        facts: Vec::new(),
    })
}

fn holds_canary(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().any(|file| {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes())
    })
}

#[tokio::test]
async fn a_canary_is_in_no_byte_after_it_was_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let memory = SqliteRecall::open(&folder.path().join("memory.db"), Options::default()).unwrap();
    let access = Access::of_caller(TenantId::new("acme").unwrap());
    let others: Vec<Kept> =
        (1..200).map(|n| kept(n, format!("turn {n} {}", "x".repeat(300)))).collect();
    memory.put(&access, others).await.unwrap();
    let long = format!("{CANARY} {}", "y".repeat(9000));
    memory.put(&access, vec![kept(0, long.clone())]).await.unwrap();
    // Written twice, so that the earlier row was freed once already.
    memory.put(&access, vec![kept(0, format!("{long}{CANARY}"))]).await.unwrap();
    assert!(holds_canary(folder.path()), "the search itself works");
    let thread = kept(0, String::new()).fragment.id.thread;
    assert_eq!(memory.forget(&access, &Scope::Thread { thread }, Timestamp(9)).await, Ok(1));
    assert!(!holds_canary(folder.path()));
}

#[test]
fn a_file_of_another_program_is_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("memory.db");
    std::fs::write(&path, "not a database, but a letter to my aunt, which is long enough").unwrap();
    let opened = SqliteRecall::open(&path, Options::default());
    assert!(matches!(opened, Err(BusError::Corrupt(_))), "{opened:?}");
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("not a database"));
}

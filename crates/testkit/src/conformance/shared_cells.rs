//! What every store of shared cells has to hold.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ports::admission::SharedCells;

const KEEP: Duration = Duration::from_mins(1);

/// Runs every rule against two processes' views of one fresh store; answers with the broken ones.
pub async fn broken_rules(one: Arc<dyn SharedCells>, other: Arc<dyn SharedCells>) -> Vec<String> {
    let mut broken = Vec::new();
    let mut rule = |name: &str, holds: bool| {
        if !holds {
            broken.push(name.to_owned());
        }
    };
    let (first, second) = (Bytes::from_static(b"first"), Bytes::from_static(b"second\0\xff"));
    let fresh = one.cell("a").await.expect("a cell");
    rule("a fresh cell is empty", fresh.value.is_none());
    let swap = one.swap_cell("a", Some(&first), second.clone(), KEEP).await;
    rule("a value that is not there is not swapped", swap == Ok(false));
    let swap = one.swap_cell("a", None, first.clone(), KEEP).await;
    rule("an empty cell takes a value", swap == Ok(true));
    let swap = other.swap_cell("a", None, second.clone(), KEEP).await;
    rule("a cell that is filled is not empty for others", swap == Ok(false));
    let seen = other.cell("a").await.expect("a cell");
    rule("others see the value", seen.value.as_ref() == Some(&first));
    rule("its clock does not go back", seen.now >= fresh.now);
    let swap = other.swap_cell("a", Some(&first), second.clone(), KEEP).await;
    rule("the value that is there is swapped", swap == Ok(true));
    let swap = one.swap_cell("a", Some(&first), first.clone(), KEEP).await;
    rule("a value that others swapped is not", swap == Ok(false));
    let kept = one.cell("a").await.expect("a cell").value;
    rule("bytes stay as they are", kept.as_ref() == Some(&second));
    let beside = one.cell("b").await.expect("a cell").value;
    rule("cells do not touch each other", beside.is_none());
    rule("one of many swaps wins", one_wins(&one, &other).await);
    rule("a cell fades", fades(&one).await);
    broken
}

async fn one_wins(one: &Arc<dyn SharedCells>, other: &Arc<dyn SharedCells>) -> bool {
    let mut won = 0;
    for round in 0..20_u8 {
        let name = format!("race {round}");
        let value = |n: u8| Bytes::from(vec![round, n]);
        let (a, b) = tokio::join!(
            one.swap_cell(&name, None, value(1), KEEP),
            other.swap_cell(&name, None, value(2), KEEP)
        );
        won += u32::from(a == Ok(true)) + u32::from(b == Ok(true));
    }
    won == 20
}

async fn fades(cells: &Arc<dyn SharedCells>) -> bool {
    let keep = Duration::from_millis(50);
    let swapped = cells.swap_cell("short", None, Bytes::from_static(b"x"), keep).await;
    for _ in 0..100 {
        tokio::time::sleep(keep).await;
        if cells.cell("short").await.is_ok_and(|cell| cell.value.is_none()) {
            return swapped == Ok(true);
        }
    }
    false
}

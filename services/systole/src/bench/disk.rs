//! How often the disk syncs.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use tokio::time::Instant;

use super::statistics::rate;

/// What each turn of the loop writes, like one page of the store.
const PAGE: [u8; 4096] = [b'.'; 4096];

/// Pages written and synced in a second, one after another, at the end of a fresh file.
pub(crate) fn syncs_per_second(folder: &Path, span: Duration) -> io::Result<f64> {
    let mut file = File::create(folder.join("sync"))?;
    let (began, mut count) = (Instant::now(), 0_usize);
    while began.elapsed() < span {
        file.write_all(&PAGE)?;
        file.sync_data()?;
        count = count.saturating_add(1);
    }
    Ok(rate(count, began.elapsed()))
}

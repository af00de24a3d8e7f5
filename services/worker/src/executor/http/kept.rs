//! What is kept of a body, however long it is.

use bytes::Bytes;

use super::super::Output;

/// A body is not read further than this.
const MOST_READ: u64 = 64 * 1024 * 1024;

/// The first bytes of a body, and how many there were.
pub(super) struct Kept {
    bytes: Vec<u8>,
    most: usize,
    total: u64,
}

impl Kept {
    pub(super) fn new(most: u64) -> Self {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Self { bytes: Vec::new(), most, total: 0 }
    }

    /// Forgets a body that is not the last one.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.total = 0;
    }

    pub(super) fn add(&mut self, bytes: &[u8]) {
        let room = self.most.saturating_sub(self.bytes.len()).min(bytes.len());
        self.bytes.extend(bytes.iter().take(room));
        self.total = self.total.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    }

    /// Whether nobody wants to read on.
    pub(super) fn is_enough(&self) -> bool {
        self.total >= MOST_READ
    }

    pub(super) fn is_whole(&self) -> bool {
        usize::try_from(self.total) == Ok(self.bytes.len())
    }

    pub(super) fn total(&self) -> u64 {
        self.total
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// What was kept; a cut of ours halves no character.
    pub(super) fn finish(mut self) -> Output {
        if !self.is_whole() {
            let valid = match std::str::from_utf8(&self.bytes) {
                Err(error) if error.error_len().is_none() => error.valid_up_to(),
                Ok(_) | Err(_) => self.bytes.len(),
            };
            self.bytes.truncate(valid);
        }
        Output { bytes: Bytes::from(self.bytes), total: self.total }
    }
}

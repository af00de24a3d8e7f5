//! Reads what a tool writes: all of it, so that the tool never blocks, but keeps little.

use std::os::fd::AsFd;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::sync::CancellationToken;

use super::super::Output;

/// What is kept of a stream.
#[derive(Debug)]
pub(super) enum Keep {
    /// The first bytes, at most so many.
    First(Vec<u8>, usize),
    /// The last bytes, about so many.
    Last(Vec<u8>, usize),
}

impl Keep {
    pub(super) fn first(most: u64) -> Self {
        Self::First(Vec::new(), usize::try_from(most).unwrap_or(usize::MAX))
    }

    pub(super) fn last(most: usize) -> Self {
        Self::Last(Vec::new(), most)
    }

    fn add(&mut self, bytes: &[u8]) {
        match self {
            Self::First(kept, most) => {
                let room = most.saturating_sub(kept.len()).min(bytes.len());
                kept.extend(bytes.iter().take(room));
            }
            Self::Last(kept, most) => {
                kept.extend(bytes);
                // Cut in steps of the limit, so that the cost per byte stays constant.
                if kept.len() > most.saturating_mul(2) {
                    keep_last(kept, *most);
                }
            }
        }
    }

    fn finish(self, total: u64) -> Output {
        let mut kept = match self {
            Self::First(kept, _) => kept,
            Self::Last(mut kept, most) => {
                keep_last(&mut kept, most);
                kept
            }
        };
        if usize::try_from(total).is_ok_and(|total| total > kept.len()) {
            drop_half_character(&mut kept);
        }
        Output { bytes: Bytes::from(kept), total }
    }
}

fn keep_last(kept: &mut Vec<u8>, most: usize) {
    kept.drain(..kept.len().saturating_sub(most));
}

/// The cut is ours, so it must not make text invalid that was valid. Bytes that were invalid stay.
fn drop_half_character(kept: &mut Vec<u8>) {
    const LONGEST: usize = 4;
    for back in 1..LONGEST {
        let Some(start) = kept.len().checked_sub(back) else { return };
        let tail = kept.get(start..).unwrap_or_default();
        let is_half = std::str::from_utf8(tail)
            .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none());
        if is_half {
            kept.truncate(start);
            return;
        }
    }
}

/// Reads `stream` to its end, or until `over`: a process that left the group may keep it open for
/// ever. Once `over`, nobody of the group writes any more, and what is in the pipe is the rest.
pub(super) async fn capture(
    mut stream: impl AsyncRead + AsFd + Unpin,
    mut keep: Keep,
    over: &CancellationToken,
) -> Output {
    let mut buffer = vec![0; BUFFER];
    let mut total = 0;
    loop {
        let read = tokio::select! {
            biased;
            () = over.cancelled() => break,
            read = stream.read(&mut buffer) => read.unwrap_or(0),
        };
        if read == 0 {
            return keep.finish(total);
        }
        add(&mut keep, &mut total, buffer.get(..read));
    }
    let mut left = rustix::io::ioctl_fionread(&stream).unwrap_or(0);
    while left > 0 {
        let most = usize::try_from(left).map_or(BUFFER, |left| left.min(BUFFER));
        let Some(room) = buffer.get_mut(..most) else { break };
        let Ok(read @ 1..) = rustix::io::read(&stream, room) else { break };
        left = left.saturating_sub(u64::try_from(read).unwrap_or(u64::MAX));
        add(&mut keep, &mut total, buffer.get(..read));
    }
    keep.finish(total)
}

fn add(keep: &mut Keep, total: &mut u64, bytes: Option<&[u8]>) {
    let bytes = bytes.unwrap_or_default();
    *total = total.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    keep.add(bytes);
}

const BUFFER: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kept(mut keep: Keep, parts: &[&[u8]]) -> Output {
        let mut total = 0;
        for part in parts {
            add(&mut keep, &mut total, Some(part));
        }
        keep.finish(total)
    }

    fn output(bytes: &'static [u8], total: u64) -> Output {
        Output { bytes: Bytes::from_static(bytes), total }
    }

    #[test]
    fn the_first_bytes_are_kept_and_all_are_counted() {
        assert_eq!(kept(Keep::first(4), &[b"ab", b"cde", b"f"]), output(b"abcd", 6));
        assert_eq!(kept(Keep::first(4), &[b"ab", b"cd"]), output(b"abcd", 4));
        assert_eq!(kept(Keep::first(0), &[b"ab"]), output(b"", 2));
    }

    #[test]
    fn the_last_bytes_are_kept_and_all_are_counted() {
        assert_eq!(kept(Keep::last(3), &[b"ab", b"cdefgh", b"i"]), output(b"ghi", 9));
        assert_eq!(kept(Keep::last(3), &[b"ab"]), output(b"ab", 2));
    }

    #[test]
    fn our_cut_halves_no_character_but_a_half_one_of_the_tool_stays() {
        assert_eq!(kept(Keep::first(6), &["abc🙂d".as_bytes()]), output(b"abc", 8));
        assert_eq!(kept(Keep::first(7), &["abc🙂d".as_bytes()]), output("abc🙂".as_bytes(), 8));
        assert_eq!(kept(Keep::first(9), &[b"ab\xF0\x9F"]), output(b"ab\xF0\x9F", 4));
    }

    proptest! {
        #[test]
        fn a_cut_keeps_valid_text_valid_and_loses_less_than_a_character(
            text in any::<String>(), most in 0_usize..40,
        ) {
            let output = kept(Keep::first(u64::try_from(most).unwrap()), &[text.as_bytes()]);
            let start = std::str::from_utf8(&output.bytes).unwrap();
            prop_assert!(text.starts_with(start));
            prop_assert!(start.len() + 3 >= most.min(text.len()));
        }
    }
}

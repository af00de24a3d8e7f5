//! How an input from outside enters a thread.

use bytes::Bytes;
use proto::envelope::Envelope;
use proto::ids::{InputKey, ThreadRef};
use proto::input::{Input, InputBody, Source};
use proto::record::Record;
use proto::subject::{Leaf, Subject};

use crate::clock::Ids;
use crate::journal::{Append, Fence};

/// The append of an input. The bus takes the same key in the same thread once within its window,
/// and every fold drops a later one for ever.
pub fn input_append(
    ids: &dyn Ids,
    place: &ThreadRef,
    key: InputKey,
    body: InputBody,
    traceparent: Option<String>,
) -> Append {
    let nonce = ids.nonce();
    let dedup = format!("{}/{}/{key}", place.tenant, place.thread);
    let record = Record::Input(Input { key, source: Source::Client, body });
    Append {
        subject: Subject::new(place.clone(), Leaf::In),
        payload: Bytes::from(Envelope::new(nonce.clone(), traceparent, record).encode()),
        nonce,
        fence: Fence::None,
        dedup: Some(dedup),
    }
}

/// A key that nobody else makes.
pub fn fresh_key(ids: &dyn Ids) -> InputKey {
    InputKey::new(ids.nonce().as_str())
        .unwrap_or_else(|_| unreachable!("a nonce is a printable token"))
}

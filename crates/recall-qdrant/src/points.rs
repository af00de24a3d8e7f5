//! How fragments lie in points.

use std::collections::HashMap;
use std::sync::Arc;

use memory_core::fragment::FragmentId;
use memory_core::lexical::Words;
use ports::BusError;
use ports::recall::{Access, Edition, Kept, Scope};
use proto::time::Timestamp;
use qdrant_client::qdrant::vectors_output::VectorsOptions;
use qdrant_client::qdrant::{
    NamedVectors, PointId, PointStruct, Value, Vector, VectorsOutput, vector_output,
};
use uuid::Uuid;

use crate::filters::What;

/// The sparse vector.
pub(crate) const WORDS: &str = "words";
/// The dense one.
pub(crate) const MEANING: &str = "meaning";
/// Until when something holds of which no end is known: far in the future, and exact as a float.
pub(crate) const FOREVER: i64 = 1 << 52;
/// Names points apart from everything else that is named by a UUID. It lies in stores.
const NAMESPACE: Uuid = Uuid::from_u128(0x6d1c_91d8_40a5_4c0e_9d3b_5a1f_7e20_c3b4);

/// What a point carries.
pub(crate) type Payload = HashMap<String, Value>;

/// The point of a name: UUID version 5.
pub(crate) fn point_of(name: &str) -> PointId {
    PointId::from(Uuid::new_v5(&NAMESPACE, name.as_bytes()).to_string())
}

/// The point of a fragment, made of tenant, thread, turn and part.
pub(crate) fn fragment_point(id: &FragmentId) -> PointId {
    point_of(&format!("fragment\n{id}"))
}

/// Milliseconds and turns stay below 2^53, where each whole number is exact.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "see above")]
pub(crate) fn float(number: i64) -> f64 {
    number as f64
}

/// Days since 2020: a 32-bit float, which is what formulas count in, tells seconds of them apart.
pub(crate) fn days(at: Timestamp) -> f64 {
    (float(at.0) - 1_577_836_800_000.0) / 86_400_000.0
}

pub(crate) fn edition_text(edition: &Edition) -> String {
    format!("{}\n{}", edition.collection, edition.version)
}

pub(crate) fn edition_of(text: &str) -> Option<Edition> {
    let (collection, version) = text.split_once('\n')?;
    Some(Edition { collection: collection.to_owned(), version: version.to_owned() })
}

/// What a point of a tenant carries at least.
pub(crate) fn payload(access: &Access, what: What) -> Payload {
    let entries = [("tenant", access.tenant().as_str()), ("what", what.as_str())];
    entries.map(|(key, value)| (key.to_owned(), Value::from(value))).into()
}

/// A fragment as a point.
pub(crate) fn point(access: &Access, kept: &Kept) -> Result<PointStruct, BusError> {
    let fragment = &kept.fragment;
    let mut vectors = NamedVectors::default();
    let words = Words::of(&kept.searched());
    let (indices, values): (Vec<u32>, Vec<f32>) = words.weights().unzip();
    vectors = vectors.add_vector(WORDS, Vector::new_sparse(indices, values));
    if let Some(vector) = &kept.vector {
        vectors = vectors.add_vector(MEANING, Vector::new_dense(vector.to_vec()));
    }
    Ok(PointStruct {
        id: Some(fragment_point(&fragment.id)),
        payload: fragment_payload(access, kept)?,
        vectors: Some(vectors.into()),
    })
}

/// All of a fragment but its vectors.
pub(crate) fn fragment_payload(access: &Access, kept: &Kept) -> Result<Payload, BusError> {
    let fragment = &kept.fragment;
    let rest = serde_json::to_string(kept).map_err(|error| BusError::Refused(error.to_string()))?;
    let mut payload = payload(access, What::Fragment);
    let mut set = |key: &str, value: Value| payload.insert(key.to_owned(), value);
    set("thread", fragment.id.thread.to_string().into());
    set("turn", i64::try_from(fragment.id.turn).unwrap_or(i64::MAX).into());
    set("at", fragment.at.0.into());
    set("days", days(fragment.at).into());
    set("kind", fragment.kind.as_str().into());
    set("until", kept.invalid_from.map_or(FOREVER, |until| until.0.min(FOREVER)).into());
    set("importance", fragment.importance.clamp(0.0, 1.0).into());
    if let Some(edition) = kept.edition() {
        set("edition", edition_text(&edition).into());
    }
    let subjects: Vec<Value> =
        kept.subjects().map(|name| Value::from(Scope::subject_hash(name))).collect();
    if !subjects.is_empty() {
        set("subjects", subjects.into());
    }
    set("rest", rest.into());
    Ok(payload)
}

/// A fragment out of a point.
pub(crate) fn kept(payload: &Payload, vectors: Option<VectorsOutput>) -> Result<Kept, BusError> {
    let rest = payload.get("rest").and_then(Value::as_str);
    let rest = rest.ok_or_else(|| BusError::Corrupt("a point without its fragment".to_owned()))?;
    let kept: Kept =
        serde_json::from_str(rest).map_err(|error| BusError::Corrupt(error.to_string()))?;
    Ok(Kept { vector: vectors.and_then(meaning), ..kept })
}

fn meaning(vectors: VectorsOutput) -> Option<Arc<[f32]>> {
    let VectorsOptions::Vectors(mut named) = vectors.vectors_options? else { return None };
    match named.vectors.remove(MEANING)?.into_vector() {
        vector_output::Vector::Dense(dense) => Some(Arc::from(dense.data)),
        vector_output::Vector::Sparse(_) | vector_output::Vector::MultiDense(_) => None,
    }
}

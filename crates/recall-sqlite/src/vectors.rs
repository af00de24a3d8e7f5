//! The list by vector: exact cosine over bytes. A vector of length 1 is kept as one byte for each of
//! its numbers and one factor.

/// The most that a byte holds.
const MOST: f32 = 127.0;

/// A vector as bytes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Packed {
    pub(crate) factor: f32,
    pub(crate) bytes: Vec<i8>,
}

impl Packed {
    /// Of length 1, whatever length it had; a vector of zeros stays one.
    pub(crate) fn of(vector: &[f32]) -> Self {
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        let largest = vector.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        if !(length.is_finite() && largest > 0.0) {
            return Self { factor: 0.0, bytes: vec![0; vector.len()] };
        }
        let bytes = vector.iter().map(|x| to_byte(x / largest * MOST)).collect();
        Self { factor: largest / MOST / length, bytes }
    }

    /// As it lies in the file: the factor, then the bytes.
    pub(crate) fn to_blob(&self) -> Vec<u8> {
        let bytes = self.bytes.iter().map(|byte| byte.cast_unsigned());
        self.factor.to_le_bytes().into_iter().chain(bytes).collect()
    }

    pub(crate) fn from_blob(blob: &[u8]) -> Option<Self> {
        let (factor, bytes) = blob.split_first_chunk::<4>()?;
        let bytes = bytes.iter().map(|byte| byte.cast_signed()).collect();
        Some(Self { factor: f32::from_le_bytes(*factor), bytes })
    }

    /// The numbers, as exactly as bytes hold them.
    pub(crate) fn unpacked(&self) -> Vec<f32> {
        self.bytes.iter().map(|byte| f32::from(*byte) * self.factor).collect()
    }
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "rounded and between -127 and 127: there is no checked conversion from floats"
)]
fn to_byte(x: f32) -> i8 {
    x.round().clamp(-MOST, MOST) as i8
}

/// Vectors of all slots, one after another.
#[derive(Debug, Default)]
pub(crate) struct VectorBlock {
    dimension: usize,
    bytes: Vec<i8>,
    /// 0 where a slot has no vector.
    factors: Vec<f32>,
}

impl VectorBlock {
    /// Puts a slot's vector, or none. The first vector says how many numbers they have; one of another
    /// length counts as none.
    pub(crate) fn set(&mut self, slot: u32, vector: Option<&Packed>) {
        let Ok(slot) = usize::try_from(slot) else { return };
        if self.dimension == 0 {
            self.dimension = vector.map_or(0, |vector| vector.bytes.len());
        }
        let slots = slot.saturating_add(1).max(self.factors.len());
        self.factors.resize(slots, 0.0);
        self.bytes.resize(slots.saturating_mul(self.dimension), 0);
        let vector = vector.filter(|vector| vector.bytes.len() == self.dimension);
        if let Some(factor) = self.factors.get_mut(slot) {
            *factor = vector.map_or(0.0, |vector| vector.factor);
        }
        let start = slot.saturating_mul(self.dimension);
        let place = self.bytes.get_mut(start..start.saturating_add(self.dimension));
        if let (Some(place), Some(vector)) = (place, vector) {
            place.copy_from_slice(&vector.bytes);
        }
    }

    /// The cosine of each slot's vector with a question's, by slot; 0 where there is none.
    pub(crate) fn score(&self, question: &Packed, scores: &mut [f32]) {
        if self.dimension == 0 || question.bytes.len() != self.dimension {
            return;
        }
        let rows = self.bytes.chunks_exact(self.dimension).zip(&self.factors);
        for ((row, factor), score) in rows.zip(scores) {
            if *factor > 0.0 {
                *score = dot(row, &question.bytes) * factor * question.factor;
            }
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes.len().saturating_add(self.factors.len().saturating_mul(4))
    }
}

/// Products of bytes are below 2^14 and there are fewer than 2^16 of them, so the sum fits; as a float
/// it is exact below 2^24 and close enough above.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "see above")]
fn dot(a: &[i8], b: &[i8]) -> f32 {
    let products = a.iter().zip(b).map(|(x, y)| i32::from(i16::from(*x) * i16::from(*y)));
    products.sum::<i32>() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_survives_its_bytes_nearly() {
        let vector = [0.6_f32, -0.8, 0.0];
        let packed = Packed::of(&vector);
        assert_eq!(Packed::from_blob(&packed.to_blob()), Some(packed.clone()));
        for (a, b) in packed.unpacked().iter().zip(vector) {
            assert!((a - b).abs() < 0.005, "{a} {b}");
        }
        for nothing in [[0.0, 0.0], [f32::NAN, f32::INFINITY]] {
            assert!(Packed::of(&nothing).factor.abs() < f32::EPSILON);
        }
    }

    #[test]
    fn the_cosine_does_not_depend_on_the_length() {
        let mut block = VectorBlock::default();
        block.set(0, Some(&Packed::of(&[3.0, 4.0])));
        block.set(2, Some(&Packed::of(&[-30.0, -40.0])));
        let mut scores = [0.0; 3];
        block.score(&Packed::of(&[0.3, 0.4]), &mut scores);
        assert!((scores[0] - 1.0).abs() < 0.01 && (scores[2] + 1.0).abs() < 0.01, "{scores:?}");
        assert!(scores[1].abs() < f32::EPSILON);
        block.set(0, None);
        block.score(&Packed::of(&[1.0, 0.0, 0.0]), &mut scores);
    }
}

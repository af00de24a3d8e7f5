//! One chunk of a reply as a small typed view: every field is optional and nullable, unknown ones
//! are skipped, and a wrong type in a field that decides nothing is no error.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// A chunk, or a whole reply.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Chunk<'a> {
    #[serde(borrow)]
    pub(crate) choices: Option<Many<Choice<'a>>>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) object: Loose<'a>,
    #[serde(borrow)]
    pub(crate) model: Loose<'a>,
    #[serde(borrow)]
    pub(crate) native_finish_reason: Loose<'a>,
}

/// One of the replies that were asked for; only the first is read.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Choice<'a> {
    #[serde(borrow)]
    pub(crate) index: Loose<'a>,
    #[serde(borrow)]
    pub(crate) delta: Lax<Delta<'a>>,
    #[serde(borrow)]
    pub(crate) message: Lax<Delta<'a>>,
    #[serde(borrow)]
    pub(crate) finish_reason: Loose<'a>,
    #[serde(borrow)]
    pub(crate) native_finish_reason: Loose<'a>,
    #[serde(borrow)]
    pub(crate) error: Option<&'a RawValue>,
}

/// What a chunk adds.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Delta<'a> {
    #[serde(borrow)]
    pub(crate) content: Loose<'a>,
    #[serde(borrow)]
    pub(crate) reasoning_content: Loose<'a>,
    #[serde(borrow)]
    pub(crate) reasoning: Loose<'a>,
    #[serde(borrow)]
    pub(crate) thinking: Loose<'a>,
    #[serde(borrow)]
    pub(crate) reasoning_details: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) refusal: Loose<'a>,
    #[serde(borrow)]
    pub(crate) tool_calls: Many<Entry<'a>>,
    #[serde(borrow)]
    pub(crate) function_call: Lax<Function<'a>>,
}

/// A piece of a call.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Entry<'a> {
    #[serde(borrow)]
    pub(crate) index: Loose<'a>,
    #[serde(borrow)]
    pub(crate) id: Loose<'a>,
    #[serde(borrow)]
    pub(crate) function: Lax<Function<'a>>,
    #[serde(borrow)]
    pub(crate) extra_content: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) thought_signature: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) provider_specific_fields: Option<&'a RawValue>,
}

/// The function of a call.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Function<'a> {
    #[serde(borrow)]
    pub(crate) name: Loose<'a>,
    #[serde(borrow)]
    pub(crate) arguments: Option<&'a RawValue>,
}

/// Reads a payload that is exactly one JSON document.
pub(crate) fn parse(payload: &str) -> Option<Chunk<'_>> {
    serde_json::from_str(payload).ok()
}

/// A value that should be a text or a number and may be anything.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Loose<'a> {
    /// Absent, null or a truth value.
    #[default]
    Nothing,
    /// A text.
    Text(Cow<'a, str>),
    /// A number, written out.
    Number(String),
    /// An object or array.
    Other(Value),
}

impl Loose<'_> {
    /// The text, when it is one and not empty.
    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            Self::Text(_) | Self::Nothing | Self::Number(_) | Self::Other(_) => None,
        }
    }

    /// A key made of a text or a number; the two compare equal.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !text.trim().is_empty() => Some(text.trim()),
            Self::Number(number) => Some(number),
            Self::Text(_) | Self::Nothing | Self::Other(_) => None,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor(PhantomData))
    }
}

struct LooseVisitor<'a>(PhantomData<Loose<'a>>);

impl<'de: 'a, 'a> Visitor<'de> for LooseVisitor<'a> {
    type Value = Loose<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Loose::Text(Cow::Borrowed(text)))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Loose::Text(Cow::Owned(text.to_owned())))
    }
    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Loose::Text(Cow::Owned(text)))
    }
    fn visit_i64<E>(self, number: i64) -> Result<Self::Value, E> {
        Ok(Loose::Number(number.to_string()))
    }
    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Loose::Number(number.to_string()))
    }
    fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
        Ok(Loose::Number(number.to_string()))
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Loose::Nothing)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Loose::Nothing)
    }
    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Loose::Nothing)
    }
    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        let value = Value::deserialize(de::value::SeqAccessDeserializer::new(seq))?;
        Ok(Loose::Other(value))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let value = Value::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Loose::Other(value))
    }
}

/// An object, or nothing when it is something else.
#[derive(Debug)]
pub(crate) struct Lax<T>(pub(crate) Option<T>);

impl<T> Default for Lax<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Lax<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut all =
            deserializer.deserialize_any(ManyVisitor::<T> { alone: true, of: PhantomData })?;
        Ok(Self(all.0.pop()))
    }
}

/// An array of objects; one object counts as an array of one, anything else as none.
#[derive(Debug)]
pub(crate) struct Many<T>(pub(crate) Vec<T>);

impl<T> Default for Many<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Many<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ManyVisitor::<T> { alone: false, of: PhantomData })
    }
}

struct ManyVisitor<T> {
    alone: bool,
    of: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for ManyVisitor<T> {
    type Value = Many<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }
    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Many::default())
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Many::default())
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Many::default())
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Many::default())
    }
    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(Many::default())
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Many::default())
    }
    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Many::default())
    }
    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        if self.alone {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            return Ok(Many::default());
        }
        let mut items = Vec::new();
        while let Some(Lax(item)) = seq.next_element::<Lax<T>>()? {
            items.extend(item);
        }
        Ok(Many(items))
    }
    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Ok(Many(vec![T::deserialize(MapAccessDeserializer::new(map))?]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_text(payload: &str) -> Option<String> {
        let chunk = parse(payload)?;
        let choice = chunk.choices?.0.into_iter().next()?;
        choice.delta.0?.content.text().map(str::to_owned)
    }

    #[test]
    fn odd_types_in_fields_that_decide_nothing_lose_no_text() {
        for odd in [
            r#""created":1.5"#,
            r#""created":"now","id":7,"object":null"#,
            r#""usage":{},"service_tier":"on_demand""#,
            r#""model":{"name":"x"},"logprobs":false"#,
        ] {
            let payload = format!(
                r#"{{{odd},"choices":[{{"index":"0","delta":{{"content":"hi","role":""}}}}]}}"#
            );
            assert_eq!(first_text(&payload).as_deref(), Some("hi"), "{odd}");
        }
    }

    #[test]
    fn missing_and_null_parts_are_empty_parts() {
        for payload in [
            "{}",
            r#"{"choices":null}"#,
            r#"{"choices":[]}"#,
            r#"{"choices":[null]}"#,
            r#"{"choices":[{"delta":null}]}"#,
            r#"{"choices":[{"delta":{"content":null,"tool_calls":null,"function_call":null}}]}"#,
        ] {
            assert!(parse(payload).is_some(), "{payload}");
            assert_eq!(first_text(payload), None, "{payload}");
        }
    }

    #[test]
    fn a_call_that_is_an_object_counts_as_one() {
        let payload =
            r#"{"choices":[{"delta":{"tool_calls":{"index":0,"function":{"name":"f"}}}}]}"#;
        let chunk = parse(payload).unwrap();
        let delta = chunk.choices.unwrap().0.into_iter().next().unwrap().delta.0.unwrap();
        assert_eq!(delta.tool_calls.0.len(), 1);
    }
}

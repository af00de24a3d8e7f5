//! What a value in an observation has to be.

use regex::Regex;
use serde_json::Value;

use crate::compare::{difference, shown};

/// One test of one value.
#[derive(Clone, Debug)]
pub enum Matcher {
    /// Equal to this.
    Equals(Value),
    /// Anything but this; absent counts as anything.
    Not(Value),
    /// One of these.
    OneOf(Vec<Value>),
    /// Greater than.
    Above(f64),
    /// At least.
    AtLeast(f64),
    /// Less than.
    Below(f64),
    /// At most.
    AtMost(f64),
    /// Its text matches.
    Matches(Regex),
    /// It is there, or it is not.
    Exists(bool),
}

impl Matcher {
    /// Whether the value passes; `None` is a value that is not there.
    pub fn accepts(&self, value: Option<&Value>) -> bool {
        let number = value.and_then(Value::as_f64);
        match self {
            Self::Equals(wanted) => value.is_some_and(|value| same(value, wanted)),
            Self::Not(unwanted) => !value.is_some_and(|value| same(value, unwanted)),
            Self::OneOf(wanted) => {
                value.is_some_and(|value| wanted.iter().any(|one| same(value, one)))
            }
            Self::Above(limit) => number.is_some_and(|number| number > *limit),
            Self::AtLeast(limit) => number.is_some_and(|number| number >= *limit),
            Self::Below(limit) => number.is_some_and(|number| number < *limit),
            Self::AtMost(limit) => number.is_some_and(|number| number <= *limit),
            Self::Matches(pattern) => value.is_some_and(|value| pattern.is_match(&text_of(value))),
            Self::Exists(wanted) => value.is_some() == *wanted,
        }
    }
}

/// Equal as JSON; `1` and `1.0` are the same number.
fn same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() <= f64::EPSILON * one.abs().max(1.0),
        (None, None) => one == other,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// A value as people write it: text without quotes, anything else as JSON.
pub fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

impl Matcher {
    /// What it asks for, behind the name of a value; a long text from shortly before `from`.
    pub fn words(&self, from: usize) -> String {
        let value = |value: &Value| shown(&text_of(value), from);
        match self {
            Self::Equals(wanted) => format!("equals {}", value(wanted)),
            Self::Not(unwanted) => format!("is not {}", value(unwanted)),
            Self::OneOf(wanted) => {
                let wanted: Vec<String> = wanted.iter().map(value).collect();
                format!("is one of {}", wanted.join(", "))
            }
            Self::Above(limit) => format!("is above {limit}"),
            Self::AtLeast(limit) => format!("is at least {limit}"),
            Self::Below(limit) => format!("is below {limit}"),
            Self::AtMost(limit) => format!("is at most {limit}"),
            Self::Matches(pattern) => format!("matches {:?}", pattern.as_str()),
            Self::Exists(true) => "is there".to_owned(),
            Self::Exists(false) => "is absent".to_owned(),
        }
    }

    /// Where a text begins to differ from the one that is wanted.
    pub(crate) fn place_of_difference(&self, value: &Value) -> usize {
        match self {
            Self::Equals(wanted) => difference(&text_of(wanted), &text_of(value)),
            Self::Not(_)
            | Self::OneOf(_)
            | Self::Above(_)
            | Self::AtLeast(_)
            | Self::Below(_)
            | Self::AtMost(_)
            | Self::Matches(_)
            | Self::Exists(_) => 0,
        }
    }
}

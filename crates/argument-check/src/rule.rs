//! What a broken keyword asks for, to be read after the field's name.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use serde_json::Value;

/// The rule of a broken keyword.
pub(crate) fn text(error: &ValidationError<'_>) -> String {
    let kind = error.kind();
    let known = of_values(kind).or_else(|| of_sizes(kind)).or_else(|| of_alternatives(kind));
    known.unwrap_or_else(|| otherwise(error))
}

/// What each alternative asks for first.
fn of_alternatives(kind: &Kind) -> Option<String> {
    let (Kind::AnyOf { context } | Kind::OneOfNotValid { context }) = kind else {
        return None;
    };
    let mut rules: Vec<String> =
        context.iter().filter_map(|errors| errors.first()).map(text).collect();
    rules.dedup();
    Some(format!("fits none of its alternatives ({})", cut(&rules.join("; "))))
}

fn of_values(kind: &Kind) -> Option<String> {
    if let Kind::Type { kind } = kind {
        return Some(format!("must be {}", type_names(kind)));
    }
    if let Kind::Enum { options } = kind {
        return Some(format!("must be one of {}", list(options)));
    }
    if let Kind::Constant { expected_value } = kind {
        return Some(format!("must be {}", short(expected_value)));
    }
    if let Kind::Pattern { pattern } = kind {
        return Some(format!("must match the pattern {}", cut(pattern)));
    }
    if let Kind::Format { format } = kind {
        return Some(format!("must be in the format {format}"));
    }
    None
}

fn of_sizes(kind: &Kind) -> Option<String> {
    if let Kind::Minimum { limit } = kind {
        return Some(format!("must be at least {limit}"));
    }
    if let Kind::Maximum { limit } = kind {
        return Some(format!("must be at most {limit}"));
    }
    if let Kind::ExclusiveMinimum { limit } = kind {
        return Some(format!("must be greater than {limit}"));
    }
    if let Kind::ExclusiveMaximum { limit } = kind {
        return Some(format!("must be less than {limit}"));
    }
    let (least, of) = if let Kind::MinLength { limit } = kind {
        (Ok(limit), "characters")
    } else if let Kind::MaxLength { limit } = kind {
        (Err(limit), "characters")
    } else if let Kind::MinItems { limit } = kind {
        (Ok(limit), "items")
    } else if let Kind::MaxItems { limit } = kind {
        (Err(limit), "items")
    } else if let Kind::MinProperties { limit } = kind {
        (Ok(limit), "fields")
    } else if let Kind::MaxProperties { limit } = kind {
        (Err(limit), "fields")
    } else {
        return None;
    };
    Some(match least {
        Ok(limit) => format!("must have at least {limit} {of}"),
        Err(limit) => format!("must have at most {limit} {of}"),
    })
}

/// The rarer keywords, in the validator's own words without the sent value.
fn otherwise(error: &ValidationError<'_>) -> String {
    let own = error.masked_with("it").to_string();
    let rest = own.strip_prefix("it ").map(|rest| format!("is wrong: it {rest}"));
    cut(&rest.unwrap_or_else(|| format!("is wrong: {own}")))
}

fn type_names(kind: &TypeKind) -> String {
    let names: Vec<String> = match kind {
        TypeKind::Single(one) => vec![one.to_string()],
        TypeKind::Multiple(several) => several.iter().map(|one| one.to_string()).collect(),
    };
    let with_article = |name: &String| match name.as_str() {
        "null" => "null".to_owned(),
        "integer" | "array" | "object" => format!("an {name}"),
        _ => format!("a {name}"),
    };
    names.iter().map(with_article).collect::<Vec<_>>().join(" or ")
}

/// Options as people write them, cut.
pub(crate) fn list(options: &Value) -> String {
    let all = options.as_array().map(Vec::as_slice).unwrap_or_default();
    cut(&all.iter().map(short).collect::<Vec<_>>().join(", "))
}

/// A value as people write it, cut.
pub(crate) fn short(value: &Value) -> String {
    cut(&value.to_string())
}

/// At most 200 characters.
pub(crate) fn cut(text: &str) -> String {
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

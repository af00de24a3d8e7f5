//! What a word is by its look.

use super::EntityKind;

/// What a word is by its look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// An entity of that kind.
    Entity(EntityKind),
    /// A number; a unit may follow.
    Number,
    /// A word with a capital first letter.
    Capitalised,
    /// Nothing in particular.
    Plain,
}

pub(super) fn shape(word: &str) -> Shape {
    let first = word.chars().next().unwrap_or(' ');
    if word.is_ascii() && word.bytes().all(|b| b.is_ascii_lowercase()) {
        return if is_time_word(word) { Shape::Entity(EntityKind::Time) } else { Shape::Plain };
    }
    let by_sign = signed(word);
    if let Some(kind) = by_sign {
        return Shape::Entity(kind);
    }
    if word.chars().any(|c| c.is_ascii_digit()) {
        return numbered(word);
    }
    let rest_has_upper = word.chars().skip(1).any(char::is_uppercase);
    let has_lower = word.chars().any(char::is_lowercase);
    if rest_has_upper && has_lower && !word.contains(['-', '\'', '’']) {
        return Shape::Entity(EntityKind::Symbol);
    }
    if rest_has_upper
        && !has_lower
        && word.chars().count() <= 6
        && word.chars().all(char::is_alphabetic)
    {
        return Shape::Entity(EntityKind::Identifier);
    }
    if is_time_word(&word.to_lowercase()) {
        return Shape::Entity(EntityKind::Time);
    }
    let is_name = first.is_uppercase() && !is_self(word);
    if is_name { Shape::Capitalised } else { Shape::Plain }
}

/// Kinds that a sign in the word tells.
fn signed(word: &str) -> Option<EntityKind> {
    if word.contains("://") || word.starts_with("www.") {
        return Some(EntityKind::Url);
    }
    if let Some((name, host)) = word.split_once('@') {
        return (!name.is_empty() && host.contains('.')).then_some(EntityKind::Email);
    }
    if is_path(word) {
        return Some(EntityKind::Path);
    }
    let is_symbol = word.contains("::")
        || word.ends_with("()")
        || word.contains("->")
        || (word.starts_with('$') && word.chars().nth(1).is_some_and(char::is_alphabetic))
        || (word.trim_matches('_').contains('_') && word.is_ascii());
    if is_symbol {
        let letters = || word.chars().filter(|c| c.is_alphabetic());
        let is_code = letters().all(char::is_uppercase) && word.starts_with("ERR");
        return Some(if is_code { EntityKind::ErrorCode } else { EntityKind::Symbol });
    }
    (word.starts_with('#') && word.len() > 2).then_some(EntityKind::Identifier)
}

fn is_path(word: &str) -> bool {
    let starts =
        ["/", "./", "../", "~/"].iter().any(|start| word.starts_with(start)) && word.len() > 2;
    let is_windows = word.get(1..3) == Some(":\\");
    let inside = word.matches('/').count();
    let last = word.rsplit('/').next().unwrap_or("");
    starts || is_windows || (inside >= 2 && !word.contains(' ')) || has_extension(last)
}

fn has_extension(name: &str) -> bool {
    let Some((stem, extension)) = name.rsplit_once('.') else { return false };
    !stem.is_empty() && EXTENSIONS.contains(&extension)
}

const EXTENSIONS: [&str; 40] = [
    "rs", "py", "js", "ts", "tsx", "jsx", "go", "java", "c", "h", "cpp", "rb", "php", "cs", "sh",
    "md", "txt", "json", "yaml", "yml", "toml", "ini", "cfg", "conf", "env", "csv", "xml", "html",
    "css", "sql", "db", "log", "lock", "pdf", "png", "jpg", "zip", "tar", "gz", "service",
];

/// Words with digits.
fn numbered(word: &str) -> Shape {
    let lower = word.to_lowercase();
    if is_clock_or_date(&lower) {
        return Shape::Entity(EntityKind::Time);
    }
    let bare = lower.trim_start_matches('v');
    let dots = bare.matches('.').count();
    let is_dotted =
        bare.split('.').all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
    if is_dotted && dots == 3 && bare.len() == lower.len() {
        return Shape::Entity(EntityKind::Identifier);
    }
    if is_dotted && (dots >= 2 || (dots >= 1 && bare.len() < lower.len())) {
        return Shape::Entity(EntityKind::Version);
    }
    let money = word.trim_matches(['$', '€', '£', '¥', '%', '~', '+', '-', '<', '>', '=']);
    let digits = |text: &str| {
        text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b',' | b'_'))
            && text.len() < 16
    };
    if digits(money) {
        let is_whole = money.len() != word.len();
        return if is_whole { Shape::Entity(EntityKind::Amount) } else { Shape::Number };
    }
    let unit = money.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
    if unit.len() < money.len() && is_unit(unit) {
        return Shape::Entity(EntityKind::Amount);
    }
    Shape::Entity(if is_error_code(word) { EntityKind::ErrorCode } else { EntityKind::Identifier })
}

/// `E0308`, `ORA-00942`, `HTTP404`: capitals, then only digits.
fn is_error_code(word: &str) -> bool {
    let digits =
        word.trim_start_matches(|c: char| c.is_ascii_uppercase() || matches!(c, '-' | '_'));
    let letters = word.len().saturating_sub(digits.len());
    (1..=8).contains(&letters)
        && (3..=6).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit())
}

fn is_clock_or_date(lower: &str) -> bool {
    let parts = |sign: char| {
        let all: Vec<&str> = lower.split(sign).collect();
        let are_digits =
            all.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()));
        if are_digits { all.len() } else { 0 }
    };
    let is_year =
        lower.len() == 4 && (lower.starts_with("19") || lower.starts_with("20")) && parts('-') == 1;
    let clock = lower.trim_end_matches("am").trim_end_matches("pm");
    let is_hour =
        clock.len() < lower.len() && clock.bytes().all(|b| b.is_ascii_digit() || b == b':');
    let is_dated = lower.get(..10).is_some_and(|day| {
        day.split('-').count() == 3 && day.bytes().all(|b| b.is_ascii_digit() || b == b'-')
    });
    let is_ordinal = ["st", "nd", "rd", "th"].iter().any(|end| {
        lower
            .strip_suffix(end)
            .is_some_and(|n| n.len() <= 2 && n.bytes().all(|b| b.is_ascii_digit()))
    });
    is_year
        || is_hour
        || is_dated
        || is_ordinal
        || parts(':') >= 2
        || parts('/') == 3
        || lower.contains('年')
        || lower.contains('月')
        || lower.ends_with("日")
}

/// What may follow a number.
pub(super) fn is_unit(word: &str) -> bool {
    let lower = word.to_lowercase();
    UNITS.contains(&lower.as_str())
}

const UNITS: [&str; 74] = [
    "%", "ms", "s", "sec", "secs", "second", "seconds", "min", "mins", "minute", "minutes", "h",
    "hr", "hour", "hours", "day", "days", "week", "weeks", "month", "months", "year", "years",
    "am", "pm", "b", "kb", "kib", "mb", "mib", "gb", "gib", "tb", "k", "m", "km", "cm", "mm",
    "mile", "miles", "kg", "g", "lb", "lbs", "usd", "eur", "€", "dollars", "euros", "euro",
    "percent", "times", "x", "px", "rpm", "qps", "rps", "hz", "mhz", "ghz", "w", "kw", "v", "°c",
    "tage", "tagen", "stunden", "minuten", "jahre", "días", "horas", "jours", "heures", "元",
];

/// Words after which a bare number is a code.
pub(super) fn names_a_code(word: &str) -> bool {
    ["error", "status", "code", "exit", "errno", "http", "fehler", "fehlercode", "código"]
        .contains(&word.to_lowercase().as_str())
}

fn is_self(word: &str) -> bool {
    matches!(
        word,
        "I" | "I'm" | "I’m" | "I'll" | "I’ll" | "I've" | "I’ve" | "I'd" | "I’d" | "A" | "OK" | "Ok"
    )
}

fn is_time_word(lower: &str) -> bool {
    TIMES.contains(&lower)
}

const TIMES: [&str; 66] = [
    "today",
    "yesterday",
    "tomorrow",
    "tonight",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "january",
    "february",
    "march",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
    "weekend",
    "ago",
    "deadline",
    "heute",
    "gestern",
    "morgen",
    "montag",
    "dienstag",
    "mittwoch",
    "donnerstag",
    "freitag",
    "samstag",
    "sonntag",
    "januar",
    "februar",
    "märz",
    "mai",
    "juni",
    "juli",
    "oktober",
    "dezember",
    "hoy",
    "ayer",
    "mañana",
    "lunes",
    "martes",
    "miércoles",
    "jueves",
    "viernes",
    "sábado",
    "domingo",
    "enero",
    "hier",
    "aujourd'hui",
    "demain",
    "lundi",
    "mardi",
    "mercredi",
    "jeudi",
    "vendredi",
    "samedi",
    "dimanche",
    "今天",
    "明天",
];

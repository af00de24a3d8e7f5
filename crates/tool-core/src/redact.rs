//! Secrets do not leave the worker: keys, tokens, passwords, private addresses, and what the
//! deployment adds, become placeholders.
//!
//! Equal secrets of one text get equal placeholders, numbered in the order in which they are found,
//! so that a reader can still tell that two lines speak of the same thing. A placeholder says
//! nothing about its secret, not even a hash that could be guessed at.

use std::sync::{Arc, LazyLock};

use regex::{Captures, Regex};

/// What a deployment chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whether addresses of private networks are redacted. Loopback never is.
    pub private_addresses: bool,
    /// Regular expressions: what they match is redacted, or their group 1 when they have one.
    pub patterns: Vec<String>,
}

impl Default for Rules {
    fn default() -> Self {
        Self { private_addresses: true, patterns: Vec::new() }
    }
}

/// A pattern of the deployment that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the redaction pattern `{pattern}` is not a regular expression: {why}")]
pub struct BadPattern {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub why: String,
}

/// Kind and pattern; the last group that matched is the secret, else the whole match.
const SECRETS: &[(&str, &str)] = &[
    (
        "private key",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\z)",
    ),
    ("jwt", r"\beyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)?"),
    (
        "token",
        concat!(
            r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}",
            r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}",
            r"|\bglpat-[A-Za-z0-9_-]{16,}|\bxox[a-z]-[A-Za-z0-9-]{10,}",
            r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}|\bAIza[0-9A-Za-z_-]{30,}",
            r"|\bnpm_[A-Za-z0-9]{30,}|\bhf_[A-Za-z0-9]{20,}",
        ),
    ),
    ("password", r"[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/:@]*:([^\s/@]+)@"),
    (
        "authorization",
        r#"(?i)\b(?:proxy-)?authorization\\*["']?\s*[:=]\s*\\*["']?(?:(?:bearer|basic|token|digest)\s+)?([^\s"',;\\]+)"#,
    ),
    ("authorization", r"(?i)\bbearer\s+([A-Za-z0-9._~+/=-]{16,})"),
    ("cookie", r"(?i)\b(?:set-)?cookie\s*:\s*([^\r\n]+)"),
    (
        "secret",
        concat!(
            r"(?i)[\w.-]*(?:password|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential)",
            r#"(?:[_.-][\w.-]*)?\\*["']?\s*(?::=|[:=])\s*"#,
            r#"(?:\\*"([^"\\\n]+)|\\*'([^'\\\n]+)|([^\s"',;&}\\]+))"#,
        ),
    ),
];

const PRIVATE_ADDRESSES: &str = concat!(
    r"\b(?:10(?:\.\d{1,3}){3}|192\.168(?:\.\d{1,3}){2}|169\.254(?:\.\d{1,3}){2}",
    r"|172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2})\b",
    r"|(?i:\b(?:f[cd][0-9a-f]{2}|fe80):[0-9a-f:]*[0-9a-f])",
);

const PLACEHOLDER: &str = "[redacted ";

/// Finds and replaces secrets. Making one costs milliseconds; keep it.
#[derive(Clone, Debug)]
pub struct Redactor {
    rules: Vec<(&'static str, Regex)>,
}

impl Redactor {
    /// Compiles the rules.
    pub fn new(rules: &Rules) -> Result<Self, BadPattern> {
        let mut compiled = Vec::new();
        for (kind, pattern) in SECRETS {
            compiled.push((*kind, compile(pattern)?));
        }
        if rules.private_addresses {
            compiled.push(("private address", compile(PRIVATE_ADDRESSES)?));
        }
        for pattern in &rules.patterns {
            compiled.push(("value", compile(pattern)?));
        }
        Ok(Self { rules: compiled })
    }

    /// The one with the default rules; made once in a process.
    pub fn standard() -> Arc<Self> {
        static STANDARD: LazyLock<Arc<Redactor>> = LazyLock::new(|| {
            let made = Redactor::new(&Rules::default());
            Arc::new(made.unwrap_or_else(|_| unreachable!("the built-in patterns are tested")))
        });
        Arc::clone(&STANDARD)
    }

    /// The text with placeholders for its secrets.
    pub fn redact(&self, text: &str) -> String {
        let mut found = Found::default();
        let mut clean = text.to_owned();
        for (kind, rule) in &self.rules {
            if rule.is_match(&clean) {
                clean =
                    rule.replace_all(&clean, |hit: &Captures<'_>| found.replace(kind, hit)).into();
            }
        }
        found.replace_everywhere(clean)
    }
}

fn compile(pattern: &str) -> Result<Regex, BadPattern> {
    Regex::new(pattern)
        .map_err(|error| BadPattern { pattern: pattern.to_owned(), why: error.to_string() })
}

/// Secrets of one text, in the order found.
#[derive(Debug, Default)]
struct Found {
    secrets: Vec<(&'static str, String)>,
}

impl Found {
    fn replace(&mut self, kind: &'static str, hit: &Captures<'_>) -> String {
        let Some(whole) = hit.get(0) else { return String::new() };
        let secret = hit.iter().skip(1).flatten().last().unwrap_or(whole);
        if kind == "secret" && !is_secret(whole.as_str(), secret.as_str()) {
            return whole.as_str().to_owned();
        }
        if secret.as_str().starts_with(PLACEHOLDER) {
            return whole.as_str().to_owned();
        }
        let (from, to) = (secret.start() - whole.start(), secret.end() - whole.start());
        let before = whole.as_str().get(..from).unwrap_or_default();
        let after = whole.as_str().get(to..).unwrap_or_default();
        format!("{before}{}{after}", self.placeholder(kind, secret.as_str()))
    }

    fn placeholder(&mut self, kind: &'static str, secret: &str) -> String {
        let known = self.secrets.iter().position(|(_, known)| known == secret);
        let index = known.unwrap_or(self.secrets.len());
        if known.is_none() {
            self.secrets.push((kind, secret.to_owned()));
        }
        name(self.secrets.get(index).map_or(kind, |(first, _)| first), index)
    }

    /// A secret that was told by its surroundings may stand elsewhere without them.
    fn replace_everywhere(&self, mut text: String) -> String {
        for (index, (kind, secret)) in self.secrets.iter().enumerate() {
            if is_distinctive(secret) && text.contains(secret) {
                text = text.replace(secret, &name(kind, index));
            }
        }
        text
    }
}

fn name(kind: &str, index: usize) -> String {
    format!("{PLACEHOLDER}{kind} {}]", index.saturating_add(1))
}

/// Whether what follows a telling name is a secret: `max_tokens: 300` and `token: null` are not.
fn is_secret(whole: &str, value: &str) -> bool {
    const PLAIN: [&str; 6] = ["true", "false", "null", "none", "nil", "undefined"];
    let is_count = value.bytes().all(|b| b.is_ascii_digit()) && value.len() <= 7;
    let speaks_of_tokens = whole.to_ascii_lowercase().contains("token");
    let is_plain = PLAIN.contains(&value.to_ascii_lowercase().as_str());
    !(is_plain || (is_count && speaks_of_tokens) || is_place(whole, value))
}

/// Whether a name speaks of a folder or a file, and its value is one: `PWD=/tmp`, and
/// `token_file: /run/secrets/token`.
fn is_place(whole: &str, value: &str) -> bool {
    let name = whole.split(['=', ':']).next().unwrap_or_default().to_ascii_lowercase();
    let name = name.trim_end().trim_end_matches(['"', '\'', '\\']);
    let is_folder = ["pwd", "oldpwd"].contains(&name);
    let is_file = ["file", "path", "dir"].iter().any(|end| name.ends_with(end));
    let is_path = value.starts_with('/') || value.starts_with("./") || value.starts_with("~/");
    is_path && (is_folder || is_file)
}

/// Long and mixed enough that its other places are no coincidence.
fn is_distinctive(secret: &str) -> bool {
    secret.len() >= 8
        && secret.bytes().any(|b| b.is_ascii_digit())
        && secret.bytes().any(|b| !b.is_ascii_digit())
        && !secret.contains(PLACEHOLDER)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use proptest::prelude::*;

    use super::*;

    fn redactor() -> Arc<Redactor> {
        Redactor::standard()
    }

    fn check(text: &str, expected: &Expect) {
        expected.assert_eq(&redactor().redact(text));
    }

    #[test]
    fn keys_and_tokens_are_replaced() {
        check(
            "key sk-proj-abcdefghijklmnop1234, AKIAIOSFODNN7EXAMPLE and ghp_abcdefghijklmnopqrst1234",
            &expect!["key [redacted token 1], [redacted token 2] and [redacted token 3]"],
        );
    }

    #[test]
    fn a_jwt_is_replaced_whole() {
        check(
            "token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl end",
            &expect!["token [redacted jwt 1] end"],
        );
    }

    #[test]
    fn a_private_key_is_replaced_even_without_its_end() {
        check("-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc", &expect!["[redacted private key 1]"]);
    }

    #[test]
    fn passwords_in_addresses_and_settings_are_replaced() {
        check(
            "postgres://app:hunter22@db/x password=hunter22 {\"api_key\": \"a b c\", \\\"secret\\\":\\\"s3\\\"}",
            &expect![[r#"
                postgres://app:[redacted password 1]@db/x password=[redacted password 1] {"api_key": "[redacted secret 2]", \"secret\":\"[redacted secret 3]\"}"#]],
        );
    }

    #[test]
    fn headers_are_replaced() {
        check(
            "Authorization: Bearer abc.def\nCookie: a=b; c=d\nX: 1",
            &expect![[r"
                Authorization: Bearer [redacted authorization 1]
                Cookie: [redacted cookie 2]
                X: 1"]],
        );
    }

    #[test]
    fn equal_secrets_get_equal_placeholders_wherever_they_stand() {
        check(
            "PGPASSWORD=s3cret-word psql; retry with s3cret-word; MYSQL_PWD=other",
            &expect![
                "PGPASSWORD=[redacted secret 1] psql; retry with [redacted secret 1]; MYSQL_PWD=[redacted secret 2]"
            ],
        );
    }

    #[test]
    fn private_addresses_are_replaced_and_loopback_stays() {
        check(
            "10.1.2.3:80 192.168.0.1 172.16.9.9 172.32.0.1 127.0.0.1:8080 8.8.8.8 fe80::1",
            &expect![
                "[redacted private address 1]:80 [redacted private address 2] [redacted private address 3] 172.32.0.1 127.0.0.1:8080 8.8.8.8 [redacted private address 4]"
            ],
        );
    }

    #[test]
    fn addresses_stay_where_the_deployment_says_so() {
        let open = Redactor::new(&Rules { private_addresses: false, patterns: vec![] }).unwrap();
        assert_eq!(open.redact("10.1.2.3"), "10.1.2.3");
    }

    #[test]
    fn patterns_of_the_deployment_are_replaced() {
        let patterns = vec![r"CUST-\d+".to_owned(), r"pin (\d{4})".to_owned()];
        let own = Redactor::new(&Rules { private_addresses: true, patterns }).unwrap();
        assert_eq!(own.redact("CUST-77 pin 1234"), "[redacted value 1] pin [redacted value 2]");
    }

    #[test]
    fn a_pattern_that_is_none_is_reported() {
        let bad = Redactor::new(&Rules { private_addresses: true, patterns: vec!["(".into()] });
        assert_eq!(bad.map_err(|bad| bad.pattern).unwrap_err(), "(");
    }

    #[test]
    fn counts_of_tokens_and_ordinary_text_stay() {
        let text =
            "max_tokens: 300, tokens=12, token: null, error: timeout, sk-8, the password was wrong";
        assert_eq!(redactor().redact(text), text);
    }

    #[test]
    fn places_are_no_secrets() {
        let text = "PWD=/tmp/abc OLDPWD=/root token_file: /run/secrets/token, \"pwd\": \"/srv/a\" \
                    SECRET_PATH=./x";
        assert_eq!(redactor().redact(text), text);
        check(
            "MYSQL_PWD=/x token: /abc PWD=hunter22 password_file=hunter22",
            &expect![
                "MYSQL_PWD=[redacted secret 1] token: [redacted secret 2] PWD=[redacted secret 3] password_file=[redacted secret 3]"
            ],
        );
    }

    fn secrets() -> impl Strategy<Value = (String, String)> {
        prop_oneof![
            "[A-Za-z0-9]{20,30}".prop_map(|s| (format!("ghp_{s}"), format!("ghp_{s}"))),
            "[A-Za-z0-9_-]{16,30}".prop_map(|s| (format!("sk-{s}"), format!("sk-{s}"))),
            "[A-Za-z0-9]{8,20}".prop_map(|s| (s.clone(), format!("password: {s}"))),
            "[A-Za-z0-9!#%+]{8,20}".prop_map(|s| (s.clone(), format!("https://u:{s}@h/"))),
            "[A-Za-z0-9+/]{16,40}".prop_map(|s| (s.clone(), format!("Authorization: Basic {s}"))),
            "[A-Za-z0-9+/=]{20,60}".prop_map(|s| {
                (s.clone(), format!("-----BEGIN PRIVATE KEY-----\n{s}\n-----END PRIVATE KEY-----"))
            }),
        ]
    }

    proptest! {
        #[test]
        fn a_secret_never_survives(
            before in "[ -~\n]{0,40}", (secret, told) in secrets(), after in "[ -~\n]{0,40}",
        ) {
            let text = format!("{before} {told} {after}");
            prop_assert!(!redactor().redact(&text).contains(&secret));
        }

        #[test]
        fn a_clean_text_stays_clean(text in "\\PC{0,200}") {
            let redactor = redactor();
            let once = redactor.redact(&text);
            prop_assert_eq!(redactor.redact(&once), once);
        }
    }
}

//! Commands that are printed, so that a shell reads back what was meant: every word of a person or
//! of a path goes through [`word`].

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

/// What no shell reads as anything but itself, wherever it stands in a word.
const PLAIN: &[u8] = b"%+,-./:@_";

/// One word, quoted where a shell would read it otherwise.
pub(crate) fn word(word: impl AsRef<OsStr>) -> String {
    let word = word.as_ref();
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || PLAIN.contains(byte);
    match word.to_str() {
        Some(text) if !text.is_empty() && text.bytes().all(|byte| is_plain(&byte)) => {
            text.to_owned()
        }
        Some(text) if !text.chars().any(must_be_written_out) => {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
        Some(_) | None => written_out(word),
    }
}

/// Several words, with blanks between.
pub(crate) fn line<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> String {
    let words: Vec<String> = words.into_iter().map(word).collect();
    words.join(" ")
}

/// A control or a mark that reorders a line would not survive the way to the terminal.
fn must_be_written_out(c: char) -> bool {
    c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `$'…'`: printable ASCII as it is, each other byte by its number.
fn written_out(word: &OsStr) -> String {
    let mut text = "$'".to_owned();
    for byte in word.as_bytes() {
        match byte {
            b'\'' | b'\\' => text.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => text.push(char::from(*byte)),
            // Three octal digits end by themselves, whatever follows. Writing to a string cannot fail.
            other => write!(text, "\\{other:03o}").unwrap_or_default(),
        }
    }
    text.push('\'');
    text
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// What bash makes of a printed command.
    fn read_back(words: &[&OsStr]) -> Vec<u8> {
        let script = format!("printf '%s\\0' {}", line(words));
        Command::new("bash").args(["-c", &script]).output().unwrap().stdout
    }

    #[test]
    fn a_shell_reads_back_what_was_meant() {
        let words: [&OsStr; 13] = [
            "agents/ops/agent.yaml".as_ref(),
            "my agent/agent.yaml".as_ref(),
            "it's \"here\"".as_ref(),
            "größe/日本.yaml".as_ref(),
            "".as_ref(),
            "$HOME `id` $(id) \\ !x".as_ref(),
            "~/a".as_ref(),
            "#a".as_ref(),
            "*?[a]{b,c}".as_ref(),
            "a\nb\t'7".as_ref(),
            "a;b|c&d<e>f".as_ref(),
            "\u{202e}gpj.7".as_ref(),
            OsStr::from_bytes(b"latin-\xe9' 1"),
        ];
        let expected: Vec<u8> =
            words.iter().flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
        assert_eq!(read_back(&words), expected, "{}", line(words));
    }

    #[test]
    fn a_plain_word_stays_as_it_is() {
        assert_eq!(word("/tmp/a-b_c.db"), "/tmp/a-b_c.db");
        assert_eq!(word("my agent"), "'my agent'");
    }
}

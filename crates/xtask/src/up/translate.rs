//! Words of a container made true on this machine: paths, addresses and ports.

use std::collections::BTreeSet;
use std::path::PathBuf;

/// What stands for a service's own container.
const OWN: [&str; 3] = ["0.0.0.0", "127.0.0.1", "localhost"];

/// How words of one service are translated.
#[derive(Debug)]
pub(super) struct Translation {
    /// A path inside and where it lies here, longest first.
    mounts: Vec<(String, PathBuf)>,
    /// Names that stand for this machine.
    hosts: Vec<String>,
    ports: BTreeSet<u16>,
    offset: u16,
}

impl Translation {
    pub(super) fn new(
        mut mounts: Vec<(String, PathBuf)>,
        services: impl IntoIterator<Item = String>,
        ports: BTreeSet<u16>,
        offset: u16,
    ) -> Self {
        mounts.sort_by_key(|(inside, _)| std::cmp::Reverse(inside.len()));
        let own = OWN.iter().map(|name| (*name).to_owned());
        Self { mounts, hosts: own.chain(services).collect(), ports, offset }
    }

    /// The port on this machine.
    pub(super) fn port(&self, port: u16) -> u16 {
        if self.ports.contains(&port) { port.saturating_add(self.offset) } else { port }
    }

    /// A word of a command, a variable's value, or a line of a file.
    pub(super) fn word(&self, word: &str) -> String {
        if let Ok(port) = word.parse() {
            return self.port(port).to_string();
        }
        // Nothing is served beyond this machine.
        if word == "0.0.0.0" {
            return "127.0.0.1".to_owned();
        }
        self.addresses(&self.paths(word))
    }

    fn paths(&self, word: &str) -> String {
        for (inside, here) in &self.mounts {
            let Some(at) = word.find(inside.as_str()) else { continue };
            let (before, rest) = word.split_at(at);
            let rest = rest.get(inside.len()..).unwrap_or_default();
            let begins = !before.ends_with(|c: char| c.is_ascii_alphanumeric());
            if begins && (rest.is_empty() || rest.starts_with(['/', '"', ' '])) {
                return format!("{before}{}{rest}", here.display());
            }
        }
        word.to_owned()
    }

    /// `host:port` where both are known.
    fn addresses(&self, word: &str) -> String {
        let mut out = String::new();
        let mut rest = word;
        while let Some(colon) = rest.find(':') {
            let (before, after) = rest.split_at(colon);
            let after = after.get(1..).unwrap_or_default();
            let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let port: Option<u16> = after.get(..digits).and_then(|text| text.parse().ok());
            let host = before.rsplit(|c: char| !is_of_a_name(c)).next().unwrap_or_default();
            let known = port.filter(|port| self.ports.contains(port) && self.is_known(host));
            if let Some(port) = known {
                let translated = format!("127.0.0.1:{}", self.port(port));
                out.push_str(before.strip_suffix(host).unwrap_or(before));
                out.push_str(&translated);
                rest = after.get(digits..).unwrap_or_default();
            } else {
                out.push_str(before);
                out.push(':');
                rest = after;
            }
        }
        out + rest
    }

    fn is_known(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known == host)
    }
}

fn is_of_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '.' || c == '-' || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translation() -> Translation {
        let mounts = vec![
            ("/data".to_owned(), PathBuf::from("/up/volumes/nats")),
            ("/etc/agents".to_owned(), PathBuf::from("/repo/agents")),
        ];
        let services = ["nats", "model"].map(str::to_owned);
        Translation::new(mounts, services, BTreeSet::from([4222, 7079]), 10_000)
    }

    #[test]
    fn words_are_true_on_this_machine() {
        let cases = [
            ("4222", "14222"),
            ("8080", "8080"),
            ("0.0.0.0", "127.0.0.1"),
            ("0.0.0.0:7079", "127.0.0.1:17079"),
            ("--listen=0.0.0.0:7079", "--listen=127.0.0.1:17079"),
            ("nats://nats:4222", "nats://127.0.0.1:14222"),
            ("http://model:7079/v1", "http://127.0.0.1:17079/v1"),
            ("nats://nats:4222,nats://model:7079", "nats://127.0.0.1:14222,nats://127.0.0.1:17079"),
            ("nats://elsewhere:4222", "nats://elsewhere:4222"),
            ("http://model:80/v1", "http://model:80/v1"),
            ("      - targets: [\"model:7079\"]", "      - targets: [\"127.0.0.1:17079\"]"),
            ("/data", "/up/volumes/nats"),
            ("--path=/data/a", "--path=/up/volumes/nats/a"),
            ("/database", "/database"),
            ("/etc/agents/ops/tools.yaml", "/repo/agents/ops/tools.yaml"),
            ("plain", "plain"),
        ];
        for (word, expected) in cases {
            assert_eq!(translation().word(word), expected, "{word}");
        }
    }
}

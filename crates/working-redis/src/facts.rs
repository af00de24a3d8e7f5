//! What the server says of itself.

/// The oldest version of Redis that has the commands that are used.
const OLDEST: (u32, u32) = (6, 2);

/// What `INFO` tells, as far as it matters here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// `redis` or `valkey`.
    pub product: String,
    /// The product's own version; empty if it is not told.
    pub version: String,
    /// The version of Redis it is compatible with: major and minor.
    pub compatible: Option<(u32, u32)>,
    /// What happens when memory is short; `noeviction` refuses writes.
    pub eviction_policy: Option<String>,
    /// The bound of its memory in bytes; zero is none.
    pub memory_limit: Option<u64>,
    /// How many of them are taken.
    pub memory_used: Option<u64>,
    /// Whether each write is logged to its disk.
    pub append_only: Option<bool>,
}

impl Facts {
    /// Reads the answer of `INFO`.
    pub fn read(info: &str) -> Self {
        let field = |name: &str| {
            info.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))
        };
        let compatible = field("redis_version").unwrap_or_default();
        let valkey = field("valkey_version");
        Self {
            product: if valkey.is_some() { "valkey" } else { "redis" }.to_owned(),
            version: valkey.unwrap_or(compatible).to_owned(),
            compatible: major_minor(compatible),
            eviction_policy: field("maxmemory_policy").map(str::to_owned),
            memory_limit: field("maxmemory").and_then(|bytes| bytes.parse().ok()),
            memory_used: field("used_memory").and_then(|bytes| bytes.parse().ok()),
            append_only: field("aof_enabled").map(|flag| flag == "1"),
        }
    }

    /// Whether it certainly lacks commands that are used.
    pub fn is_too_old(&self) -> bool {
        self.compatible.is_some_and(|version| version < OLDEST)
    }
}

fn major_minor(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.').map(str::parse);
    Some((parts.next()?.ok()?, parts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redis_and_valkey_are_told_apart() {
        let redis = "# Server\r\nredis_version:7.0.15\r\nused_memory:7\r\nmaxmemory:1048576\r\n\
                     maxmemory_policy:allkeys-lru\r\naof_enabled:0\r\n";
        let facts = Facts {
            product: "redis".to_owned(),
            version: "7.0.15".to_owned(),
            compatible: Some((7, 0)),
            eviction_policy: Some("allkeys-lru".to_owned()),
            memory_limit: Some(1_048_576),
            memory_used: Some(7),
            append_only: Some(false),
        };
        assert_eq!(Facts::read(redis), facts);
        let valkey =
            Facts::read("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.1.2");
        assert_eq!((&*valkey.product, &*valkey.version), ("valkey", "9.1.2"));
        assert_eq!(valkey.compatible, Some((7, 2)));
    }

    #[test]
    fn what_is_not_told_is_not_made_up() {
        let facts = Facts::read("something else");
        assert_eq!(facts, Facts { product: "redis".to_owned(), ..Facts::default() });
    }
}

//! Every setting of a distributed process. A setting has one name: `nats_user` in the file,
//! `SYSTOLE_NATS_USER` in the environment, `--nats-user` on the command line.

/// One setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Its name in the file.
    pub(crate) name: &'static str,
    /// Its variable.
    pub(crate) variable: &'static str,
    /// What holds without it, as text.
    pub(crate) default: Option<&'static str>,
}

const fn with(name: &'static str, variable: &'static str, default: &'static str) -> Setting {
    Setting { name, variable, default: Some(default) }
}

const fn without(name: &'static str, variable: &'static str) -> Setting {
    Setting { name, variable, default: None }
}

/// All of them; `docs/distributed.md` explains each.
pub(crate) const SETTINGS: &[Setting] = &[
    with("nats", "SYSTOLE_NATS", "nats://127.0.0.1:4222"),
    without("nats_user", "SYSTOLE_NATS_USER"),
    without("nats_password", "SYSTOLE_NATS_PASSWORD"),
    without("nats_token", "SYSTOLE_NATS_TOKEN"),
    without("nats_credentials", "SYSTOLE_NATS_CREDENTIALS"),
    without("nats_ca", "SYSTOLE_NATS_CA"),
    with("nats_tls", "SYSTOLE_NATS_TLS", "false"),
    without("redis", "SYSTOLE_REDIS"),
    without("redis_user", "SYSTOLE_REDIS_USER"),
    without("redis_password", "SYSTOLE_REDIS_PASSWORD"),
    without("redis_ca", "SYSTOLE_REDIS_CA"),
    with("partitions", "SYSTOLE_PARTITIONS", "1"),
    with("replicas", "SYSTOLE_REPLICAS", "1"),
    with("ack_wait_s", "SYSTOLE_ACK_WAIT_S", "6"),
    with("wait_s", "SYSTOLE_WAIT_S", "30"),
    with("grace_s", "SYSTOLE_GRACE_S", "20"),
    without("listen", "SYSTOLE_LISTEN"),
    without("agents", "SYSTOLE_AGENTS"),
    without("model", "SYSTOLE_MODEL"),
    without("base_url", "OPENAI_BASE_URL"),
    without("profile", "SYSTOLE_PROFILE"),
    without("api_key", "OPENAI_API_KEY"),
    with("model_requests_per_min", "SYSTOLE_MODEL_REQUESTS_PER_MIN", "0"),
    with("model_tokens_per_min", "SYSTOLE_MODEL_TOKENS_PER_MIN", "0"),
    with("model_open_requests", "SYSTOLE_MODEL_OPEN_REQUESTS", "0"),
    without("prices", "SYSTOLE_PRICES"),
    with("max_turns", "SYSTOLE_MAX_TURNS", "2048"),
    with("keep_runs", "SYSTOLE_KEEP_RUNS", "50"),
    without("tools", "SYSTOLE_TOOLS"),
    with("slots", "SYSTOLE_SLOTS", "16"),
    without("keys", "SYSTOLE_KEYS"),
    without("monitor", "SYSTOLE_MONITOR"),
];

/// The setting of that name.
pub(crate) fn setting(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// The flag of a setting.
pub(crate) fn flag(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_is_explained_with_its_three_spellings_and_its_default() {
        let page = include_str!("../../../../docs/distributed.md");
        for setting in SETTINGS {
            // A key on the command line would be in every process list.
            let flag = if setting.name == "api_key" {
                String::new()
            } else {
                format!("`{}` ", flag(setting.name))
            };
            let spellings = format!("| `{}` | `{}` | {flag}|", setting.name, setting.variable);
            let line = page.lines().find(|line| line.starts_with(&spellings));
            let line = line.unwrap_or_else(|| panic!("{spellings} is missing in the page"));
            if let Some(default) = setting.default {
                assert!(line.contains(&format!("`{default}`")), "{line} lacks {default}");
            }
        }
    }

    #[test]
    fn variables_follow_from_names_apart_from_those_that_others_know() {
        for setting in SETTINGS.iter().filter(|setting| !setting.variable.starts_with("OPENAI_")) {
            assert_eq!(setting.variable, format!("SYSTOLE_{}", setting.name.to_uppercase()));
        }
    }
}

//! Logs on standard error: text on a terminal, JSON elsewhere. Quiet unless something is wrong.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::arguments::Common;

/// Starts logging as the command line asks; `usual` is what is logged when it does not.
pub(crate) fn start(common: &Common, usual: &str, colours: bool) {
    let filter = EnvFilter::new(filter(common, usual));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr);
    let started = if io::stderr().is_terminal() {
        logs.with_ansi(colours).with_target(false).try_init()
    } else {
        logs.json().flatten_event(true).try_init()
    };
    if let Err(error) = started {
        tracing::debug!(%error, "logging was started before");
    }
}

/// A filter that says something: a word alone is a level, anything else names who is meant.
pub(crate) fn checked(text: &str) -> Result<String, String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let levels = ["off", "error", "warn", "info", "debug", "trace"];
    for part in &parts {
        let is_level = levels.iter().any(|level| part.eq_ignore_ascii_case(level));
        if !is_level && !part.contains(['=', '[']) {
            let known = levels.join(", ");
            return Err(format!("`{part}` is none of {known}; write such as planner=debug"));
        }
    }
    let text = parts.join(",");
    let parsed = EnvFilter::builder().parse(&text);
    parsed.map(|_| text).map_err(|error| format!("{error}; write such as info or planner=debug"))
}

fn filter(common: &Common, usual: &str) -> String {
    match (&common.log, common.verbose) {
        (Some(filter), _) => filter.clone(),
        (None, 0) => usual.to_owned(),
        (None, 1) => "info".to_owned(),
        (None, 2) => "debug,hyper=info,reqwest=info,h2=info".to_owned(),
        (None, _) => "trace,hyper=info,reqwest=info,h2=info".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_would_hide_everything_is_refused() {
        for good in ["info", "WARN", "info,planner=debug", "planner=debug, worker=trace", "off"] {
            assert!(checked(good).is_ok(), "{good}");
        }
        for bad in ["verbose", "inf", "planner=loud", "planner"] {
            assert!(checked(bad).is_err(), "{bad}");
        }
    }
}

//! Logs on standard error: text on a terminal, JSON elsewhere. Quiet unless something is wrong.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;

use crate::arguments::Common;

/// Starts logging as the command line asks; `usual` is what is logged when it does not.
pub(crate) fn start(common: &Common, usual: &str, colours: bool) {
    let filter =
        EnvFilter::try_new(filter(common, usual)).unwrap_or_else(|_| EnvFilter::new("warn"));
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

fn filter(common: &Common, usual: &str) -> String {
    match (&common.log, common.verbose) {
        (Some(filter), _) => filter.clone(),
        (None, 0) => usual.to_owned(),
        (None, 1) => "info".to_owned(),
        (None, 2) => "debug,hyper=info,reqwest=info,h2=info".to_owned(),
        (None, _) => "trace,hyper=info,reqwest=info,h2=info".to_owned(),
    }
}

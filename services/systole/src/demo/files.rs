//! The ops agent as it is in the repository, built in so that the demo works from any folder.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::agent_files::Files;

/// The agent's file.
pub(crate) const AGENT: &str = "agents/ops/agent.yaml";

/// The alert that starts it, in Alertmanager's form.
const ALERT: &str = include_str!("../../../../agents/ops/alert.json");

/// The files of `agents/ops`.
pub(crate) struct BuiltIn {
    /// What the tools' folder stands for.
    pub(crate) folder: PathBuf,
}

impl Files for BuiltIn {
    fn read(&self, path: &Path) -> io::Result<Option<String>> {
        let text = match path.to_str() {
            Some(AGENT) => include_str!("../../../../agents/ops/agent.yaml"),
            Some("agents/ops/tools.yaml") => include_str!("../../../../agents/ops/tools.yaml"),
            Some("agents/ops/rehearsal.yaml") => {
                include_str!("../../../../agents/ops/rehearsal.yaml")
            }
            Some(_) | None => return Ok(None),
        };
        Ok(Some(text.to_owned()))
    }

    fn folder_of(&self, _: &Path) -> io::Result<PathBuf> {
        Ok(self.folder.clone())
    }
}

/// The alert, begun at `since`.
pub(crate) fn alert(since: &str) -> String {
    let parsed: Value = serde_json::from_str(ALERT).unwrap_or_default();
    match parsed.pointer("/alerts/0/startsAt").and_then(Value::as_str) {
        Some(written) => ALERT.replace(written, since),
        None => ALERT.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alert_says_when_it_began() {
        let alert: Value = serde_json::from_str(&alert("2030-01-01T00:00:00Z")).unwrap();
        assert_eq!(alert["alerts"][0]["startsAt"], "2030-01-01T00:00:00Z");
        assert_eq!(alert["commonLabels"]["service"], "checkout");
    }
}

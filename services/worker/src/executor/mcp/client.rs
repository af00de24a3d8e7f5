//! What a server says without being asked.

use std::sync::Arc;

use rmcp::ClientHandler;
use rmcp::model::{ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam};
use rmcp::service::{NotificationContext, RoleClient};
use tokio::sync::watch;

/// Longest word of progress, in characters.
const LONGEST_WORDS: usize = 200;

/// Hears a server. It offers nothing itself: no sampling, no roots, no questions to a user.
#[derive(Clone)]
pub(super) struct Client {
    /// Counts how often the server said that its tools have changed.
    pub(super) changes: Arc<watch::Sender<u64>>,
    /// The newest progress of the call in work.
    pub(super) progress: Arc<watch::Sender<Option<String>>>,
}

impl ClientHandler for Client {
    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let words = words(&progress);
        tracing::debug!(progress = words, "an MCP tool is under way");
        self.progress.send_replace(Some(words));
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.send_modify(|count| *count = count.saturating_add(1));
    }

    fn get_info(&self) -> ClientConfig {
        let own = Implementation::new("systole", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), own)
    }
}

fn words(progress: &ProgressNotificationParam) -> String {
    let of = progress.total.map_or_else(String::new, |total| format!(" of {total}"));
    let said = progress.message.as_deref().unwrap_or_default();
    let said: String = said.chars().filter(|c| !c.is_control()).take(LONGEST_WORDS).collect();
    let mark = if said.is_empty() { "" } else { ": " };
    format!("{}{of}{mark}{said}", progress.progress)
}

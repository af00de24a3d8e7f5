//! What operators hold back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ids::{TenantId, ToolName};
use crate::time::Timestamp;

/// What is held back.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(tag = "kind", content = "name", rename_all = "snake_case")]
pub enum FreezeTarget {
    /// Every irreversible tool.
    All,
    /// The irreversible tools of one tenant's threads.
    Tenant(TenantId),
    /// One tool, whatever it does.
    Tool(ToolName),
}

impl FreezeTarget {
    /// In words.
    pub fn words(&self) -> String {
        match self {
            Self::All => "every irreversible tool".to_owned(),
            Self::Tenant(tenant) => format!("the irreversible tools of tenant {tenant}"),
            Self::Tool(tool) => format!("the tool {tool}"),
        }
    }
}

/// A freeze: what, why, by whom and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Freeze {
    /// What is held back.
    pub target: FreezeTarget,
    /// Why, for people and for the model.
    #[serde(default)]
    pub reason: String,
    /// Who froze it.
    #[serde(default)]
    pub by: String,
    /// When.
    pub at: Timestamp,
}

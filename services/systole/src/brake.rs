//! What operators hold back on a store: one small file for each freeze, in a folder beside the store.
//! A file that is there freezes, whatever is in it; so a freeze holds from the moment its command has
//! answered, in every process, also in those that start later.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use proto::ids::{TenantId, ToolName};
use proto::time::Timestamp;
use proto::tool::Effect;
use serde::{Deserialize, Serialize};
use worker::Brake;

/// What is held back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// Every irreversible tool.
    All,
    /// The irreversible tools of one tenant's threads.
    Tenant(TenantId),
    /// One tool, whatever it does.
    Tool(ToolName),
}

impl Target {
    fn file(&self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Tenant(tenant) => format!("tenant.{tenant}"),
            Self::Tool(tool) => format!("tool.{tool}"),
        }
    }

    fn of_file(name: &str) -> Option<Self> {
        match name.split_once('.') {
            None if name == "all" => Some(Self::All),
            Some(("tenant", tenant)) => TenantId::new(tenant).ok().map(Self::Tenant),
            Some(("tool", tool)) => ToolName::new(tool).ok().map(Self::Tool),
            Some(_) | None => None,
        }
    }

    /// In words.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::All => "every irreversible tool".to_owned(),
            Self::Tenant(tenant) => format!("the irreversible tools of tenant {tenant}"),
            Self::Tool(tool) => format!("the tool {tool}"),
        }
    }
}

/// Who froze it, when and why.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    pub(crate) reason: String,
    pub(crate) by: String,
    pub(crate) at: Timestamp,
}

/// The freezes of one store.
#[derive(Clone, Debug)]
pub(crate) struct Freezes {
    folder: PathBuf,
}

impl Freezes {
    /// Those of a store.
    pub(crate) fn of(store: &Path) -> Self {
        let mut folder = store.as_os_str().to_owned();
        folder.push(".frozen");
        Self { folder: PathBuf::from(folder) }
    }

    /// Freezes; durable when it answers. A second freeze of the same replaces its note.
    pub(crate) fn put(&self, target: &Target, note: &Note) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(target.file());
        let aside = self.folder.join(format!(".{}", std::process::id()));
        let mut file = File::create(&aside)?;
        file.write_all(&serde_json::to_vec(note)?)?;
        file.sync_all()?;
        fs::rename(&aside, &path)?;
        File::open(&self.folder)?.sync_all()
    }

    /// Lets go; answers whether it was frozen.
    pub(crate) fn remove(&self, target: &Target) -> io::Result<bool> {
        match fs::remove_file(self.folder.join(target.file())) {
            Ok(()) => File::open(&self.folder)?.sync_all().map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// All of them.
    pub(crate) fn list(&self) -> io::Result<Vec<(Target, Note)>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut all = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            if let Some(target) = name.to_str().and_then(Target::of_file) {
                let note = self.note(&target);
                all.push((target, note));
            }
        }
        all.sort_by(|(one, _), (other, _)| one.cmp(other));
        Ok(all)
    }

    /// A note that cannot be read does not thaw anything.
    fn note(&self, target: &Target) -> Note {
        let bytes = fs::read(self.folder.join(target.file())).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    /// Whether it is frozen; what cannot be looked at counts as frozen.
    fn is_there(&self, target: &Target) -> bool {
        self.folder.join(target.file()).try_exists().unwrap_or(true)
    }
}

impl Brake for Freezes {
    fn holds(&self, tenant: &TenantId, tool: &ToolName, effect: Effect) -> Option<String> {
        if !self.folder.try_exists().unwrap_or(true) {
            return None;
        }
        let mut targets = vec![Target::Tool(tool.clone())];
        if effect == Effect::Irreversible {
            targets.extend([Target::All, Target::Tenant(tenant.clone())]);
        }
        let target = targets.into_iter().find(|target| self.is_there(target))?;
        let reason = self.note(&target).reason;
        let because = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        Some(format!("Frozen is {}{because}.", target.words()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(freezes: &Freezes, tenant: &str, tool: &str, effect: Effect) -> bool {
        let (tenant, tool) = (TenantId::new(tenant).unwrap(), ToolName::new(tool).unwrap());
        freezes.holds(&tenant, &tool, effect).is_some()
    }

    #[test]
    fn all_and_tenants_hold_what_is_irreversible_and_a_tool_holds_itself() {
        let folder = tempfile::tempdir().unwrap();
        let freezes = Freezes::of(&folder.path().join("a.db"));
        assert_eq!(freezes.list().unwrap(), []);
        assert!(!held(&freezes, "t", "pay", Effect::Irreversible));
        let tool = Target::Tool(ToolName::new("look").unwrap());
        let tenant = Target::Tenant(TenantId::new("t").unwrap());
        for (target, expected) in [
            (Target::All, [true, true, false, false]),
            (tenant, [true, false, false, false]),
            (tool, [false, false, false, true]),
        ] {
            freezes.put(&target, &Note::default()).unwrap();
            let found = [
                held(&freezes, "t", "pay", Effect::Irreversible),
                held(&freezes, "u", "pay", Effect::Irreversible),
                held(&freezes, "t", "pay", Effect::Checkable),
                held(&freezes, "t", "look", Effect::ReadOnly),
            ];
            assert_eq!(found, expected, "{target:?}");
            assert_eq!(freezes.list().unwrap().len(), 1);
            assert!(freezes.remove(&target).unwrap());
            assert!(!freezes.remove(&target).unwrap());
        }
    }

    #[test]
    fn a_note_that_cannot_be_read_freezes_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let freezes = Freezes::of(&folder.path().join("a.db"));
        freezes.put(&Target::All, &Note::default()).unwrap();
        fs::write(folder.path().join("a.db.frozen/all"), "").unwrap();
        assert!(held(&freezes, "t", "pay", Effect::Irreversible));
        assert_eq!(freezes.list().unwrap(), [(Target::All, Note::default())]);
    }
}

//! Where things lie: the workspace as Cargo and Git see it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde::Deserialize;

use crate::process::{self, Program};

/// The checkout that a chore works on.
#[derive(Debug, Clone)]
pub struct House {
    /// The folder of the root manifest.
    pub root: PathBuf,
    /// Cargo's target folder.
    pub target: PathBuf,
    /// Members of the workspace, by name.
    pub members: Vec<Member>,
    /// True where nobody watches and a skipped check would be a lie.
    pub ci: bool,
}

/// A member of the workspace with its direct dependencies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The package's name.
    pub name: String,
    /// Its manifest, relative to the root.
    pub manifest: String,
    /// Direct dependencies.
    pub dependencies: Vec<Dependency>,
}

/// One entry of a dependency table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Dependency {
    /// The package's name, whatever it is renamed to.
    pub name: String,
    /// `None` for `[dependencies]`, else `dev` or `build`.
    pub kind: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    workspace_root: PathBuf,
    target_directory: PathBuf,
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

impl House {
    /// Asks Cargo about the workspace around the current folder.
    pub fn find() -> Result<Self> {
        let text = Program::cargo(["metadata", "--no-deps", "--format-version", "1"]).read()?;
        let metadata: Metadata =
            serde_json::from_str(&text).context("cargo metadata printed something else")?;
        let root = metadata.workspace_root;
        let members = metadata.packages.into_iter().map(|package| member(&root, package)).collect();
        let ci = process::setting("CI").is_some_and(|value| value == "true");
        Ok(Self { root, target: metadata.target_directory, members, ci })
    }

    /// The files that belong to the project, relative to the root, sorted: what Git tracks or
    /// would track. Without Git, everything outside build and hidden folders.
    pub fn files(&self) -> Result<Vec<String>> {
        let args = ["ls-files", "--cached", "--others", "--exclude-standard"];
        let listed = match Program::new("git").args(args).dir(&self.root).read() {
            Ok(text) => text.lines().map(str::to_owned).collect(),
            Err(_no_git) => walk(&self.root)?,
        };
        Ok(listed.into_iter().filter(|path| self.root.join(path).is_file()).collect())
    }

    /// A folder of ours inside the target folder.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.target.join(name)
    }
}

fn member(root: &Path, package: Package) -> Member {
    let manifest = package.manifest_path.strip_prefix(root).unwrap_or(&package.manifest_path);
    Member {
        name: package.name,
        manifest: manifest.to_string_lossy().into_owned(),
        dependencies: package.dependencies,
    }
}

/// Every file below `root`, relative to it; build folders and hidden ones are left out.
pub fn walk(root: &Path) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
            let path = entry?.path();
            if path.is_dir() {
                if !is_left_out(&path) {
                    folders.push(path);
                }
            } else if let Ok(inside) = path.strip_prefix(root) {
                files.insert(inside.to_string_lossy().into_owned());
            }
        }
    }
    Ok(files)
}

fn is_left_out(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let is_hidden = name.starts_with('.') && name != ".cargo" && name != ".config" && name != ".ci";
    is_hidden || name == "target" || name.starts_with("target-")
}

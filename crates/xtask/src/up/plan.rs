//! From the file to commands: what is started, in which order, with what. Nothing is touched here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::compose::{Compose, Service, duration};
use super::translate::Translation;

/// A command with its surroundings.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) service: String,
    /// Without the tag.
    pub(super) image: String,
    pub(super) args: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    pub(super) health: Health,
    pub(super) grace: Duration,
    pub(super) ports: Vec<u16>,
}

/// How it is asked whether it is well.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Health {
    pub(super) words: Vec<String>,
    pub(super) interval: Duration,
    pub(super) timeout: Duration,
    pub(super) retries: u32,
}

/// A file whose addresses and paths are translated on its way.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Copy {
    pub(super) from: PathBuf,
    pub(super) to: PathBuf,
}

/// Everything.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) levels: Vec<Vec<Start>>,
    /// Folders that must be there.
    pub(super) folders: Vec<PathBuf>,
    /// Files to copy, each with its service's translation.
    pub(super) copies: Vec<(Copy, Translation)>,
}

/// Where things lie here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Places<'a> {
    /// The folder of the file.
    pub(super) root: &'a Path,
    /// The folder of `up`.
    pub(super) up: &'a Path,
    /// Added to each port.
    pub(super) offset: u16,
}

/// Makes the plan.
pub(super) fn plan(compose: &Compose, places: Places<'_>) -> Result<Plan> {
    let ports = compose.ports()?;
    if let Some(highest) =
        ports.keys().max().filter(|port| port.checked_add(places.offset).is_none())
    {
        bail!("--port-offset {} puts port {highest} beyond 65535", places.offset);
    }
    let mut plan = Plan { levels: Vec::new(), folders: Vec::new(), copies: Vec::new() };
    for names in compose.levels()? {
        let mut level = Vec::new();
        for name in names {
            let service = compose.services.get(name).context("a service")?;
            let mounts = mounts(compose, name, service, places, &mut plan)?;
            let translation = || {
                let services = compose.services.keys().cloned();
                let known = ports.keys().copied().collect();
                Translation::new(mounts.1.clone(), services, known, places.offset)
            };
            plan.copies.extend(mounts.0.into_iter().map(|copy| (copy, translation())));
            let own = ports.iter().filter(|(_, owner)| **owner == name).map(|(port, _)| *port);
            level.push(start(name, service, &translation(), own.collect())?);
        }
        plan.levels.push(level);
    }
    Ok(plan)
}

fn start(name: &str, service: &Service, here: &Translation, ports: Vec<u16>) -> Result<Start> {
    let words = |words: &[String]| words.iter().map(|word| here.word(word)).collect();
    let check = &service.healthcheck;
    let Some(("CMD", test)) = check.test.split_first().map(|(first, rest)| (first.as_str(), rest))
    else {
        bail!("docker-compose.yml: {name}: a health check begins with \"CMD\"");
    };
    let environment =
        service.environment.iter().map(|(name, value)| (name.clone(), here.word(value)));
    Ok(Start {
        service: name.to_owned(),
        image: service.image.split(':').next().unwrap_or_default().to_owned(),
        args: words(&service.command),
        environment: environment.collect(),
        health: Health {
            words: words(test),
            interval: duration(&check.interval)?,
            timeout: duration(&check.timeout)?,
            retries: check.retries,
        },
        grace: service.grace()?,
        ports: ports.into_iter().map(|port| here.port(port)).collect(),
    })
}

type Mounts = (Vec<Copy>, Vec<(String, PathBuf)>);

/// Folders of the checkout are used where they lie, files are copied, volumes are folders of `up`.
fn mounts(
    compose: &Compose,
    name: &str,
    service: &Service,
    places: Places<'_>,
    plan: &mut Plan,
) -> Result<Mounts> {
    let (mut copies, mut mounts) = (Vec::new(), Vec::new());
    for volume in &service.volumes {
        let mut parts = volume.split(':');
        let (Some(source), Some(inside)) = (parts.next(), parts.next()) else {
            bail!("docker-compose.yml: {name}: `{volume}` is no volume `source:target`");
        };
        let here = if let Some(path) = source.strip_prefix("./") {
            let from = places.root.join(path);
            if from.is_dir() {
                from
            } else if from.is_file() {
                let to =
                    places.up.join("files").join(name).join(from.file_name().unwrap_or_default());
                copies.push(Copy { from, to: to.clone() });
                to
            } else {
                bail!("docker-compose.yml: {name}: there is no {path}");
            }
        } else if compose.volumes.contains_key(source) {
            let folder = places.up.join("volumes").join(source);
            plan.folders.push(folder.clone());
            folder
        } else {
            bail!("docker-compose.yml: {name}: no volume is named `{source}`");
        };
        mounts.push((inside.to_owned(), here));
    }
    Ok((copies, mounts))
}

#[cfg(test)]
mod tests {
    use super::super::compose::tests::SMALL;
    use super::*;

    #[test]
    fn a_service_becomes_a_command_of_this_machine() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("nats.conf"), "").unwrap();
        let compose = Compose::parse(SMALL).unwrap();
        let places = Places { root: root.path(), up: Path::new("/up"), offset: 100 };
        let plan = plan(&compose, places).unwrap();
        let bus = &plan.levels[0][0];
        assert_eq!(bus.args, ["--port", "4322", "--config", "/up/files/bus/nats.conf"]);
        assert_eq!(bus.environment["STORE"], "/up/volumes/store");
        assert_eq!((bus.image.as_str(), bus.ports.as_slice()), ("nats", [4322].as_slice()));
        assert_eq!(bus.health.timeout, Duration::from_millis(500));
        let planner = &plan.levels[1][0];
        assert_eq!(planner.args, ["planner", "--listen=127.0.0.1:7171"]);
        assert_eq!(planner.environment["SYSTOLE_NATS"], "nats://127.0.0.1:4322");
        assert_eq!(plan.folders, [PathBuf::from("/up/volumes/store")]);
        assert_eq!(plan.copies[0].0.from, root.path().join("nats.conf"));
    }

    #[test]
    fn what_is_not_there_is_named() {
        let compose = Compose::parse(SMALL).unwrap();
        let nowhere = Places { root: Path::new("/nowhere"), up: Path::new("/up"), offset: 0 };
        assert!(plan(&compose, nowhere).unwrap_err().to_string().contains("no nats.conf"));
        let far = Places { root: Path::new("/nowhere"), up: Path::new("/up"), offset: 60_000 };
        assert!(plan(&compose, far).unwrap_err().to_string().contains("beyond 65535"));
        let shell = SMALL.replace("[\"CMD\", \"true\"]", "[\"CMD-SHELL\", \"true\"]");
        let shell = Compose::parse(&shell.replace("\"./nats.conf:/etc/nats/nats.conf:ro\", ", ""));
        let error = plan(&shell.unwrap(), nowhere).unwrap_err();
        assert!(error.to_string().contains("begins with \"CMD\""), "{error}");
    }
}

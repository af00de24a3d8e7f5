//! The agents of a `dev` as their files are at one moment, each with the model that answers for it.

use std::path::PathBuf;

use super::changes::{Noted, Seen};
use super::find;
use crate::agent_files::{LoadedAgent, with_choice};
use crate::arguments::{Dev, ModelChoice};
use crate::commands::Context;
use crate::failure::Failure;
use crate::staff::{Hands, Member, Staff};
use crate::wiring::{ChosenModel, choose_model};

/// Agents that fit together.
pub(super) struct Crew {
    pub(super) paths: Vec<PathBuf>,
    pub(super) agents: Vec<LoadedAgent>,
    models: Vec<ChosenModel>,
}

impl Crew {
    /// Reads all files anew; answers also with what was looked at, whatever came of it. A file of
    /// `known` that is still there is an agent, even if it no longer looks like one.
    pub(super) fn read(
        context: &Context,
        dev: &Dev,
        known: &[PathBuf],
    ) -> (Result<Self, Failure>, Seen) {
        let noted = Noted::default();
        let crew = Self::read_noted(context, dev, known, &noted);
        for folder in find::folders(&dev.agents) {
            noted.folder(&folder);
        }
        (crew, noted.seen())
    }

    fn read_noted(
        context: &Context,
        dev: &Dev,
        known: &[PathBuf],
        noted: &Noted,
    ) -> Result<Self, Failure> {
        let mut paths = match find::files(&dev.agents) {
            Ok(paths) => paths,
            Err(failure) if !known.iter().any(|path| path.is_file()) => return Err(failure),
            Err(_) => Vec::new(),
        };
        let is_lost = |path: &&PathBuf| !paths.contains(path) && path.is_file();
        let lost: Vec<PathBuf> = known.iter().filter(is_lost).cloned().collect();
        paths.extend(lost);
        let agents = find::agents(noted, &paths, &context.environment)?;
        let chosen = agents.into_iter().map(|agent| chosen(agent, &dev.model));
        let agents: Vec<LoadedAgent> = chosen.collect::<Result<_, Failure>>()?;
        let models: Result<Vec<ChosenModel>, Failure> =
            agents.iter().map(|agent| choose_model(agent, &dev.model)).collect();
        let crew = Self { paths, models: models?, agents };
        crew.staff(context, dev).tools()?;
        Ok(crew)
    }

    /// They, at work.
    pub(super) fn staff<'a>(&'a self, context: &'a Context, dev: &Dev) -> Staff<'a> {
        let members = self.agents.iter().zip(&self.models);
        let members = members.map(|(loaded, model)| Member { loaded, model }).collect();
        Staff { members, environment: &context.environment, hands: Hands::of(dev.dry_run) }
    }
}

fn chosen(mut agent: LoadedAgent, choice: &ModelChoice) -> Result<LoadedAgent, Failure> {
    agent.agent = with_choice(agent.agent, choice)?;
    Ok(agent)
}

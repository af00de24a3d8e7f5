//! The command line: which rules, which worker, and what is printed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use futures_util::{StreamExt as _, stream};
use tokio::time::timeout;

use crate::rules::{self, Rule, Scene};
use crate::server::Server;
use crate::stage::Stage;
use crate::worker::Subject;

/// The longest that one rule may take.
const LONGEST: Duration = Duration::from_mins(1);
/// Scenes that are played at once; each has a server and workers of its own.
const SCENES: usize = 6;

#[derive(Debug, Parser)]
#[command(
    name = "worker-conformance",
    about = "Drives a worker through the rules of proto/PROTOCOL.md",
    disable_version_flag = true
)]
struct Cli {
    /// Only rules whose id holds one of these, separated by commas
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
    /// Names the rules and what they say
    #[arg(long)]
    list: bool,
    /// The command starts a worker that breaks the rule which is added to it as a last word: says of
    /// each rule whether that is found
    #[arg(long)]
    wrong: bool,
    /// The NATS server to start
    #[arg(long, env = "SYSTOLE_NATS_SERVER", default_value = "nats-server")]
    nats_server: PathBuf,
    /// What starts the worker
    #[arg(last = true)]
    command: Vec<String>,
}

/// Runs the rules and says how many failed.
pub(crate) fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let done = runtime.map_err(Into::into).and_then(|runtime| runtime.block_on(run(cli)));
    match done {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            tell(&format!("worker-conformance: {error:#}"));
            ExitCode::from(2)
        }
    }
}

async fn run(cli: Cli) -> Result<usize> {
    let wanted = |rule: &&Rule| {
        cli.only.is_empty() || cli.only.iter().any(|part| rule.id.contains(part.as_str()))
    };
    let rules: Vec<&'static Rule> = rules::ALL.iter().filter(wanted).collect();
    if cli.list {
        for rule in &rules {
            tell(&format!("{:<28} {}", rule.id, rule.says));
        }
        return Ok(0);
    }
    if rules.is_empty() {
        bail!("no rule has that in its id; --list names them");
    }
    let subject = Subject::new(&cli.command)?;
    if cli.wrong {
        return hunt(&cli.nats_server, &subject, rules).await;
    }
    let scenes = scenes(rules);
    let played = scenes.into_iter().map(|scene| play(&cli.nats_server, &subject, scene));
    let mut played = stream::iter(played).buffer_unordered(SCENES);
    let (mut passed, mut failed) = (0_usize, 0_usize);
    while let Some(verdicts) = played.next().await {
        for (rule, verdict) in verdicts? {
            match verdict {
                Ok(()) => {
                    passed = passed.saturating_add(1);
                    tell(&format!("ok     {:<28} {}", rule.id, rule.says));
                }
                Err(error) => {
                    failed = failed.saturating_add(1);
                    tell(&format!("FAILED {:<28} {}\n       {error:#}", rule.id, rule.says));
                }
            }
        }
    }
    tell(&format!("{passed} passed, {failed} failed"));
    Ok(failed)
}

/// Each rule with a worker that breaks it; answers with the number of those that were not found.
async fn hunt(program: &Path, subject: &Subject, rules: Vec<&'static Rule>) -> Result<usize> {
    let hunted = rules.into_iter().map(|rule| async move {
        let played = play(program, &subject.with(rule.id), vec![rule]).await;
        let words = played.map(|verdicts| {
            let mut broken = verdicts.into_iter().filter_map(|(_, verdict)| verdict.err());
            broken.next().map(|error| format!("{error:#}"))
        });
        (rule, words)
    });
    let mut hunted = stream::iter(hunted).buffer_unordered(SCENES);
    let (mut found, mut missed) = (0_usize, 0_usize);
    while let Some((rule, words)) = hunted.next().await {
        // A worker that does not even start proves nothing about its rule.
        let words = words.with_context(|| format!("the worker that breaks {}", rule.id))?;
        if let Some(words) = words {
            found = found.saturating_add(1);
            tell(&format!("found  {:<28} {words}", rule.id));
        } else {
            missed = missed.saturating_add(1);
            tell(&format!("MISSED {:<28} {}", rule.id, rule.says));
        }
    }
    tell(&format!("{found} wrong workers found, {missed} missed"));
    Ok(missed)
}

/// Rules that share a worker, and those that need one of their own.
fn scenes(rules: Vec<&'static Rule>) -> Vec<Vec<&'static Rule>> {
    let (shared, own): (Vec<_>, Vec<_>) =
        rules.into_iter().partition(|rule| rule.scene == Scene::Shared);
    let (last, first): (Vec<_>, Vec<_>) =
        own.into_iter().partition(|rule| rule.scene == Scene::Last);
    let shared = [shared, last].concat();
    let shared = (!shared.is_empty()).then_some(shared);
    shared.into_iter().chain(first.into_iter().map(|rule| vec![rule])).collect()
}

type Verdicts = Vec<(&'static Rule, Result<()>)>;

/// Plays the rules of one scene: the shared ones side by side, then those that upset the others.
async fn play(program: &Path, subject: &Subject, rules: Vec<&'static Rule>) -> Result<Verdicts> {
    let server = Server::start(program).await?;
    let stage = Stage::open(server, subject).await?;
    let (last, first): (Vec<_>, Vec<_>) =
        rules.into_iter().partition(|rule| rule.scene == Scene::Last);
    let acts = async {
        let needs_worker = first.iter().chain(&last).any(|rule| rule.scene != Scene::Bare);
        if needs_worker {
            stage.begin().await.context("the worker does not offer the tools")?;
        }
        let mut verdicts: Verdicts = stream::iter(first.iter().map(|rule| judge(&stage, rule)))
            .buffer_unordered(64)
            .collect()
            .await;
        for rule in last {
            verdicts.push(judge(&stage, rule).await);
        }
        Ok(verdicts)
    };
    tokio::select! {
        biased;
        () = stage.watch() => bail!("the connection to the server ended"),
        verdicts = acts => verdicts,
    }
}

async fn judge(stage: &Stage, rule: &'static Rule) -> (&'static Rule, Result<()>) {
    let verdict = match timeout(LONGEST, (rule.check)(stage)).await {
        Ok(verdict) => verdict,
        Err(_) => Err(anyhow::anyhow!("it was not over after {} s", LONGEST.as_secs())),
    };
    (rule, verdict)
}

/// A line for whoever reads; nobody may.
fn tell(line: &str) {
    writeln!(io::stdout(), "{line}").unwrap_or_default();
}

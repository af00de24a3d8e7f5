//! `run`, and which model answers.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use proto::agent::Profile;
use proto::ids::ToolName;

use crate::settings::Environment;

/// `systole run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  systole run agents/ops/agent.yaml \"The checkout service answers 503.\"\n  systole run agents/ops/agent.yaml - < alert.json\n  systole run agents/ops/agent.yaml --approve restart_service \"…\"\n  systole run agents/ops/agent.yaml --dry-run \"…\"      # nothing irreversible starts\n  systole run agents/ops/agent.yaml                    # goes on with its unfinished run"
)]
pub(crate) struct Run {
    /// The agent's file.
    pub(crate) agent: PathBuf,
    /// What to do, in your words; `-` reads standard input. Without it the agent's unfinished run
    /// goes on.
    pub(crate) text: Option<String>,
    /// Goes on with this thread: its id, the end of one, or `last`.
    #[arg(long, value_name = "ID")]
    pub(crate) thread: Option<String>,
    /// Begins a new thread even if an unfinished one began with the same text.
    #[arg(long, conflicts_with = "thread")]
    pub(crate) new: bool,
    /// Approves every call of this tool; may be given several times.
    #[arg(long, value_name = "TOOL")]
    pub(crate) approve: Vec<ToolName>,
    /// How hard the task is, 1 to 5; sets the turn limit.
    #[arg(long, value_name = "1-5", value_parser = clap::value_parser!(u32).range(1..=5))]
    pub(crate) complexity: Option<u32>,
    /// Prints one event per line, as JSON; the last one is `run_finished`.
    #[arg(long)]
    pub(crate) json: bool,
    /// Writes the run, once it is answered, as a rehearsal with a case; secrets are replaced.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Tools that must not happen twice only say what they would do; nobody is asked to approve
    /// them.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Which model answers.
    #[command(flatten)]
    pub(crate) model: ModelChoice,
}

/// Which model answers.
#[derive(Clone, Debug, Args)]
pub(crate) struct ModelChoice {
    /// The model to ask for, in place of the one in the agent's file.
    #[arg(long, env = "SYSTOLE_MODEL", value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The key of an OpenAI-compatible endpoint. Without one the agent's rehearsal answers.
    #[arg(long, env = "OPENAI_API_KEY", value_name = "KEY", hide_env_values = true, hide = true)]
    pub(crate) api_key: Option<String>,
    /// The endpoint, such as `http://localhost:11434/v1`.
    #[arg(long, env = "OPENAI_BASE_URL", value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// What the endpoint accepts: `openai`, `mistral`, `anthropic-compatible`, `gemini-compatible`,
    /// `llama.cpp`, `ollama` or `vllm`. Without it the agent's file says so, or its address.
    #[arg(long, env = "SYSTOLE_PROFILE", value_name = "NAME", value_parser = profile_name, hide_short_help = true)]
    pub(crate) profile: Option<String>,
    /// A file with what models cost: `model: { input: 0.15, output: 0.60 }`, US dollars per million
    /// tokens. The agent's own file wins over it.
    #[arg(long, env = "SYSTOLE_PRICES", value_name = "FILE", hide_short_help = true)]
    pub(crate) prices: Option<PathBuf>,
    /// Lets the agent's rehearsal answer, with or without a key.
    #[arg(long)]
    pub(crate) rehearsed: bool,
    /// How fast a rehearsal speaks: 1 as written, 0 without pauses.
    #[arg(
        long,
        env = "SYSTOLE_REHEARSAL_PACE",
        value_name = "FACTOR",
        default_value_t = 1.0,
        value_parser = pace,
        hide = true
    )]
    pub(crate) pace: f64,
}

impl Run {
    /// The words that go on the same way, without thread and text. Never a key.
    pub(crate) fn again(&self, environment: &Environment) -> Vec<OsString> {
        let mut words: Vec<OsString> = vec!["run".into(), self.agent.clone().into()];
        for tool in &self.approve {
            words.extend(["--approve".into(), tool.as_str().into()]);
        }
        if let Some(complexity) = self.complexity {
            words.extend(["--complexity".into(), complexity.to_string().into()]);
        }
        words.extend(self.json.then(|| "--json".into()));
        words.extend(self.dry_run.then(|| "--dry-run".into()));
        words.extend(self.model.again(environment));
        words
    }
}

impl ModelChoice {
    /// The model to ask for; an empty word is none.
    pub(crate) fn model(&self) -> Option<&str> {
        filled(self.model.as_ref())
    }

    /// The key; an empty one is none.
    pub(crate) fn api_key(&self) -> Option<&str> {
        filled(self.api_key.as_ref())
    }

    /// The endpoint; an empty one is none.
    pub(crate) fn base_url(&self) -> Option<&str> {
        filled(self.base_url.as_ref())
    }

    /// What the endpoint accepts; an empty word says nothing.
    pub(crate) fn profile(&self) -> Option<Profile> {
        filled(self.profile.as_ref()).and_then(|name| name.parse().ok())
    }

    /// The flags that choose the same model where the same variables are set. Never a key, and no
    /// address that has one in it.
    pub(crate) fn again(&self, environment: &Environment) -> Vec<OsString> {
        let mut words: Vec<OsString> = Vec::new();
        let mut flag = |name: &str, variable: &str, value: Option<&str>| {
            let set = environment.text(variable);
            if let Some(value) = value.filter(|value| set.as_deref() != Some(*value)) {
                words.extend([name.into(), value.into()]);
            }
        };
        flag("--model", "SYSTOLE_MODEL", self.model());
        let may_tell = |url: &&str| !url.contains(['@', '?']);
        flag("--base-url", "OPENAI_BASE_URL", self.base_url().filter(may_tell));
        flag("--profile", "SYSTOLE_PROFILE", filled(self.profile.as_ref()));
        let prices = self.prices.as_ref().map(|path| path.display().to_string());
        flag("--prices", "SYSTOLE_PRICES", prices.as_deref());
        let is_usual = self.pace.to_bits() == 1.0_f64.to_bits();
        let pace = self.pace.to_string();
        flag("--pace", "SYSTOLE_REHEARSAL_PACE", (!is_usual).then_some(pace.as_str()));
        words.extend(self.rehearsed.then(|| "--rehearsed".into()));
        words
    }
}

fn filled(value: Option<&String>) -> Option<&str> {
    value.map(|value| value.trim()).filter(|value| !value.is_empty())
}

/// The name of a profile, or nothing.
fn profile_name(text: &str) -> Result<String, String> {
    let name = text.trim();
    if name.is_empty() {
        return Ok(String::new());
    }
    name.parse::<Profile>().map(|profile| profile.to_string()).map_err(|error| error.to_string())
}

/// A pause cannot be negative.
pub(super) fn pace(text: &str) -> Result<f64, String> {
    let pace = text.parse::<f64>().ok().filter(|pace| pace.is_finite() && *pace >= 0.0);
    pace.ok_or_else(|| "write a number from 0 (no pauses), such as 0.5".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use proto::agent::Profile;

    use crate::arguments::{Arguments, Command};
    use crate::settings::Environment;
    use crate::shell;

    fn again(line: &[&str], environment: &Environment) -> String {
        let words = ["systole", "run", "my agent.yaml"].iter().chain(line);
        let Command::Run(run) = Arguments::try_parse_from(words).unwrap().command else { panic!() };
        shell::line(run.again(environment))
    }

    #[test]
    fn what_goes_on_the_same_way_is_printed_and_never_a_key() {
        let plain = Environment::default();
        assert_eq!(again(&["go", "--new"], &plain), "run 'my agent.yaml'");
        let all = [
            "go",
            "--approve",
            "pay",
            "--approve",
            "call",
            "--complexity",
            "3",
            "--json",
            "--dry-run",
            "--model",
            "a b",
            "--base-url",
            "http://h/v1",
            "--profile",
            "llama.cpp",
            "--rehearsed",
            "--pace",
            "0",
            "--api-key",
            "sk-secret",
        ];
        assert_eq!(
            again(&all, &plain),
            "run 'my agent.yaml' --approve pay --approve call --complexity 3 --json --dry-run --model \
             'a b' --base-url http://h/v1 --profile llama.cpp --pace 0 --rehearsed"
        );
        assert_eq!(again(&["--base-url", "https://me:secret@h/v1"], &plain), "run 'my agent.yaml'");
    }

    #[test]
    fn what_a_variable_says_needs_no_flag() {
        let set = Environment::default().with("SYSTOLE_MODEL", "m");
        assert_eq!(again(&["--model", "m"], &set), "run 'my agent.yaml'");
        assert_eq!(again(&["--model", "n"], &set), "run 'my agent.yaml' --model n");
    }

    #[test]
    fn a_profile_has_one_of_seven_names_and_an_empty_word_is_none() {
        let parse = |profile: &str| {
            let words = ["systole", "run", "a.yaml", "--profile", profile];
            let parsed = Arguments::try_parse_from(words).map_err(|error| error.to_string());
            let Command::Run(run) = parsed?.command else { panic!() };
            Ok::<_, String>(run.model.profile())
        };
        assert_eq!(parse("llama.cpp"), Ok(Some(Profile::LlamaCpp)));
        assert_eq!(parse(""), Ok(None));
        assert!(parse("gpt").unwrap_err().contains("gemini-compatible"));
    }

    #[test]
    fn a_pause_cannot_be_negative() {
        for pace in ["-1", "nan", "inf", "fast"] {
            let flag = format!("--pace={pace}");
            let words = ["systole", "run", "a.yaml", flag.as_str()];
            assert!(Arguments::try_parse_from(words).is_err(), "{pace}");
        }
    }
}

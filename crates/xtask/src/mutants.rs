//! Known bugs, planted one at a time: a simulation that lets one live would let a real one live.
//!
//! `crates/simulation/mutants.json` lists them. Each replaces one text by another that asks at run
//! time whether `SYSTOLE_MUTANT` names it, so all of them share one build.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};
use serde::Deserialize;

use crate::house::{House, walk};
use crate::process::Program;
use crate::{say, simulate};

const LIST: &str = "crates/simulation/mutants.json";
const SWITCH: &str = "SYSTOLE_MUTANT";
/// Worlds that must be clean when no mutant is switched on.
const CLEAN_SEEDS: u64 = 200;
/// Worlds within which each mutant has to be found.
const SEEDS: u64 = 1_000;
/// The simulation's exit code for a broken invariant.
const VIOLATED: i32 = 3;

/// A known bug.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// What `SYSTOLE_MUTANT` is set to.
    pub name: String,
    /// The file to change, relative to the root.
    pub file: String,
    /// The text to replace; occurs exactly once.
    pub find: String,
    /// Its replacement, which contains the run-time switch.
    pub replace: String,
    /// What is broken, in words.
    pub note: String,
}

/// Builds a copy with every mutant in it and fails unless the simulation finds each one.
pub fn hunt(house: &House) -> Result<()> {
    let list = fs::read_to_string(house.root.join(LIST)).with_context(|| LIST.to_owned())?;
    let mutants: Vec<Mutant> = serde_json::from_str(&list).with_context(|| LIST.to_owned())?;
    ensure!(!mutants.is_empty(), "{LIST} is empty");
    let copy = house.scratch("mutants/src");
    lay_copy(house, &copy, &mutants)?;
    let binary = simulate::build_elsewhere(&copy, &house.scratch("mutants/target"))?;
    say(&format!("$ simulation --seeds {CLEAN_SEEDS}   (no mutant)"));
    Program::new(&binary).args(["--seeds", &CLEAN_SEEDS.to_string()]).dir(&copy).read()?;
    let hunted = mutants.iter().map(|mutant| hunt_one(&binary, &copy, mutant));
    let verdicts = hunted.collect::<Result<Vec<_>>>()?;
    report(&mutants, &verdicts)
}

/// What the simulation said about a mutant; `None` if the mutant lived.
fn hunt_one(binary: &Path, copy: &Path, mutant: &Mutant) -> Result<Option<String>> {
    let program = Program::new(binary).args(["--seeds", &SEEDS.to_string()]).dir(copy);
    let output = program.env(SWITCH, &mutant.name).output()?;
    let said =
        [output.stdout, output.stderr].map(|part| String::from_utf8_lossy(&part).into_owned());
    match output.status.code() {
        Some(0) => Ok(None),
        Some(VIOLATED) => Ok(Some(finding(&said.concat()))),
        _ => bail!(
            "mutant {}: the simulation ended with {}: {}",
            mutant.name,
            output.status,
            said.concat()
        ),
    }
}

/// The line that names the invariant and the seed.
fn finding(said: &str) -> String {
    let mut lines = said.lines().filter(|line| !line.trim().is_empty());
    let named = lines.clone().find(|line| line.contains("violated"));
    named.or_else(|| lines.next()).unwrap_or("found, and said nothing").trim().to_owned()
}

fn report(mutants: &[Mutant], verdicts: &[Option<String>]) -> Result<()> {
    let mut survivors = Vec::new();
    for (mutant, verdict) in mutants.iter().zip(verdicts) {
        let found = verdict.as_deref().unwrap_or("SURVIVED");
        say(&format!("{:<32} {found}", mutant.name));
        if verdict.is_none() {
            survivors.push(format!("{} ({})", mutant.name, mutant.note));
        }
    }
    ensure!(survivors.is_empty(), "not found within {SEEDS} seeds: {}", survivors.join(", "));
    say(&format!("simulate: each of {} mutants was found", mutants.len()));
    Ok(())
}

/// Brings the copy to the state "workspace plus mutants", touching only what differs, so that a
/// second hunt builds little.
fn lay_copy(house: &House, copy: &Path, mutants: &[Mutant]) -> Result<()> {
    fs::create_dir_all(copy).with_context(|| copy.display().to_string())?;
    let files = house.files()?;
    for stale in walk(copy)?.iter().filter(|path| !files.contains(path)) {
        fs::remove_file(copy.join(stale)).with_context(|| stale.clone())?;
    }
    for mutant in mutants {
        ensure!(files.contains(&mutant.file), "mutant {}: no file {}", mutant.name, mutant.file);
    }
    for path in &files {
        let bytes = fs::read(house.root.join(path)).with_context(|| path.clone())?;
        write_if_changed(&copy.join(path), &infect(path, bytes, mutants)?)?;
    }
    Ok(())
}

fn infect(path: &str, bytes: Vec<u8>, mutants: &[Mutant]) -> Result<Vec<u8>> {
    let mut here = mutants.iter().filter(|mutant| mutant.file == path).peekable();
    if here.peek().is_none() {
        return Ok(bytes);
    }
    let text = String::from_utf8(bytes).with_context(|| path.to_owned())?;
    here.try_fold(text, |text, mutant| plant(&text, mutant)).map(String::into_bytes)
}

/// The text with one mutant planted.
pub fn plant(text: &str, mutant: &Mutant) -> Result<String> {
    let Mutant { name, file, find, replace, .. } = mutant;
    let found = text.matches(find.as_str()).count();
    ensure!(
        found == 1,
        "mutant {name}: its text occurs {found} times in {file}, not once: {find:?}"
    );
    ensure!(replace.contains(SWITCH), "mutant {name}: its replacement does not ask {SWITCH}");
    ensure!(replace.contains(&format!("\"{name}\"")), "mutant {name}: its switch has another name");
    Ok(text.replacen(find.as_str(), replace, 1))
}

fn write_if_changed(path: &PathBuf, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_fence() -> Mutant {
        Mutant {
            name: "no_fence".to_owned(),
            file: "a.rs".to_owned(),
            find: "fence(x)".to_owned(),
            replace: r#"if switch("SYSTOLE_MUTANT", "no_fence") { y } else { fence(x) }"#
                .to_owned(),
            note: "appends without a fence".to_owned(),
        }
    }

    #[test]
    fn a_mutant_replaces_its_text_once() {
        let planted = plant("let z = fence(x);", &no_fence()).unwrap();
        let expected =
            r#"let z = if switch("SYSTOLE_MUTANT", "no_fence") { y } else { fence(x) };"#;
        assert_eq!(planted, expected);
    }

    #[test]
    fn a_mutant_whose_text_is_gone_or_ambiguous_is_named() {
        for text in ["let z = 1;", "fence(x); fence(x);"] {
            let error = plant(text, &no_fence()).unwrap_err().to_string();
            assert!(error.starts_with("mutant no_fence: its text occurs "), "{error}");
        }
    }

    #[test]
    fn a_mutant_that_cannot_be_switched_is_refused() {
        let always_on = Mutant { replace: "y".to_owned(), ..no_fence() };
        let error = plant("fence(x)", &always_on).unwrap_err().to_string();
        assert_eq!(error, "mutant no_fence: its replacement does not ask SYSTOLE_MUTANT");
    }

    #[test]
    fn the_finding_is_the_line_that_names_the_violation() {
        let said = "3 worlds\nseed 7: one_observation violated\nmore\n";
        assert_eq!(finding(said), "seed 7: one_observation violated");
    }

    #[test]
    fn a_mutant_that_lives_fails_the_hunt() {
        let error = report(&[no_fence()], &[None]).unwrap_err().to_string();
        assert_eq!(error, "not found within 1000 seeds: no_fence (appends without a fence)");
    }
}

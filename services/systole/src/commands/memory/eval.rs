//! `systole memory eval`: how well the settings of memory do on conversations.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::Path;
use std::sync::Arc;

use memory_core::eval::data::{Dialogue, read, write};
use memory_core::eval::generate::dialogue;
use memory_core::eval::measure::{Figures, Found, ProfileFigures, Vectors, figures, scores};
use memory_core::importance::Scoring;
use memory_core::ranking::Weights;
use ports::embedder::Embedder;
use serde_json::json;
use tokio::time::Instant;

use crate::arguments::MemoryEval;
use crate::commands::{Context, print};
use crate::failure::{Exit, Failure};
use crate::wiring::memory;

/// Texts of one request to an embedder.
const BATCH: usize = 64;
/// Mistakes of a file that are told.
const TOLD: usize = 20;

/// Reads or makes conversations, measures, prints.
pub(crate) async fn eval(context: &Context, asked: &MemoryEval) -> Result<Exit, Failure> {
    let mut dialogues = conversations(asked)?;
    if asked.lines {
        print(&write(&dialogues))?;
        return Ok(Exit::Done);
    }
    // Memory is given texts without their secrets, so that is what is measured.
    let redact = memory::redact();
    for said in dialogues.iter_mut().flat_map(|one| &mut one.turns) {
        said.text = redact(&said.text);
    }
    let embedder = memory::embedder(&context.common)?;
    let space = embedder.space().await?;
    let vectors = match space {
        Some(_) => Some(embedded(embedder, &dialogues).await?),
        None => None,
    };
    let told = figures(&dialogues, vectors.as_deref(), &Weights::default());
    let micros = cost(&dialogues);
    let model =
        space.map_or_else(|| "words only".to_owned(), |space| format!("vectors of {space}"));
    let text = if asked.json {
        format!("{}\n", json!({"embedder": model, "micros_per_turn": micros, "figures": told}))
    } else {
        as_text(&told, &model, micros)
    };
    print(&text)?;
    Ok(Exit::Done)
}

fn conversations(asked: &MemoryEval) -> Result<Vec<Dialogue>, Failure> {
    let Some(file) = &asked.file else {
        let count = asked.generate.unwrap_or(20);
        return Ok((0..count).map(|number| dialogue(asked.seed, number)).collect());
    };
    let text = text_of(file)?;
    read(&text).map_err(|mistakes| {
        let lines: Vec<String> =
            mistakes.iter().take(TOLD).map(|one| format!("{}: {one}", file.display())).collect();
        Failure::input(lines.join("\n"))
    })
}

fn text_of(file: &Path) -> Result<String, Failure> {
    let mut text = String::new();
    let was_read = if file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map(|_| ())
    } else {
        std::fs::read_to_string(file).map(|read| text = read)
    };
    was_read.map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
    Ok(text)
}

async fn embedded(
    embedder: Arc<dyn Embedder>,
    dialogues: &[Dialogue],
) -> Result<Vec<Vectors>, Failure> {
    let mut all = Vec::with_capacity(dialogues.len());
    for one in dialogues {
        let turns = one.turns.iter().map(|said| said.text.clone()).collect();
        let questions = one.questions.iter().map(|asked| asked.text.clone()).collect();
        all.push(Vectors {
            turns: vectors(embedder.as_ref(), turns).await?,
            questions: vectors(embedder.as_ref(), questions).await?,
        });
    }
    Ok(all)
}

async fn vectors(embedder: &dyn Embedder, texts: Vec<String>) -> Result<Vec<Vec<f32>>, Failure> {
    let mut vectors = Vec::with_capacity(texts.len());
    for batch in texts.chunks(BATCH) {
        vectors.extend(embedder.embed(batch).await?.into_iter().map(|vector| vector.to_vec()));
    }
    Ok(vectors)
}

/// Microseconds that scoring a turn takes, without an embedder.
fn cost(dialogues: &[Dialogue]) -> f64 {
    let begun = Instant::now();
    let turns: usize =
        dialogues.iter().map(|one| scores(one, &Scoring::default(), None).len()).sum();
    let turns = f64::from(u32::try_from(turns.max(1)).unwrap_or(u32::MAX));
    begun.elapsed().as_secs_f64() * 1e6 / turns
}

fn as_text(told: &Figures, model: &str, micros: f64) -> String {
    let mut text = format!(
        "{} conversations, {} turns, {} tokens, {} questions; {model}\n\n{:32}  any@5  any@10  frac@10  nDCG@10\n",
        told.sessions, told.turns, told.tokens, told.questions, "found"
    );
    for (name, found) in &told.search {
        text.push_str(&found_line(name, found));
    }
    let mut heads = String::new();
    for kept in told.keep.first().map(|one| one.kept.as_slice()).unwrap_or_default() {
        _ = write!(heads, "  {}% evid. covered", kept.share);
    }
    _ = writeln!(text, "\n{:14}{heads}  above 0.7", "kept");
    for profile in &told.keep {
        text.push_str(&kept_line(profile));
    }
    _ = write!(
        text,
        "\nupdates above what they replaced: {} of {}\npinned turns known as such: {} of {}\na turn is scored in {micros:.0} µs\n",
        told.updates.1, told.updates.0, told.pinned.1, told.pinned.0
    );
    text
}

fn found_line(name: &str, found: &Found) -> String {
    let Found { any_at_5, any_at_10, frac_at_10, ndcg_at_10 } = found;
    format!("{name:32}  {any_at_5:5.3}  {any_at_10:6.3}  {frac_at_10:7.3}  {ndcg_at_10:7.3}\n")
}

fn kept_line(profile: &ProfileFigures) -> String {
    let mut line = format!("{:14}", profile.name);
    for kept in &profile.kept {
        _ = write!(line, "  {:9.3} {:7.3}", kept.evidence, kept.covered);
    }
    let above = profile.above_threshold.map(|share| format!("{:8.1} %", share * 100.0));
    line + above.as_deref().unwrap_or("") + "\n"
}

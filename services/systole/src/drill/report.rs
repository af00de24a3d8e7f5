//! The matrix for people, as Markdown.

use super::cell::Outcome;

const HEAD: &str = "\
| Process / point / hit / story | Reached | Threads | Runs lost | Model calls repeated | Effects | Repeated | In doubt | \
Invariants broken | Recovered after |
|---|---|---|---|---|---|---|---|---|---|
";

/// The matrix with its totals.
pub(crate) fn matrix(outcomes: &[Outcome]) -> String {
    let rows: String = outcomes.iter().map(row).collect();
    let lost: usize = outcomes.iter().map(|outcome| outcome.counts.runs_lost).sum();
    let repeated: usize = outcomes.iter().map(|outcome| outcome.counts.effects_repeated).sum();
    let broken: usize = outcomes.iter().map(|outcome| outcome.counts.violations.len()).sum();
    let threads: usize = outcomes.iter().map(|outcome| outcome.threads).sum();
    let slowest = outcomes.iter().map(|outcome| outcome.recovered_ms).max().unwrap_or(0);
    format!(
        "{HEAD}{rows}\n{} cells, {threads} threads: {lost} runs lost, {repeated} irreversible effects \
         repeated, {broken} invariants broken; the slowest recovery took {}.\n",
        outcomes.len(),
        seconds(slowest)
    )
}

fn row(outcome: &Outcome) -> String {
    let counts = &outcome.counts;
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        outcome.cell,
        if outcome.reached { "yes" } else { "NO" },
        outcome.threads,
        counts.runs_lost,
        counts.model_calls_repeated,
        counts.effects,
        counts.effects_repeated,
        counts.in_doubt,
        counts.violations.len(),
        seconds(outcome.recovered_ms)
    )
}

fn seconds(millis: u64) -> String {
    format!("{}.{} s", millis / 1000, millis % 1000 / 100)
}

/// The page that holds the matrix.
pub(crate) fn page(outcomes: &[Outcome]) -> String {
    format!(
        "# The crash matrix\n\n\
         `systole drill` starts real NATS, Redis and `systole` processes for each row, in a folder of \
         their own, and\nends (`kill -9`) or stops one process at one point of its work, while threads \
         are under way. Another process\ntakes over. This page is what `systole drill --write docs` \
         wrote.\n\n\
         - **Orders**: each thread looks (a call that may be repeated) and then books (an irreversible \
         one). **Bookings**:\n  each books at once. **Cancels**: each is cancelled while its booking \
         waits.\n\
         - **Runs lost**: threads whose run never ended. **Model calls repeated**: requests beyond one \
         per turn.\n\
         - **Effects**: lines that the irreversible tool itself appended to a file; **repeated**: the \
         same line twice.\n\
         - **In doubt**: calls whose effect nobody can prove; they are reported so and never repeated.\n\
         - **Invariants broken**: rules of the crate `invariants` that a journal breaks: one \
         observation per call, a\n  transcript that a provider accepts, no second start, every run ends, \
         and so on.\n\
         - **Recovered after**: from the hit until every run of the row had ended, the start of the heir \
         and the two seconds\n  after which a silent process counts as gone included.\n\n{}",
        matrix(outcomes)
    )
}

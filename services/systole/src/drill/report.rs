//! The matrix for people, as Markdown.

use super::stage::Outcome;

const HEAD: &str = "\
| Process / point / hit / story | Reached | Kills | Threads | Runs lost | Model calls repeated | Effects | Repeated | \
In doubt | Invariants broken | Recovered after |
|---|---|---|---|---|---|---|---|---|---|---|
";

/// The matrix with its totals.
pub(crate) fn matrix(outcomes: &[Outcome]) -> String {
    let rows: String = outcomes.iter().map(row).collect();
    let sum = |count: fn(&Outcome) -> usize| outcomes.iter().map(count).sum::<usize>();
    let slowest = outcomes.iter().map(|outcome| outcome.recovered_ms).max().unwrap_or(0);
    format!(
        "{HEAD}{rows}\n{} cells, {} kills, {} threads: {} runs lost, {} irreversible effects \
         repeated, {} invariants broken; the slowest recovery took {}.\n",
        outcomes.len(),
        sum(|outcome| outcome.kills),
        sum(|outcome| outcome.threads),
        sum(|outcome| outcome.counts.runs_lost),
        sum(|outcome| outcome.counts.effects_repeated),
        sum(|outcome| outcome.counts.violations.len()),
        seconds(slowest)
    )
}

fn row(outcome: &Outcome) -> String {
    let counts = &outcome.counts;
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
        outcome.cell,
        if outcome.reached { "yes" } else { "NO" },
        outcome.kills,
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
         their own, and\nends (`kill -9`) or stops processes at one point of their work, while threads \
         are under way. Others take over.\nA row is repeated over the same servers, under new threads, \
         until as many processes were ended as it was asked for. Only an end that the process itself \
         announced at its\npoint counts as a kill; a process that ends by itself breaks its row.\nThis page is what `systole drill \
         --write docs` wrote.\n\n\
         - **Orders**: each thread looks (a call that may be repeated) and then books (an irreversible \
         one). **Bookings**:\n  each books at once. **Cancels**: each is cancelled while its booking \
         waits. **Signatures**: each books once a person\n  has agreed over HTTP. **Poison**: orders, \
         with a record in between that nobody can read. **Turns**: each thinks for a while.\n\
         - **Kills**: processes that were ended while threads were under way.\n\
         - **Runs lost**: threads whose run never ended. **Model calls repeated**: requests beyond one \
         per turn.\n\
         - **Effects**: lines that the irreversible tool itself appended to a file; **repeated**: the \
         same line twice.\n\
         - **In doubt**: calls whose effect nobody can prove; they are reported so and never repeated.\n\
         - **Invariants broken**: rules of the crate `invariants` that a journal breaks: one \
         observation per call, a\n  transcript that a provider accepts, no second start, every run ends, \
         and so on; and rules of the row: nothing but late\n  results comes to a run that has ended, \
         no call is closed because of a wrong clock, at most 1.05 model calls per turn.\n\
         - **Recovered after**: from the hit until every run of the round had ended, at worst, the start \
         of the heir and the two\n  seconds after which a silent process counts as gone included. In \
         `past_deadline` and \
         `silent` it is the deadline that is waited for, in `cluster` the\n  length of the turns.\n\n{}",
        matrix(outcomes)
    )
}

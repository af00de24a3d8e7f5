//! What scoring a turn costs, without an embedder.

use criterion::{Criterion, criterion_group, criterion_main};
use memory_core::eval::generate::dialogue;
use memory_core::eval::measure::scores;
use memory_core::importance::Scoring;

fn score(criterion: &mut Criterion) {
    let made = dialogue(1, 0);
    let name = format!("{} turns", made.turns.len());
    criterion
        .bench_function(&name, |bench| bench.iter(|| scores(&made, &Scoring::default(), None)));
}

criterion_group!(benches, score);
criterion_main!(benches);

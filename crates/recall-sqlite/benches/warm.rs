//! How long a question takes over 100,000 fragments of one tenant, by words and vector: cold, which
//! loads them, and warm.
#![expect(clippy::expect_used, reason = "a bench is no interface")]

use std::hint::black_box;
use std::path::Path;

use criterion::{Criterion, criterion_group, criterion_main};
use memory_core::fragment::{Fragment, FragmentId, Origin};
use memory_core::kind::Kind;
use ports::recall::{Access, Kept, MOST_AT_ONCE, Query, Recall, Space};
use proto::ids::{TenantId, ThreadId};
use proto::time::Timestamp;
use recall_sqlite::{Options, SqliteRecall};
use tokio::runtime::Runtime;

const FRAGMENTS: u64 = 100_000;
const DIMENSION: usize = 384;
/// Words that there are; the `n`th comes about as often as one in `n + 10`.
const WORDS: u64 = 30_000;

/// Xorshift: the same fragments in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn fraction(&mut self) -> f64 {
        f64::from(u32::try_from(self.roll() >> 33).unwrap_or(0)) / f64::from(1_u32 << 31)
    }

    fn word(&mut self) -> String {
        let most = f64::from(u32::try_from(WORDS).unwrap_or(1));
        let rank = 10.0 * ((most / 10.0).ln() * self.fraction()).exp() - 10.0;
        format!("word{rank:.0}x")
    }

    fn text(&mut self, words: u64) -> String {
        (0..words).map(|_| self.word()).collect::<Vec<_>>().join(" ")
    }

    fn vector(&mut self) -> Vec<f32> {
        (0..DIMENSION)
            .map(|_| f32::from(u8::try_from(self.roll() >> 56).unwrap_or(0)) - 127.0)
            .collect()
    }
}

fn kept(n: u64, dice: &mut Dice) -> Kept {
    let thread = ThreadId::from_parts(1_767_225_600_000 + n / 50, 7);
    let tenant = TenantId::new("acme").expect("a name");
    Kept::new(Fragment {
        id: FragmentId { tenant, thread, turn: n % 50, fragment: 0 },
        origin: Origin::User,
        kind: Kind::Talk,
        text: dice.text(25),
        at: Timestamp(i64::try_from(n).unwrap_or(0)),
        tokens: 30,
        entities: Vec::new(),
        importance: dice.fraction(),
        explanation: None,
        facts: Vec::new(),
    })
    .with_vector(dice.vector())
}

fn fill(runtime: &Runtime, path: &Path) -> Access {
    let access = Access::of_caller(TenantId::new("acme").expect("a name"));
    let memory = SqliteRecall::open(path, Options::default()).expect("a new file");
    let mut dice = Dice(0x9e37_79b9);
    runtime.block_on(async {
        let space = Space { model: "bench".to_owned(), dimension: DIMENSION };
        memory.settle(Some(space)).await.expect("settled");
        let all: Vec<u64> = (0..FRAGMENTS).collect();
        for part in all.chunks(MOST_AT_ONCE) {
            let part = part.iter().map(|n| kept(*n, &mut dice)).collect();
            memory.put(&access, part).await.expect("put");
        }
    });
    access
}

fn warm(criterion: &mut Criterion) {
    let runtime = Runtime::new().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("memory.db");
    let access = fill(&runtime, &path);
    let mut dice = Dice(4711);
    let now = Timestamp(1_800_000_000_000);
    let mut ask = |memory: &SqliteRecall| {
        let vector = Some(dice.vector().into());
        let query = Query { vector, ..Query::words(dice.text(8), 20, now) };
        runtime.block_on(memory.query(&access, &query)).expect("an answer")
    };
    let mut group = criterion.benchmark_group("recall over 100000 fragments");
    group.sample_size(10);
    group.bench_function("cold", |bench| {
        bench.iter(|| {
            let memory = SqliteRecall::open(&path, Options::default()).expect("the file");
            black_box(ask(&memory))
        });
    });
    let memory = SqliteRecall::open(&path, Options::default()).expect("the file");
    ask(&memory);
    group.bench_function("warm", |bench| bench.iter(|| black_box(ask(&memory))));
    group.finish();
}

criterion_group!(benches, warm);
criterion_main!(benches);

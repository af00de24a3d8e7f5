//! One seeded world, from its first input to the moment at which everything is quiet.

mod tail;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ports::journal::{Append, Fence, Journal, Stored};
use proto::envelope::Envelope;
use proto::fact::ApprovalAsked;
use proto::ids::{InputKey, InstanceId, Nonce, ThreadRef};
use proto::input::{Decision, Input, InputBody, Source};
use proto::record::Record;
use proto::subject::{Leaf, Subject};
use testkit::memory::{BusHandle, Config, MemoryBus};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep_until};

use crate::chaos::{CLIENT, Chaos};
use crate::fault_kind::FaultKind;
use crate::judge::Judge;
use crate::plan::{Event, PLANNERS, Plan, WORKERS};
use crate::processes::{Process, Role};
use crate::shared::{Note, Shared, State, Violation};
use crate::tools::Ledger;

/// How long a world may take to come to rest once faults have ended.
const QUIET_WITHIN: Duration = Duration::from_mins(6);
/// Faults of a world, at least.
const FEWEST: u64 = 5;
/// Between two looks whether a world is quiet.
const LOOK: Duration = Duration::from_secs(2);

/// What came of a world.
#[derive(Clone, Debug, Default)]
pub struct WorldReport {
    /// The first broken rule.
    pub violation: Option<Violation>,
    /// How many faults of each kind happened.
    pub faults: BTreeMap<FaultKind, u64>,
    /// Runs that ended, inputs, calls dispatched.
    pub totals: [u64; 3],
    /// Effects that began.
    pub effects: u64,
    /// Virtual time in all.
    pub lasted: Duration,
    /// What each thread's journal holds in the end.
    pub journals: BTreeMap<ThreadRef, Vec<Stored>>,
    /// Records, as a number that two runs of one seed share.
    pub digest: u64,
    /// The story, when it was asked for.
    pub log: Vec<String>,
}

/// Something to do at a time.
enum Task {
    Event(Event),
    Start(usize),
    Decide(ThreadRef, Decision),
    Look,
}

struct World {
    plan: Plan,
    random: fastrand::Rng,
    bus: MemoryBus,
    client: BusHandle,
    shared: Arc<Shared>,
    notes: UnboundedReceiver<Note>,
    processes: Vec<Process>,
    tools: worker::Tools,
    agenda: BTreeMap<(Instant, u64), Task>,
    numbers: u64,
    sent: Vec<(ThreadRef, Input)>,
    /// Threads that lost records.
    struck: BTreeSet<ThreadRef>,
    peace: Option<Instant>,
    violation: Option<Violation>,
}

/// Runs the world of a seed in virtual time.
pub fn run(seed: u64, traced: bool) -> WorldReport {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime without input and output");
    let report = runtime.block_on(async {
        let mut world = World::new(seed, traced);
        world.live().await;
        world.end()
    });
    runtime.shutdown_background();
    report
}

impl World {
    fn new(seed: u64, traced: bool) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let plan = Plan::new(&mut random);
        let (sender, notes) = unbounded_channel();
        let state = State {
            random: random.fork(),
            chaos: true,
            kinds: plan.kinds.clone(),
            rate: plan.rate,
            counts: BTreeMap::new(),
            left: plan.most,
            ledger: Ledger::default(),
            judge: Judge::default(),
            bus: None,
            rush: (Duration::ZERO, 0),
            log: Vec::new(),
        };
        let shared = Arc::new(Shared::new(state, sender, traced));
        let faults = Arc::new(Chaos { shared: Arc::clone(&shared) });
        let bus = MemoryBus::new(Config { faults, ..Config::default() });
        shared.state().bus = Some(bus.clone());
        let client = bus.handle(&InstanceId::new(CLIENT).expect("a valid name"));
        let tools = crate::processes::tools(&shared);
        let mut world = Self {
            plan,
            random,
            bus,
            client,
            shared,
            notes,
            processes: Vec::new(),
            tools,
            agenda: BTreeMap::new(),
            numbers: 0,
            sent: Vec::new(),
            struck: BTreeSet::new(),
            peace: None,
            violation: None,
        };
        world.fill();
        world
    }

    /// Slots for all processes, and the agenda.
    fn fill(&mut self) {
        let roles = std::iter::repeat_n(Role::Planner, PLANNERS)
            .chain(std::iter::repeat_n(Role::Worker, WORKERS));
        for (slot, (role, offset)) in roles.zip(self.plan.clock_offsets.clone()).enumerate() {
            if offset != 0 {
                self.shared.count(FaultKind::ClockOff, format_args!("slot {slot} by {offset} ms"));
            }
            self.processes.push(Process::new(role, slot, offset));
            let delay = Duration::from_millis(self.random.u64(0..2000));
            self.later(delay, Task::Start(slot));
        }
        for (at, event) in std::mem::take(&mut self.plan.events) {
            self.later(at, Task::Event(event));
        }
    }

    fn later(&mut self, delay: Duration, task: Task) {
        self.numbers += 1;
        self.agenda.insert((Instant::now() + delay, self.numbers), task);
    }

    async fn live(&mut self) {
        while self.violation.is_none() {
            let Some((at, _)) = self.agenda.first_key_value().map(|(key, _)| *key) else { return };
            tokio::select! {
                biased;
                note = self.notes.recv() => {
                    if let Some(note) = note {
                        self.hear(note);
                    }
                }
                () = sleep_until(at) => {
                    if let Some((_, task)) = self.agenda.pop_first() {
                        self.carry_out(task).await;
                    }
                }
            }
        }
    }

    fn hear(&mut self, note: Note) {
        match note {
            Note::Crashed(name) | Note::Ended(name) => {
                let found = self.processes.iter().position(|p| p.name() == Some(&name));
                if let Some(slot) = found {
                    self.restart(slot);
                }
            }
            Note::Asked(thread, asked) => self.consider(thread, asked),
            Note::Violated(violation) => {
                self.shared.tell(|| format!("VIOLATED {}: {}", violation.rule, violation.why));
                self.violation.get_or_insert(violation);
            }
        }
    }

    /// The life in a slot is over; the next one begins after a while.
    fn restart(&mut self, slot: usize) {
        let bus = self.bus.clone();
        if let Some(process) = self.processes.get_mut(slot) {
            let name = process.name().cloned();
            self.shared.tell(|| format!("GONE {name:?}"));
            process.kill(&bus);
        }
        let delay = Duration::from_millis(self.random.u64(100..8_000));
        self.later(delay, Task::Start(slot));
    }

    /// A person agrees, refuses, shows something else, or says nothing.
    fn consider(&mut self, thread: ThreadRef, asked: ApprovalAsked) {
        let drawn = self.random.u32(0..10);
        let arguments_hash = match drawn {
            0 => return,
            1 => proto::hash::arguments_hash(&serde_json::Map::new()),
            _ => asked.arguments_hash,
        };
        let decision = Decision {
            tool_call_id: asked.tool_call_id,
            approve: drawn < 8,
            arguments_hash,
            fingerprint: None,
            by: "somebody".to_owned(),
            note: String::new(),
        };
        let delay = Duration::from_millis(self.random.u64(50..14_000));
        self.later(delay, Task::Decide(thread, decision));
    }

    async fn carry_out(&mut self, task: Task) {
        match task {
            Task::Event(event) => self.happen(event).await,
            Task::Start(slot) => {
                let (bus, seed) = (self.bus.clone(), self.random.u64(..));
                if let Some(process) = self.processes.get_mut(slot) {
                    process.start(&bus, &self.shared, &self.tools, seed);
                }
            }
            Task::Decide(thread, decision) => {
                let key = format!("d-{}", self.numbers);
                self.numbers += 1;
                self.send(thread, &key, InputBody::Decision(decision)).await;
            }
            Task::Look => self.look(),
        }
    }

    async fn happen(&mut self, event: Event) {
        match event {
            Event::Send { thread, key, body } => {
                if let Some(thread) = self.plan.threads.get(thread).cloned() {
                    self.send(thread, &key, body).await;
                }
            }
            Event::Unreadable { thread, too_new } => {
                if let Some(thread) = self.plan.threads.get(thread).cloned() {
                    self.write_unreadable(thread, too_new).await;
                }
            }
            Event::Fault(kind) => self.strike(kind).await,
            Event::Peace => {
                while self.faults() < FEWEST && self.processes.iter().any(|p| p.name().is_some()) {
                    self.kill_any();
                }
                self.shared.tell(|| "PEACE".to_owned());
                self.shared.state().chaos = false;
                self.peace = Some(Instant::now());
                self.ask_again().await;
                self.later(LOOK, Task::Look);
            }
        }
    }

    async fn send(&mut self, thread: ThreadRef, key: &str, body: InputBody) {
        let key = InputKey::new(key).expect("a valid key");
        let input = Input { key, source: Source::Client, body };
        self.write_input(thread.clone(), input.clone()).await;
        self.sent.push((thread, input));
    }

    async fn write_input(&mut self, thread: ThreadRef, input: Input) {
        let nonce = self.nonce();
        let payload = Envelope::new(nonce.clone(), None, Record::Input(input)).encode().into();
        self.write(thread, payload, nonce).await;
    }

    async fn write(&self, thread: ThreadRef, payload: bytes::Bytes, nonce: Nonce) {
        let subject = Subject::new(thread, Leaf::In);
        let append = Append { subject, payload, nonce, fence: Fence::None, dedup: None };
        self.client.append(append).await.expect("nothing happens to the client");
    }

    fn nonce(&mut self) -> Nonce {
        Nonce::new(format!("{:016x}", self.random.u64(..))).expect("sixteen hex digits")
    }

    async fn write_unreadable(&mut self, thread: ThreadRef, too_new: bool) {
        let nonce = self.nonce();
        let kind = if too_new { FaultKind::TooNew } else { FaultKind::Poison };
        self.shared.count(kind, &thread);
        let payload = if too_new {
            format!(
                "{{\"v\":9,\"min_reader\":9,\"nonce\":\"{nonce}\",\"body\":{{\"kind\":\"new\"}}}}"
            )
        } else {
            "not a record".to_owned()
        };
        self.write(thread, payload.into(), nonce).await;
    }

    /// Faults that are no operation's. One that has nothing to strike is made up for by a death.
    async fn strike(&mut self, kind: FaultKind) {
        let before = self.faults();
        self.strike_as_drawn(kind).await;
        if self.faults() == before {
            self.kill_any();
        }
    }

    /// Faults so far.
    fn faults(&self) -> u64 {
        self.shared.state().counts.values().sum()
    }

    fn kill_any(&mut self) {
        let alive = |process: &Process| process.name().is_some();
        let Some(slot) = self.processes.iter().position(alive) else { return };
        self.shared.count(FaultKind::Killed, format_args!("slot {slot}"));
        self.restart(slot);
    }

    async fn strike_as_drawn(&mut self, kind: FaultKind) {
        let slot = self.random.usize(..self.processes.len());
        let name = self.processes.get(slot).and_then(Process::name).cloned();
        let span = Duration::from_millis(self.random.u64(1_000..20_000));
        match (kind, name) {
            (FaultKind::Killed, Some(name)) => {
                self.shared.count(kind, name);
                self.restart(slot);
            }
            (FaultKind::Drained, Some(name)) => {
                self.shared.count(kind, name);
                if let Some(process) = self.processes.get(slot) {
                    process.drain();
                }
            }
            (FaultKind::Paused, Some(name)) => {
                self.shared.count(kind, format_args!("{name} for {span:?}"));
                self.bus.pause(&name, span);
            }
            (FaultKind::CutOff, Some(name)) => {
                self.shared.count(kind, format_args!("{name} for {span:?}"));
                self.bus.cut_off(&name, span);
            }
            (FaultKind::DuplicateInput, _) => self.send_again().await,
            (kind, _) => self.strike_store(kind, span),
        }
    }

    async fn send_again(&mut self) {
        if self.sent.is_empty() {
            return;
        }
        let (thread, input) = self.sent[self.random.usize(..self.sent.len())].clone();
        self.shared.count(FaultKind::DuplicateInput, &input.key);
        self.write_input(thread, input).await;
    }

    fn strike_store(&mut self, kind: FaultKind, span: Duration) {
        let thread = self.plan.threads[self.random.usize(..self.plan.threads.len())].clone();
        let struck = match kind {
            FaultKind::AcksForgotten => self.bus.forget_acks(span) > 0,
            FaultKind::Replayed => {
                let queues = self.bus.queues();
                !queues.is_empty()
                    && self.bus.replay(&queues[self.random.usize(..queues.len())]) > 0
            }
            FaultKind::MemoryForgot => {
                let writes = self.random.usize(1..24);
                self.bus.working_memory().forget_last(writes) > 0
            }
            FaultKind::MemoryLost => self.bus.working_memory().forget_all() > 0,
            FaultKind::TailLost => self.lose_tail(),
            FaultKind::TickEarly => self.bus.fire(&thread, false),
            FaultKind::TickTwice => self.bus.fire(&thread, true),
            _ => false,
        };
        if struck {
            self.shared.count(kind, format_args!("{thread} {span:?}"));
        }
    }

    /// Whether everything is quiet; if not in time, what is left undone is a violation.
    fn look(&mut self) {
        let left = self.unfinished();
        if left.is_empty() {
            return;
        }
        if self.peace.is_some_and(|peace| peace.elapsed() > QUIET_WITHIN) {
            self.violation = left.into_iter().next();
            let violation = self.violation.clone();
            self.shared.tell(|| format!("VIOLATED {violation:?}"));
            return;
        }
        self.later(LOOK, Task::Look);
    }

    /// Whatever keeps the world from being quiet.
    fn unfinished(&self) -> Vec<Violation> {
        let (at_rest, too_new) = {
            let state = self.shared.state();
            let threads = &self.plan.threads;
            let too_new: Vec<ThreadRef> =
                threads.iter().filter(|thread| state.judge.is_too_new(thread)).cloned().collect();
            (state.judge.at_rest(), too_new)
        };
        let mut left: Vec<Violation> = at_rest.into_iter().flat_map(|(_, found)| found).collect();
        let unacked = self.bus.unacked();
        let open = unacked.iter().find(|(_, stored)| !too_new.contains(&stored.subject.thread));
        if let Some((queue, stored)) = open {
            let why = format!("{queue:?} still has {}", crate::story::of(stored));
            left.push(Violation::new("deliveries_are_acked", why));
        }
        for thread in too_new {
            if !unacked.iter().any(|(_, stored)| stored.subject.thread == thread) {
                let why = format!("a record of {thread} was acked by a process too old for it");
                left.push(Violation::new("too_new_is_handed_back", why));
            }
        }
        left
    }

    fn journals(&self) -> BTreeMap<ThreadRef, Vec<Stored>> {
        let threads = self.plan.threads.iter();
        threads.map(|thread| (thread.clone(), self.bus.journal(thread))).collect()
    }

    /// One cut of each thread; a test tries them all.
    fn judge_kept_folds(
        &mut self,
        journals: &BTreeMap<ThreadRef, Vec<Stored>>,
    ) -> Option<Violation> {
        journals.iter().find_map(|(thread, records)| {
            let cut = self.random.usize(..=records.len());
            crate::resume::judge(thread, records, cut)
        })
    }

    fn end(mut self) -> WorldReport {
        for process in &mut self.processes {
            process.kill(&self.bus);
        }
        let history = self.bus.history(0);
        let digest = history.iter().fold(0_u64, |digest, stored| {
            let bytes = stored.payload.iter().map(|byte| u64::from(*byte));
            bytes.fold(digest ^ stored.sequence.0, |d, b| d.wrapping_mul(1_099_511_628_211) ^ b)
        });
        let journals = self.journals();
        if let Some(violation) = self.judge_kept_folds(&journals) {
            self.violation.get_or_insert(violation);
        }
        let lasted = self.bus.elapsed();
        let mut state = self.shared.state();
        // The bus refers back to this state; let go, or nothing of the world is ever freed.
        state.bus = None;
        WorldReport {
            violation: self.violation.clone(),
            faults: std::mem::take(&mut state.counts),
            totals: state.judge.totals(),
            effects: u64::try_from(state.ledger.totals().1).unwrap_or(0),
            lasted,
            journals,
            digest,
            log: std::mem::take(&mut state.log),
        }
    }
}

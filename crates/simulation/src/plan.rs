//! What happens in a world from outside, drawn from its seed before it starts.

use std::collections::BTreeSet;
use std::time::Duration;

use proto::ids::{AgentName, Partition, TenantId, ThreadId, ThreadRef, ToolName};
use proto::input::{InputBody, Message};

use crate::fault_kind::FaultKind;
use crate::processes::{AGENTS, GHOST};
use crate::script::{Script, words};

/// Threads, planners and workers of a world.
pub const THREADS: usize = 4;
/// Planners of a world.
pub const PLANNERS: usize = 3;
/// Workers of a world.
pub const WORKERS: usize = 3;
/// Calls that the scripts of a world ask for, at least.
pub const CALLS: usize = 20;
/// Faults that happen to a world at set times; those at operations come on top.
pub const FAULTS: usize = 6;

/// When clients send, from the start.
const SENDING: Duration = Duration::from_secs(25);
/// When faults end.
pub const CHAOS_ENDS: Duration = Duration::from_secs(50);

/// Something that happens from outside.
#[derive(Clone, Debug)]
pub enum Event {
    /// A client sends an input.
    Send {
        /// Which thread.
        thread: usize,
        /// The idempotency key.
        key: String,
        /// What.
        body: InputBody,
    },
    /// Somebody writes what nobody, or no process of this version, can read.
    Unreadable {
        /// Which thread.
        thread: usize,
        /// Whether newer processes could.
        too_new: bool,
    },
    /// A fault that is no operation's.
    Fault(FaultKind),
    /// No more faults from here on.
    Peace,
}

/// All of it.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The threads.
    pub threads: Vec<ThreadRef>,
    /// What happens when.
    pub events: Vec<(Duration, Event)>,
    /// Kinds of faults that this world has at operations and schedules.
    pub kinds: BTreeSet<FaultKind>,
    /// The chance of a fault per operation.
    pub rate: f64,
    /// The most faults at operations.
    pub most: u32,
    /// How far each process's clock is off, in milliseconds.
    pub clock_offsets: Vec<i64>,
    /// Calls that the scripts ask for.
    pub calls: usize,
}

impl Plan {
    /// The plan of a seed.
    pub fn new(random: &mut fastrand::Rng) -> Self {
        let threads = (1..=THREADS).map(thread).collect();
        let clock_offsets = (0..PLANNERS + WORKERS).map(|_| offset(random)).collect();
        let mut plan = Self {
            threads,
            events: Vec::new(),
            kinds: kinds(random),
            rate: 0.002 + random.f64() * 0.02,
            most: random.u32(2..24),
            clock_offsets,
            calls: 0,
        };
        plan.messages(random);
        plan.interruptions(random);
        plan.faults(random);
        plan.events.sort_by_key(|(at, _)| *at);
        plan
    }

    /// At least one message per thread, and enough of them to ask for the calls.
    fn messages(&mut self, random: &mut fastrand::Rng) {
        let mut number = 0;
        while number < THREADS || self.calls < CALLS {
            let thread = number % THREADS;
            let seed = random.u64(1..1_000_000_000);
            self.calls += Script::new(seed).calls();
            let mut message = Message::text(words(&format!("t{thread}k{number}"), seed));
            message.agent = Some(agent(random));
            if random.u32(0..4) == 0 {
                message.approve = vec![ToolName::new("pay").expect("a valid name")];
            }
            if random.u32(0..12) == 0 {
                message.complexity = Some(random.u32(1..=5));
            }
            let body = InputBody::Message(message);
            self.send(random, SENDING, thread, format!("k{number}"), body);
            number += 1;
        }
    }

    /// What people do besides.
    fn interruptions(&mut self, random: &mut fastrand::Rng) {
        for number in 0..random.usize(1..6) {
            let thread = random.usize(..THREADS);
            let seed = random.u64(1..1_000_000_000);
            let text = match random.u32(0..8) {
                0 => "that's all, thanks".to_owned(),
                _ => words(&format!("t{thread}i{number}"), seed),
            };
            let body = match random.u32(0..5) {
                0 | 1 => InputBody::Cancel { reason: "enough".to_owned() },
                2 => InputBody::Interrupt(Message::text(text)),
                3 => InputBody::Message(Message::text(text)),
                _ => InputBody::Steer(Message::text(text)),
            };
            self.send(
                random,
                SENDING + Duration::from_secs(10),
                thread,
                format!("i{number}"),
                body,
            );
        }
        self.cancel_at_once(random);
        self.cancel_soon(random);
    }

    /// In every second world somebody thinks better of it while the first calls are on their way.
    fn cancel_soon(&mut self, random: &mut fastrand::Rng) {
        let sent: Vec<(Duration, usize)> = self.events.iter().filter_map(sent_at).collect();
        let Some((at, thread)) = random.choice(sent).filter(|_| random.bool()) else { return };
        let at = at + Duration::from_millis(random.u64(100..4_000));
        let body = InputBody::Cancel { reason: "on second thoughts".to_owned() };
        self.events.push((at, Event::Send { thread, key: "s0".to_owned(), body }));
    }

    /// Now and then a cancel follows its input before a planner has looked.
    fn cancel_at_once(&mut self, random: &mut fastrand::Rng) {
        if random.u32(0..6) > 0 {
            return;
        }
        let body = InputBody::Cancel { reason: "never mind".to_owned() };
        let first = self.events.iter().find_map(sent_at);
        if let Some((when, thread)) = first {
            let at = when + Duration::from_millis(1);
            self.events.push((at, Event::Send { thread, key: "c0".to_owned(), body }));
        }
    }

    fn send(
        &mut self,
        random: &mut fastrand::Rng,
        within: Duration,
        thread: usize,
        key: String,
        body: InputBody,
    ) {
        let at = moment(random, within);
        self.events.push((at, Event::Send { thread, key, body }));
    }

    fn faults(&mut self, random: &mut fastrand::Rng) {
        for _ in 0..FAULTS {
            let at = moment(random, CHAOS_ENDS);
            let kind = *random.choice(TIMED).expect("there are some");
            let never = self.kinds.contains(&FaultKind::TickNever);
            let loses = self.kinds.contains(&FaultKind::TailLost);
            let forgets = matches!(kind, FaultKind::MemoryForgot | FaultKind::MemoryLost);
            let kind = match kind {
                _ if (never || loses) && forgets => FaultKind::AcksForgotten,
                FaultKind::CutOff if loses => FaultKind::Killed,
                kind => kind,
            };
            self.events.push((at, Event::Fault(kind)));
        }
        if self.kinds.contains(&FaultKind::TailLost) {
            for _ in 0..random.u32(1..=2) {
                let at = moment(random, CHAOS_ENDS);
                self.events.push((at, Event::Fault(FaultKind::TailLost)));
            }
        }
        match random.u32(0..16) {
            0 => self.unreadable(random, true),
            1 | 2 => self.unreadable(random, false),
            _ => {}
        }
        self.events.push((CHAOS_ENDS, Event::Peace));
    }

    fn unreadable(&mut self, random: &mut fastrand::Rng, too_new: bool) {
        let at = moment(random, SENDING);
        let thread = random.usize(..THREADS);
        if too_new {
            // A thread of its own, so that the others still show their whole story.
            let thread = self.threads.len();
            self.threads.push(self::thread(thread + 1));
            let body = InputBody::Message(Message::text(words("future", 7)));
            self.events.push((at, Event::Unreadable { thread, too_new }));
            let later = at + Duration::from_millis(5);
            self.events.push((later, Event::Send { thread, key: "f0".to_owned(), body }));
        } else {
            self.events.push((at, Event::Unreadable { thread, too_new }));
        }
    }
}

fn sent_at((at, event): &(Duration, Event)) -> Option<(Duration, usize)> {
    match event {
        Event::Send { thread, .. } => Some((*at, *thread)),
        Event::Unreadable { .. } | Event::Fault(_) | Event::Peace => None,
    }
}

/// Faults that happen at set times.
const TIMED: &[FaultKind] = &[
    FaultKind::Killed,
    FaultKind::Killed,
    FaultKind::Drained,
    FaultKind::Paused,
    FaultKind::Paused,
    FaultKind::CutOff,
    FaultKind::AcksForgotten,
    FaultKind::Replayed,
    FaultKind::DuplicateInput,
    FaultKind::MemoryForgot,
    FaultKind::MemoryLost,
    FaultKind::TickEarly,
    FaultKind::TickTwice,
];

/// Each world leaves some kinds out, so that no fault always hides another. A schedule that never
/// fires needs the list of active threads, and a lost tail is known to memory alone, so memory is not
/// lost in the same world.
fn kinds(random: &mut fastrand::Rng) -> BTreeSet<FaultKind> {
    let never = random.u32(0..4) == 0;
    let loses = !never && random.u32(0..4) == 0;
    FaultKind::ALL
        .iter()
        .copied()
        .filter(|kind| match kind {
            FaultKind::TickNever => never,
            FaultKind::TailLost => loses,
            _ => random.u32(0..4) > 0,
        })
        .collect()
}

fn thread(number: usize) -> ThreadRef {
    let number = u64::try_from(number).expect("few threads");
    ThreadRef {
        partition: Partition(0),
        tenant: TenantId::new("sim").expect("a valid name"),
        thread: ThreadId::from_parts(1_767_225_600_000, u128::from(number)),
    }
}

fn agent(random: &mut fastrand::Rng) -> AgentName {
    let name = match random.u32(0..40) {
        0 => GHOST,
        1..4 => AGENTS[3],
        _ => AGENTS[random.usize(..3)],
    };
    AgentName::new(name).expect("a valid name")
}

/// Half of all clocks are right, the others minutes off.
fn offset(random: &mut fastrand::Rng) -> i64 {
    if random.bool() { 0 } else { random.i64(-300_000..=300_000) }
}

fn moment(random: &mut fastrand::Rng, within: Duration) -> Duration {
    let most = u64::try_from(within.as_millis()).expect("a short span");
    Duration::from_millis(random.u64(0..most))
}

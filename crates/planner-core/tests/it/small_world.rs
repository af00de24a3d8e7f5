//! A small world of clients, planners and workers in any order, with crashes between any two steps.
//!
//! Planners fold late, take each other's deliveries, die while they stream; schedules fire early;
//! workers answer late, twice or never. After every event the thread is watched by somebody or
//! something; every record keeps the invariants (`World` judges each); in the end all comes to rest.

mod planners;

use std::collections::BTreeSet;

use planner_core::calls::earliest_deadline;
use planner_core::live_turn::LiveTurn;
use planner_core::view::{Armed, Branch, Evaluated, Owner};
use planner_core::{Thread, Wake};
use proto::agent::{Agent, EarlyDispatch, Verify};
use proto::error_code::ErrorCode;
use proto::hash::arguments_hash;
use proto::ids::{AgentName, InstanceId, Sequence, ToolName};
use proto::input::{Decision as Word, InputBody, Message};
use proto::record::Record;
use proto::subject::Leaf;
use proto::time::Timestamp;

use crate::world::{World, agent, arguments, instance, result};

const PLANNERS: usize = 3;
const TOOLS: [&str; 7] = ["probe", "note", "deploy", "restart", "erase", "mail", "nonsense"];
/// Steps of one handling; far above what any of these threads needs.
const MAX_STEPS: u32 = 300;

/// A delivery that nobody has acknowledged.
#[derive(Clone, Copy, Debug)]
struct Delivery {
    wake: Wake,
    first: bool,
    by_observation: bool,
}

/// What one planner does with a delivery.
struct Handling {
    delivery: Delivery,
    fold: Thread,
    begun: Option<Sequence>,
    owner: (Sequence, Owner),
    armed: Armed,
    evaluated: Option<Evaluated>,
    live: Option<(Sequence, LiveTurn, Sequence)>,
    position: u32,
    steps: u32,
    /// Somebody else acknowledged the delivery.
    void: bool,
}

struct Planner {
    name: InstanceId,
    handling: Option<Handling>,
}

pub(crate) struct Sim {
    world: World,
    waiting: Vec<Delivery>,
    planners: Vec<Planner>,
    schedule: Option<Timestamp>,
    /// When the turn is over at the latest whose delivery somebody else acknowledged, until its owner
    /// has armed what is due.
    unheld: Option<Timestamp>,
    lives: u32,
    keys: u32,
    ids: u32,
    pub(crate) reached: BTreeSet<Branch>,
    /// What happened, for whoever reads a failure.
    trace: Vec<String>,
}

fn first() -> Agent {
    let mut agent = agent("main");
    agent.limits.max_turns = 4;
    agent.limits.max_tool_calls = 6;
    agent.approval_ms = 30_000;
    agent.verify = Verify::Chain;
    agent
}

fn second() -> Agent {
    let mut agent = agent("second");
    agent.limits.max_turns = 6;
    agent.output_schema = Some(serde_json::json!({"type": "object"}));
    agent.early_dispatch = EarlyDispatch::All;
    agent
}

impl Sim {
    fn new() -> Self {
        let mut world = World::new();
        for agent in [first(), second()] {
            world.book.0.insert(agent.name.clone(), agent);
        }
        let planner = |n| Planner { name: instance(&format!("p{n}")), handling: None };
        Self {
            world,
            waiting: Vec::new(),
            planners: (0..PLANNERS).map(planner).collect(),
            schedule: None,
            unheld: None,
            lives: 0,
            keys: 0,
            ids: 0,
            reached: BTreeSet::new(),
            trace: Vec::new(),
        }
    }

    /// One event; what it is and whom it meets is chosen by the two numbers.
    fn event(&mut self, kind: u8, choice: u8) {
        let planner = usize::from(choice) % PLANNERS;
        match kind % 24 {
            0 | 1 => self.input(choice),
            2..=5 => self.take(planner),
            6..=11 => self.step(planner),
            12..=14 => self.reply(planner, choice / 3),
            15 | 22 => self.crash(planner),
            16..=18 => self.work(choice),
            19 => self.decide_approval(choice),
            20 => self.deliver_again(planner),
            21 => self.odd_event(choice),
            _ => self.time_passes(choice),
        }
        self.judge_watched();
    }

    fn deliver(&mut self, sequence: Sequence, tick: bool, by_observation: bool) {
        let wake = Wake { sequence, tick };
        self.trace.push(format!("delivery {sequence}{}", if tick { " (tick)" } else { "" }));
        self.waiting.push(Delivery { wake, first: true, by_observation });
    }

    fn input(&mut self, choice: u8) {
        self.keys += 1;
        let mut message = Message::text(if choice % 16 == 15 { "that's all" } else { "words" });
        message.agent = match choice % 5 {
            0 => Some(AgentName::new("second").unwrap()),
            _ if self.world.thread.agent.is_none() => Some(AgentName::new("main").unwrap()),
            _ => None,
        };
        if choice.is_multiple_of(7) {
            message.approve = vec![ToolName::new("erase").unwrap()];
        }
        let body = match choice / 40 {
            0 | 1 => InputBody::Message(message),
            2 => InputBody::Steer(message),
            3 => InputBody::Interrupt(message),
            4 => InputBody::Cancel { reason: String::new() },
            // A repeated key is the same input.
            _ => {
                self.keys -= 1;
                InputBody::Message(message)
            }
        };
        let sequence = self.world.input(&format!("k{}", self.keys), body);
        self.deliver(sequence, false, false);
    }

    /// A record that nobody can decode, or an agent's file that comes and goes.
    fn odd_event(&mut self, choice: u8) {
        let name = AgentName::new("second").unwrap();
        if choice.is_multiple_of(4) {
            let sequence = self.world.poison();
            self.deliver(sequence, false, false);
        } else if self.world.book.0.remove(&name).is_none() {
            self.world.book.0.insert(name, second());
        }
    }

    /// A worker begins or answers one of the dispatched calls, perhaps not for the first time.
    fn work(&mut self, choice: u8) {
        let calls = self.world.thread.calls.values().filter(|call| call.dispatched.is_some());
        let dispatched: Vec<_> = calls.cloned().collect();
        if dispatched.is_empty() {
            return;
        }
        let call = &dispatched[usize::from(choice) % dispatched.len()];
        let id = call.id();
        let until = self.world.now.after(std::time::Duration::from_secs(5));
        let started = self.world.has(&Leaf::Start(id.clone()));
        if call.needs_start() && !started {
            if call.closed.is_none() {
                self.world.start(id, until);
            }
            return;
        }
        // Barred, or a worker that hangs for now.
        let hangs = call.needs_start() && choice % 8 < 3;
        if hangs || matches!(call.start, planner_core::thread::StartState::Barred) {
            return;
        }
        let mut observation =
            result(id, if choice.is_multiple_of(2) { "up" } else { "down" }, until);
        if choice % 9 == 8 {
            observation.code = Some(ErrorCode::InDoubt);
        }
        let sequence = self.world.observe(observation);
        self.deliver(sequence, false, true);
    }

    fn decide_approval(&mut self, choice: u8) {
        let asked = self.world.thread.open_calls().find(|call| call.asked.is_some());
        let Some(call) = asked.cloned() else { return };
        let right =
            if choice % 4 == 3 { arguments("other") } else { call.requested.arguments.clone() };
        self.keys += 1;
        let word = Word {
            tool_call_id: call.id().clone(),
            approve: choice.is_multiple_of(2),
            arguments_hash: arguments_hash(&right),
            fingerprint: None,
            by: "ann".into(),
            note: String::new(),
        };
        let sequence = self.world.input(&format!("k{}", self.keys), InputBody::Decision(word));
        self.deliver(sequence, false, false);
    }

    /// Time passes and the schedule fires, at times too early.
    fn time_passes(&mut self, choice: u8) {
        let span = std::time::Duration::from_secs(u64::from(choice) / 3);
        self.world.now = self.world.now.after(span);
        let early = choice.is_multiple_of(5);
        if self.schedule.is_some_and(|at| early || at <= self.world.now) {
            self.schedule = None;
            let sequence = self.world.append(Leaf::Tick, Record::Tick);
            self.deliver(sequence, true, false);
        }
    }

    /// A thread with work left is never asleep.
    fn judge_watched(&self) {
        let thread = &self.world.thread;
        let mut handlings = self.planners.iter().filter_map(|planner| planner.handling.as_ref());
        let held = handlings.any(|handling| !handling.void);
        if held || !self.waiting.is_empty() || thread.is_at_rest() {
            return;
        }
        let Some(armed) = self.schedule else {
            panic!("asleep with work left: {:#?}\n{thread:#?}", self.trace);
        };
        // A planner whose delivery was acknowledged by another while it streamed is watched by the
        // tick at the end of its turn alone, until it has armed what its calls need.
        if let Some(due) = earliest_deadline(thread) {
            let open = thread.run.as_ref().is_some_and(|run| run.open.is_some());
            let latest = self.unheld.map_or(due, |over| over.max(due));
            assert!(open || armed <= latest, "armed for {armed}, due at {due}: {:#?}", self.trace);
        }
    }

    /// Everybody does what is left, with nothing going wrong any more.
    fn settle(&mut self) {
        for round in 0..3000u32 {
            for planner in 0..PLANNERS {
                self.take(planner);
                self.step(planner);
                self.reply(planner, if round % 8 < 3 { 1 } else { 7 });
            }
            if round % 50 == 49 {
                self.decide_approval(u8::try_from(round / 50 % 4).unwrap());
            }
            self.judge_watched();
            self.world.now = self.world.now.after(std::time::Duration::from_millis(500));
            let held = self.planners.iter().any(|planner| planner.handling.is_some());
            if held || !self.waiting.is_empty() {
                continue;
            }
            if self.world.thread.is_at_rest() {
                return;
            }
            if round.is_multiple_of(2) {
                self.work(u8::try_from(round % 200).unwrap() & 0xfe);
            }
            self.world.now = self.world.now.max(self.schedule.unwrap_or(self.world.now));
            self.time_passes(1);
        }
        panic!("it never came to rest: {:#?}", self.world.thread);
    }
}

pub(crate) fn run(events: &[(u8, u8)]) -> Sim {
    let mut sim = Sim::new();
    for (kind, choice) in events {
        sim.event(*kind, *choice);
    }
    sim.settle();
    sim.world.judge_rest();
    sim.world.judge_fold();
    for call in sim.world.thread.calls.values() {
        let open = call.closed.is_none() && call.dispatched.is_some();
        assert!(!open, "open for ever: {call:?}");
    }
    sim
}

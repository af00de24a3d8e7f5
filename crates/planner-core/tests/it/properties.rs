//! A small world of clients, planners and workers in any order, with crashes between any two steps.
//!
//! Planners fold late, take each other's deliveries, die while they stream; schedules fire early;
//! workers answer late, twice or never. After every event the thread is watched by somebody or
//! something; every record keeps the invariants (`World` judges each); in the end all comes to rest.

use std::collections::BTreeSet;

use planner_core::accept::Judge;
use planner_core::calls::earliest_deadline;
use planner_core::live_turn::LiveTurn;
use planner_core::view::{Armed, Branch, Evaluated, Owner, Spans};
use planner_core::{Decision, Step, Thread, View, Wake, decide, prompt};
use proptest::prelude::*;
use proto::agent::{Agent, EarlyDispatch, Verify};
use proto::call::{Barred, Start};
use proto::error_code::ErrorCode;
use proto::fact::{Fact, SealReason, Usage};
use proto::hash::arguments_hash;
use proto::ids::{AgentName, InstanceId, Sequence, ToolName};
use proto::input::{Decision as Word, InputBody, Message};
use proto::model::{ReadyCall, ReplyEnd};
use proto::record::Record;
use proto::subject::Leaf;
use proto::time::Timestamp;

use crate::world::{World, agent, arguments, call_id, instance, result};

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

struct Sim {
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
    reached: BTreeSet<Branch>,
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

    fn take(&mut self, planner: usize) {
        if self.planners[planner].handling.is_some() || self.waiting.is_empty() {
            return;
        }
        let delivery = self.waiting.remove(planner % self.waiting.len());
        let Wake { sequence, .. } = delivery.wake;
        self.trace.push(format!("{} takes {sequence}", self.planners[planner].name));
        let by_others = delivery.by_observation && delivery.first;
        let handling = Handling {
            delivery,
            fold: self.world.thread.clone(),
            begun: None,
            owner: (Sequence::NONE, Owner::Unasked),
            armed: if by_others { Armed::ByOthers } else { Armed::Unknown },
            evaluated: None,
            live: None,
            position: 0,
            steps: 0,
            void: false,
        };
        self.planners[planner].handling = Some(handling);
    }

    /// The planner dies; another with a new name takes its place.
    fn crash(&mut self, planner: usize) {
        self.lives += 1;
        self.trace.push(format!("{} dies", self.planners[planner].name));
        self.planners[planner].name = instance(&format!("p{planner}-{}", self.lives));
        self.hand_back(planner);
    }

    fn hand_back(&mut self, planner: usize) {
        let Some(handling) = self.planners[planner].handling.take() else { return };
        if !handling.void {
            self.waiting.push(Delivery { first: false, ..handling.delivery });
        }
    }

    /// The bus takes the holder of a delivery for dead although it lives.
    fn deliver_again(&mut self, planner: usize) {
        if let Some(handling) = self.planners[planner].handling.as_ref().filter(|h| !h.void) {
            self.waiting.push(Delivery { first: false, ..handling.delivery });
        }
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

    fn view_and_decide(&self, planner: usize) -> Decision {
        let Planner { name, handling } = &self.planners[planner];
        let handling = handling.as_ref().unwrap();
        let open = handling.fold.run.as_ref().and_then(|run| run.open.as_ref());
        let asked = open.filter(|open| open.sequence == handling.owner.0);
        decide(&View {
            thread: &handling.fold,
            now: self.world.now,
            me: name,
            wake: handling.delivery.wake,
            begun: handling.begun,
            owner: asked.map_or(Owner::Unasked, |_| handling.owner.1),
            armed: handling.armed,
            agents: &self.world.book,
            kept: ("kept", ""),
            evaluated: handling.evaluated.as_ref(),
            spans: Spans::default(),
        })
    }

    /// One step of a planner, decided from a fold that may be old.
    fn step(&mut self, planner: usize) {
        let Some(handling) = &self.planners[planner].handling else { return };
        if handling.live.is_some() {
            return;
        }
        let decision = self.view_and_decide(planner);
        self.reached.insert(decision.branch);
        let branch = decision.branch.as_str();
        self.trace.push(format!(
            "{} {branch} behind {}",
            self.planners[planner].name,
            self.world.last()
        ));
        let handling = self.planners[planner].handling.as_mut().unwrap();
        handling.steps += 1;
        assert!(handling.steps < MAX_STEPS, "no end: {:?}", decision.branch);
        match decision.step {
            Step::Fact(fact) => {
                let begins = matches!(*fact, Fact::TurnStarted(_));
                let landed = self.append_plan(planner, Leaf::Fact, Record::Fact(*fact));
                let handling = self.planners[planner].handling.as_mut().unwrap();
                if begins {
                    handling.evaluated = None;
                    handling.begun = landed;
                }
            }
            Step::Dispatch(call) => {
                let leaf = Leaf::ToolCall(call.tool.clone());
                self.append_plan(planner, leaf, Record::ToolCall(*call));
            }
            Step::Bar(id) => {
                let leaf = Leaf::Start(id.clone());
                if !self.world.has(&leaf) {
                    let by = self.planners[planner].name.clone();
                    let barred = Barred { tool_call_id: id, by, at: self.world.now };
                    self.world.append(leaf, Record::Start(Start::Barred(barred)));
                }
                self.refold(planner);
            }
            Step::Arm(at) => {
                if handling.fold.plan_last == self.world.thread.plan_last {
                    handling.armed = Armed::At(at);
                    self.unheld = self.unheld.filter(|_| !handling.void);
                    self.schedule = Some(at);
                } else {
                    self.refold(planner);
                }
            }
            Step::AskOwner(owner) => self.ask(planner, &owner),
            Step::Evaluate => {
                handling.evaluated = Some(match handling.steps % 3 {
                    0 => Evaluated::Fits,
                    1 => Evaluated::Breaks("no".into()),
                    _ => Evaluated::Overrun,
                });
            }
            Step::Hint(_) => {}
            Step::Reason => self.reason(planner),
            Step::HandBack(_) => self.hand_back(planner),
            Step::Rest => self.rest(planner),
        }
    }

    /// Appends behind the fold's last record of the chain, or is refused and reads again.
    fn append_plan(&mut self, planner: usize, leaf: Leaf, record: Record) -> Option<Sequence> {
        let handling = self.planners[planner].handling.as_ref().unwrap();
        let fits = handling.fold.plan_last == self.world.thread.plan_last;
        if let (true, Record::Fact(Fact::TurnStarted(started))) = (fits, &record) {
            self.unheld = handling.void.then_some(started.deadline);
        }
        let landed = fits.then(|| self.world.append(leaf, record));
        self.refold(planner);
        landed
    }

    fn refold(&mut self, planner: usize) {
        let handling = self.planners[planner].handling.as_mut().unwrap();
        handling.fold = self.world.thread.clone();
        handling.armed = Armed::Unknown;
    }

    fn ask(&mut self, planner: usize, owner: &InstanceId) {
        let handling = self.planners[planner].handling.as_ref().unwrap();
        let open = handling.fold.run.as_ref().unwrap().open.as_ref().unwrap().sequence;
        let works = self.planners.iter().any(|other| {
            let live = other.handling.as_ref().and_then(|handling| handling.live.as_ref());
            other.name == *owner && live.is_some_and(|(started, ..)| *started == open)
        });
        let answer = if works { Owner::Working } else { Owner::Gone };
        self.planners[planner].handling.as_mut().unwrap().owner = (open, answer);
    }

    fn reason(&mut self, planner: usize) {
        let handling = self.planners[planner].handling.as_mut().unwrap();
        let run = handling.fold.run.as_ref().unwrap();
        let open = run.open.as_ref().unwrap();
        let Some(agent) = self.world.book.0.get(&open.started.agent) else {
            return self.hand_back(planner);
        };
        prompt::request(&handling.fold, agent, &self.world.toolbox).unwrap();
        let live = LiveTurn::new(open.started.run, open.started.turn, open.sequence);
        handling.live = Some((open.sequence, live, handling.fold.plan_last));
        handling.begun = None;
        handling.position = 0;
    }

    /// Nothing is left to do, so far as the planner knows: the delivery is acknowledged, for
    /// whoever holds it.
    fn rest(&mut self, planner: usize) {
        let handling = self.planners[planner].handling.take().unwrap();
        let sequence = handling.delivery.wake.sequence;
        self.trace.push(format!("{sequence} is acknowledged"));
        self.waiting.retain(|delivery| delivery.wake.sequence != sequence);
        let open = self.world.thread.run.as_ref().and_then(|run| run.open.as_ref());
        for other in &mut self.planners {
            let same = |handling: &&mut Handling| handling.delivery.wake.sequence == sequence;
            let Some(handling) = other.handling.as_mut().filter(same) else { continue };
            handling.void = true;
            if let Some(open) = open.filter(|open| open.started.owner == other.name) {
                self.unheld = Some(open.started.deadline);
            }
        }
    }

    /// One event of a reply, if one streams.
    fn reply(&mut self, planner: usize, choice: u8) {
        let Some(handling) = self.planners[planner].handling.as_mut() else { return };
        let Some((started, mut live, chain)) = handling.live.take() else { return };
        match choice % 8 {
            0..=3 => {
                let chain = self.call(planner, &mut live, chain, choice);
                let handling = self.planners[planner].handling.as_mut().unwrap();
                match chain {
                    Some(chain) => handling.live = Some((started, live, chain)),
                    None => self.refold(planner),
                }
            }
            4 => {
                live.say("words ");
                handling.live = Some((started, live, chain));
            }
            5 if !live.is_untouched() => {
                let fact = Fact::TurnSealed(live.seal(SealReason::StreamBroken));
                self.end_turn(planner, chain, fact);
            }
            _ => {
                let usage = Some(Usage { prompt_tokens: 10, ..Usage::default() });
                let (finish, model, opaque) = (None, None, None);
                let end = ReplyEnd { finish, usage, model, confidence: None, answer: None, opaque };
                self.end_turn(planner, chain, Fact::TurnCompleted(live.complete(end, "m")));
            }
        }
    }

    fn end_turn(&mut self, planner: usize, chain: Sequence, fact: Fact) {
        if chain == self.world.thread.plan_last {
            self.world.append(Leaf::Fact, Record::Fact(fact));
        }
        self.refold(planner);
    }

    /// The model asks for a call; answers with the chain unless somebody else moved it.
    fn call(
        &mut self,
        planner: usize,
        live: &mut LiveTurn,
        chain: Sequence,
        choice: u8,
    ) -> Option<Sequence> {
        self.ids += 1;
        let id = call_id(&format!("c{}", self.ids));
        let handling = self.planners[planner].handling.as_mut().unwrap();
        let position = handling.position;
        handling.position += 1;
        let tool = TOOLS[usize::from(choice / 4) % TOOLS.len()].to_owned();
        let ready = ReadyCall { position, name: tool, arguments: arguments("a"), opaque: None };
        let thread = &handling.fold;
        let name = thread.agent.as_ref().unwrap();
        let agent = &self.world.book.0.get(name).cloned().unwrap_or_else(second);
        let toolbox = &self.world.toolbox;
        let judge = Judge { thread, agent, toolbox, tainted: thread.is_tainted() };
        let spans = Spans::default();
        let early = live.call_ready(&judge, id.clone(), ready, self.world.now, spans);
        let Some(record) = early else { return Some(chain) };
        if chain != self.world.thread.plan_last {
            return None;
        }
        live.dispatched(id);
        Some(self.world.append(Leaf::ToolCall(record.tool.clone()), Record::ToolCall(record)))
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

fn run(events: &[(u8, u8)]) -> Sim {
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

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn in_any_order_every_record_keeps_the_invariants_and_all_comes_to_rest(
        events in prop::collection::vec(any::<(u8, u8)>(), 10..250),
    ) {
        run(&events);
    }
}

#[test]
fn the_small_world_reaches_every_branch() {
    let mut reached = BTreeSet::new();
    let mut seed: u32 = 7;
    for world in 0..300 {
        let mut next = || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 24).to_le_bytes()[0]
        };
        // All kinds of events, or mostly crashes, approvals or cancels.
        let (mix, choices): (&[u8], u8) = match world % 4 {
            0 => (&[], 0),
            1 => (&[0, 2, 3, 6, 7, 8, 12, 15, 15, 22], 48),
            2 => (&[0, 2, 3, 6, 7, 8, 9, 12, 13, 19, 19], 48),
            _ => (&[0, 2, 3, 6, 7, 8, 9, 12, 12, 16, 16, 23], 110),
        };
        let events: Vec<(u8, u8)> = (0..200)
            .map(|_| match mix {
                [] => (next(), next()),
                mix => (mix[usize::from(next()) % mix.len()], choices + next() % 60),
            })
            .collect();
        reached.extend(run(&events).reached);
    }
    let missed: Vec<&str> =
        Branch::ALL.iter().filter(|branch| !reached.contains(branch)).map(|b| b.as_str()).collect();
    assert_eq!(missed, Vec::<&str>::new());
}

/// A planner streams on although another one, to whom its delivery came too, acknowledged it.
#[test]
fn a_turn_without_a_delivery_is_watched_until_its_end() {
    run(&[
        (93, 244),
        (122, 77),
        (212, 44),
        (111, 134),
        (2, 94),
        (6, 109),
        (24, 0),
        (2, 9),
        (6, 13),
        (30, 7),
    ]);
}

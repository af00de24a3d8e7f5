//! A journal, agents and tools in memory; every record is judged as it lands.

use std::collections::{BTreeMap, BTreeSet};

use invariants::Checker;
use planner_core::phase::{Phase, may_become, phase};
use planner_core::telling::Teller;
use planner_core::thread::Thread;
use planner_core::toolbox::Toolbox;
use planner_core::view::Agents;
use proto::agent::{Agent, EarlyDispatch, Limits, Protocol, Verify};
use proto::call::{Start, Started};
use proto::event::Event;
use proto::fact::Fact;
use proto::hash::fingerprint;
use proto::ids::{
    AgentName, InputKey, InstanceId, Nonce, Partition, Sequence, TenantId, ThreadId, ThreadRef,
    ToolCallId, ToolName,
};
use proto::input::{Input, InputBody, Source};
use proto::observation::{Observation, Stamp};
use proto::record::{Placed, Record};
use proto::subject::Leaf;
use proto::time::Timestamp;
use proto::tool::{Approval, Effect, Retry, ToolContract};
use serde_json::{Value, json};

pub(crate) fn place() -> ThreadRef {
    let tenant = TenantId::new("acme").unwrap();
    ThreadRef { partition: Partition(0), tenant, thread: ThreadId::from_parts(1, 1) }
}

/// `c7` stands for the id `c00000007`.
pub(crate) fn call_id(short: &str) -> ToolCallId {
    let number: u32 = short.trim_start_matches('c').parse().unwrap();
    ToolCallId::new(format!("c{number:08}")).unwrap()
}

pub(crate) fn short(id: &ToolCallId) -> String {
    format!("c{}", id.as_str()[1..].parse::<u32>().unwrap())
}

pub(crate) fn instance(name: &str) -> InstanceId {
    InstanceId::new(name).unwrap()
}

pub(crate) fn agent(name: &str) -> Agent {
    let tools =
        ["probe", "note", "deploy", "restart", "erase", "mail", "refund", "secret", "ghost"];
    Agent {
        name: AgentName::new(name).unwrap(),
        role: "You keep a service healthy.".into(),
        instructions: vec!["Be careful.".into()],
        model: "m".into(),
        temperature: None,
        context_window: 32_000,
        context_window_ratio: 0.7,
        protocol: Protocol::Native,
        early_dispatch: EarlyDispatch::Safe,
        tools: tools.iter().map(|name| ToolName::new(*name).unwrap()).collect(),
        permissions: Vec::new(),
        limits: Limits::default(),
        end_intent: true,
        output_schema: None,
        fallbacks: Vec::new(),
        price: None,
        verify: Verify::Off,
        prices: BTreeMap::new(),
        memory: proto::agent::MemoryUse::default(),
        profile: None,
        approval_ms: 600_000,
        fingerprint: fingerprint(name),
    }
}

fn contract(name: &str, effect: Effect, approval: Approval) -> ToolContract {
    ToolContract {
        name: ToolName::new(name).unwrap(),
        description: format!("{name}, for tests"),
        parameters: json!({
            "type": "object",
            "properties": {"x": {"type": "string"}},
            "additionalProperties": false
        }),
        effect,
        timeout_ms: 3000,
        retry: Retry { max_attempts: 1, backoff_ms: 500 },
        deadlines: proto::tool::Deadlines::default(),
        approval,
        permissions: if name == "secret" { vec!["root".into()] } else { Vec::new() },
        result_tokens: 300,
        result_schema: None,
        fingerprint: fingerprint(name),
    }
}

pub(crate) fn toolbox() -> Toolbox {
    let (toolbox, broken) = Toolbox::new([
        contract("probe", Effect::ReadOnly, Approval::Never),
        contract("note", Effect::Idempotent, Approval::Never),
        contract("deploy", Effect::Checkable, Approval::Never),
        contract("restart", Effect::Irreversible, Approval::Never),
        contract("erase", Effect::Irreversible, Approval::Always),
        contract("mail", Effect::Irreversible, Approval::WhenTainted),
        contract("refund", Effect::Irreversible, Approval::When("size(x) > 2".into())),
        contract("secret", Effect::ReadOnly, Approval::Never),
    ]);
    assert_eq!(broken, Vec::new());
    toolbox
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Book(pub(crate) BTreeMap<AgentName, Agent>);

impl Agents for Book {
    fn agent(&self, name: &AgentName) -> Option<&Agent> {
        self.0.get(name)
    }
}

/// A record as it lies in the journal.
#[derive(Clone, Debug)]
pub(crate) enum Lying {
    Record(Leaf, Box<Placed>),
    Poison(Sequence, Timestamp),
}

impl Lying {
    fn fold_into(&self, thread: &mut Thread) {
        match self {
            Self::Record(leaf, placed) => thread.apply(leaf, placed),
            Self::Poison(at, time) => thread.apply_poison(&Leaf::In, *at, *time, "not JSON".into()),
        }
    }
}

/// What one record may lead to; the phases in between last no time.
fn one_record_leads(before: Phase, after: Phase) -> bool {
    matches!(
        (before, after),
        (Phase::Terminating, Phase::Initializing)
            | (
                Phase::Initializing | Phase::Observing | Phase::Evaluating | Phase::Terminating,
                Phase::Reasoning
            )
            | (Phase::Reasoning, Phase::Acting | Phase::Evaluating | Phase::Observing)
            | (Phase::Acting, Phase::Evaluating | Phase::Observing)
    )
}

/// What a reader was told.
struct Told {
    teller: Teller,
    last: Phase,
    keys: BTreeSet<InputKey>,
}

impl Default for Told {
    fn default() -> Self {
        Self { teller: Teller::new(place()), last: Phase::Terminating, keys: BTreeSet::new() }
    }
}

impl Told {
    /// A reader sees legal transitions only, and in the end the phase of the fold; and each input
    /// that the fold takes once.
    fn judge(&mut self, leaf: &Leaf, placed: &Placed, thread: &Thread, ended: bool) {
        let told = self.teller.record(leaf, placed);
        for told in &told {
            let Event::Phase { phase: next, .. } = told.event else { continue };
            let legal = next == self.last || may_become(self.last, next);
            assert!(legal, "{} became {next}", self.last);
            self.last = next;
        }
        let inputs = told.iter().filter(|told| matches!(told.event, Event::Input { .. })).count();
        let is_new =
            matches!(&placed.record, Record::Input(input) if self.keys.insert(input.key.clone()));
        assert_eq!(inputs, usize::from(is_new), "{placed:?}");
        let expected = if ended { Phase::Terminating } else { phase(thread) };
        assert_eq!(self.last, expected);
        assert_eq!(self.teller.thread(), thread);
    }
}

/// The journal of one thread, its fold, and the time.
pub(crate) struct World {
    pub(crate) now: Timestamp,
    pub(crate) records: Vec<Lying>,
    pub(crate) thread: Thread,
    pub(crate) book: Book,
    pub(crate) toolbox: Toolbox,
    checker: Checker,
    told: Told,
}

impl World {
    pub(crate) fn new() -> Self {
        let main = agent("main");
        Self {
            now: Timestamp(1_000_000),
            records: Vec::new(),
            thread: Thread::new(place()),
            book: Book(BTreeMap::from([(main.name.clone(), main)])),
            toolbox: toolbox(),
            checker: Checker::new(),
            told: Told::default(),
        }
    }

    pub(crate) fn last(&self) -> Sequence {
        self.thread.head.sequence
    }

    /// Whether something lies on a subject.
    pub(crate) fn has(&self, wanted: &Leaf) -> bool {
        self.records.iter().any(|lying| matches!(lying, Lying::Record(leaf, _) if leaf == wanted))
    }

    /// Writes a record that nobody can decode.
    pub(crate) fn poison(&mut self) -> Sequence {
        let sequence = self.last().next();
        let lying = Lying::Poison(sequence, self.now);
        lying.fold_into(&mut self.thread);
        self.told.teller.poison(&Leaf::In, sequence, self.now, "not JSON".into());
        self.records.push(lying);
        sequence
    }

    /// Writes a record behind the others and folds it.
    pub(crate) fn append(&mut self, leaf: Leaf, record: Record) -> Sequence {
        let sequence = self.last().next();
        let nonce = Nonce::new(format!("{:016x}", sequence.0)).unwrap();
        let placed = Placed { sequence, at: self.now, nonce, record };
        let broken = self.checker.push(&placed);
        assert_eq!(broken, Vec::new(), "{placed:?}");
        let before = phase(&self.thread);
        self.thread.apply(&leaf, &placed);
        self.judge_phase(before, &leaf, &placed);
        self.records.push(Lying::Record(leaf, Box::new(placed)));
        sequence
    }

    fn judge_phase(&mut self, before: Phase, leaf: &Leaf, placed: &Placed) {
        let (after, record) = (phase(&self.thread), &placed.record);
        let ended = matches!(record, Record::Fact(Fact::RunFinished(_)));
        let legal = if ended {
            matches!(after, Phase::Terminating | Phase::Initializing)
        } else {
            before == after || one_record_leads(before, after)
        };
        assert!(legal, "{before} became {after} by {record:?}");
        self.told.judge(leaf, placed, &self.thread, ended);
    }

    pub(crate) fn input(&mut self, key: &str, body: InputBody) -> Sequence {
        let key = InputKey::new(key).unwrap();
        let input = Input { key, source: Source::Client, body };
        self.append(Leaf::In, Record::Input(input))
    }

    pub(crate) fn observe(&mut self, observation: Observation) -> Sequence {
        self.append(Leaf::Observation, Record::Observation(observation))
    }

    /// A worker's attempt begins, if the start subject is free for it.
    pub(crate) fn start(&mut self, id: &ToolCallId, until: Timestamp) -> Option<Sequence> {
        let leaf = Leaf::Start(id.clone());
        let started = Started {
            tool_call_id: id.clone(),
            attempt: 1,
            worker: instance("w1"),
            host: "host-a".into(),
            process_group: None,
            at: self.now,
            until,
        };
        (!self.has(&leaf)).then(|| self.append(leaf, Record::Start(Start::Started(started))))
    }

    /// What the invariants say once nothing is under way.
    pub(crate) fn judge_rest(&self) {
        assert_eq!(self.checker.at_rest(), Vec::new());
    }

    /// The fold is the same in one go, in two parts, and when everything is delivered twice.
    pub(crate) fn judge_fold(&self) {
        for cut in [0, self.records.len() / 2, self.records.len()] {
            let mut thread = Thread::new(place());
            self.records[..cut].iter().for_each(|lying| lying.fold_into(&mut thread));
            let mut whole = thread.clone();
            self.records.iter().for_each(|lying| lying.fold_into(&mut whole));
            assert_eq!(whole, self.thread);
        }
    }
}

/// A worker's result.
pub(crate) fn result(id: &ToolCallId, text: &str, at: Timestamp) -> Observation {
    Observation {
        tool_call_id: id.clone(),
        attempt: 1,
        code: None,
        content: text.into(),
        artifact: None,
        receipt: None,
        stamp: Some(Stamp {
            worker: instance("w1"),
            fingerprint: fingerprint("any"),
            arguments_hash: proto::hash::arguments_hash(&serde_json::Map::new()),
            started_at: at,
            duration_ms: 1,
            from: None,
            fallback: 0,
        }),
    }
}

pub(crate) fn arguments(x: &str) -> serde_json::Map<String, Value> {
    let object = if x.is_empty() { json!({}) } else { json!({"x": x}) };
    object.as_object().unwrap().clone()
}

/// A call of run 1 as the fold keeps it once it was answered.
pub(crate) fn answered(
    id: &ToolCallId,
    tool: &str,
    x: &str,
    turn: u32,
    observation: Observation,
) -> planner_core::thread::Call {
    let terms = toolbox().get(tool).map(|tool| planner_core::calls::terms(&tool.contract));
    planner_core::thread::Call {
        requested: proto::call::RequestedCall {
            tool_call_id: id.clone(),
            tool: tool.into(),
            arguments: arguments(x),
            opaque: None,
            terms,
            disposition: proto::call::Disposition::Dispatch,
            corrected: Vec::new(),
            asked_because: None,
        },
        run: 1,
        turn,
        position: 0,
        asked: None,
        decision: None,
        dispatched: None,
        start: planner_core::thread::StartState::None,
        closed: Some(observation),
        late: None,
    }
}

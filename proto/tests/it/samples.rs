//! One message of every kind, with every field in use somewhere.

use proto::agent::{Agent, EarlyDispatch, Limits, Price, Profile, Protocol, Verify};
use proto::call::{
    Approved, Barred, Disposition, Hold, Holder, RequestedCall, Start, Started, Terms, ToolCall,
};
use proto::envelope::Envelope;
use proto::error_code::ErrorCode;
use proto::event::{Event, ThreadEvent, events_of};
use proto::fact::{
    ActiveRun, ApprovalAsked, Checkpoint, Counted, EndReason, Estimator, Fact, KnownCall, Outcome,
    Restored, RunFinished, SealReason, Standing, TurnCompleted, TurnSealed, TurnStarted, Usage,
};
use proto::freeze::{Freeze, FreezeTarget};
use proto::hash;
use proto::ids::{
    AgentName, ArgumentsHash, Fingerprint, InputKey, InstanceId, Nonce, Partition, Sequence,
    TenantId, ThreadId, ThreadRef, ToolCallId, ToolName,
};
use proto::input::{Decision, Input, InputBody, Message, Source};
use proto::live::{Channel, Hint, LiveText};
use proto::notice::{Deadline, LiveNotice, Next, Notice};
use proto::observation::{ArtifactRef, Observation, Receipt, Stamp};
use proto::phase::{Phase, Waiting};
use proto::record::{Placed, Record};
use proto::time::Timestamp;
use proto::tool::{Approval, Effect, Registration, Retry, ToolContract};
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Name of the fixture and the text of the message.
pub(crate) fn all() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for (name, record) in records() {
        let envelope = envelope(record.clone());
        let bytes = envelope.encode();
        all.push((format!("envelope.{name}"), String::from_utf8(bytes).unwrap()));
        for (index, event) in events(record).into_iter().enumerate() {
            all.push((format!("event.{name}.{index}"), text(&event)));
        }
    }
    all.push((
        "event.phase".into(),
        text(&placed(Event::Phase {
            phase: Phase::Acting,
            waiting_for: Some(Waiting::Observation),
        })),
    ));
    all.push((
        "event.late".into(),
        text(&placed(Event::Observation {
            tool_call_id: call_id(),
            code: None,
            content: "up".into(),
            receipt: None,
            duration_ms: Some(1),
            late: true,
        })),
    ));
    all.push(("agent.full".into(), text(&agent())));
    all.push(("registration.full".into(), text(&registration())));
    for (name, target) in [
        ("all", FreezeTarget::All),
        ("tenant", FreezeTarget::Tenant(thread().tenant)),
        ("tool", FreezeTarget::Tool(tool())),
    ] {
        all.push((format!("freeze.{name}"), text(&freeze(target))));
    }
    all.push(("live_text.text".into(), text(&live(Channel::Text))));
    all.push(("live_text.reasoning".into(), text(&live(Channel::Reasoning))));
    for (name, notice) in notices() {
        let started = Sequence(5);
        all.push((format!("live_notice.{name}"), text(&LiveNotice { started, turn: 2, notice })));
    }
    for (name, event) in unrecorded() {
        all.push((format!("event.{name}"), text(&placed(event))));
    }
    let profiled = Agent { profile: Some(Profile::LlamaCpp), ..agent() };
    all.push(("agent.profiled".into(), text(&profiled)));
    all.push(("hint.cancel_call".into(), text(&Hint::CancelCall { tool_call_id: call_id() })));
    all.push(("hint.stop_turn".into(), text(&Hint::StopTurn)));
    all
}

fn unrecorded() -> [(&'static str, Event); 4] {
    let (deadline, next) = (Deadline::Call, Next::CallClosed);
    let tool_call_id = Some(call_id());
    let passed = Event::DeadlinePassed { deadline, next, turn: None, tool_call_id };
    let (because, at_most_ms) = ("the endpoint is busy".to_owned(), Some(500));
    let waiting = Event::Waiting { turn: 2, because, at_most_ms };
    let because = "Qdrant does not answer".to_owned();
    let (channel, delta) = (Channel::Text, "art".to_owned());
    [
        ("deadline_passed", passed),
        ("waiting", waiting),
        ("without_memory", Event::WithoutMemory { turn: 2, because }),
        ("delta_of_draft", Event::Delta { turn: 2, channel, offset: 7, delta, draft: true }),
    ]
}

fn text<T: Serialize>(value: &T) -> String {
    serde_json::to_string(value).unwrap()
}

pub(crate) fn envelope(body: Record) -> Envelope {
    let traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".to_owned();
    Envelope::new(Nonce::new("00ff00ff00ff00ff").unwrap(), Some(traceparent), body)
}

/// An event that no single record tells.
fn placed(event: Event) -> ThreadEvent {
    ThreadEvent { thread: thread().thread, sequence: Sequence(7), at: Some(at(0)), event }
}

fn events(record: Record) -> Vec<ThreadEvent> {
    let nonce = Nonce::new("00ff00ff00ff00ff").unwrap();
    let placed = Placed { sequence: Sequence(7), at: at(0), nonce, record };
    events_of(thread().thread, &placed)
}

pub(crate) fn thread() -> ThreadRef {
    let thread = ThreadId::from_parts(1_700_000_000_000, 42);
    ThreadRef { partition: Partition(0), tenant: TenantId::new("acme").unwrap(), thread }
}

pub(crate) fn call_id() -> ToolCallId {
    ToolCallId::new("abc123xyz").unwrap()
}

pub(crate) fn at(later: i64) -> Timestamp {
    Timestamp(1_700_000_000_000 + later)
}

pub(crate) fn tool() -> ToolName {
    ToolName::new("restart_service").unwrap()
}

pub(crate) fn agent_name() -> AgentName {
    AgentName::new("ops").unwrap()
}

fn instance() -> InstanceId {
    InstanceId::new("worker-1").unwrap()
}

fn fingerprint() -> Fingerprint {
    hash::fingerprint("a tool")
}

fn arguments() -> Map<String, Value> {
    json!({"service": "web", "count": 2, "ratio": 0.5, "tags": ["a"]}).as_object().cloned().unwrap()
}

pub(crate) fn arguments_hash() -> ArgumentsHash {
    hash::arguments_hash(&arguments())
}

pub(crate) fn opaque() -> Value {
    json!({"thought_signature": "c2ln"})
}

pub(crate) fn usage() -> Usage {
    Usage { prompt_tokens: 100, completion_tokens: 20, micro_usd: Some(35) }
}

fn terms() -> Terms {
    Terms {
        effect: Effect::Irreversible,
        fingerprint: fingerprint(),
        timeout_ms: 15_000,
        retry: Retry { max_attempts: 2, backoff_ms: 250 },
        deadlines: proto::tool::Deadlines::default(),
    }
}

pub(crate) fn observation() -> Observation {
    let artifact = ArtifactRef { id: hash::artifact_id(b"all of it"), bytes: 9 };
    let stamp = Stamp {
        worker: instance(),
        fingerprint: fingerprint(),
        arguments_hash: arguments_hash(),
        started_at: at(10),
        duration_ms: 25,
        from: None,
        fallback: 0,
    };
    Observation {
        tool_call_id: call_id(),
        attempt: 1,
        code: None,
        content: "restarted \u{1f600}".into(),
        artifact: Some(artifact),
        receipt: None,
        stamp: Some(stamp),
    }
}

pub(crate) fn failed() -> Observation {
    Observation::synthesised(call_id(), ErrorCode::InDoubt, "nobody can tell")
        .with_receipt(Receipt::Unknown)
}

pub(crate) fn message(text: &str) -> Message {
    Message {
        text: text.into(),
        agent: Some(agent_name()),
        approve: vec![tool()],
        complexity: Some(3),
    }
}

fn input(key: &str, body: InputBody) -> Record {
    let source = Source::default();
    Record::Input(Input { key: InputKey::new(key).unwrap(), source, body })
}

pub(crate) fn requested(disposition: Disposition) -> RequestedCall {
    RequestedCall {
        tool_call_id: call_id(),
        tool: "restart_service".into(),
        arguments: arguments(),
        opaque: Some(opaque()),
        terms: Some(terms()),
        disposition,
        corrected: Vec::new(),
        asked_because: None,
    }
}

pub(crate) fn started() -> TurnStarted {
    TurnStarted {
        run: 1,
        turn: 2,
        start: 1,
        seen: Sequence(4),
        owner: InstanceId::new("planner-1").unwrap(),
        held_by: Sequence(4),
        deadline: at(60_000),
        agent: agent_name(),
        agent_fingerprint: fingerprint(),
        note: Some("Your answer was not JSON.".into()),
        verify: None,
        recalled: Vec::new(),
        draft: false,
    }
}

fn completed(calls: Vec<RequestedCall>) -> TurnCompleted {
    TurnCompleted {
        run: 1,
        turn: 2,
        started: Sequence(5),
        text: "I restart it.".into(),
        reasoning: "It is ill.".into(),
        calls,
        model: "m-1".into(),
        usage: usage(),
        confidence: Some(0.75),
        opaque: Some(opaque()),
        counted: None,
    }
}

fn sealed() -> TurnSealed {
    TurnSealed {
        run: 1,
        turn: 2,
        started: Sequence(5),
        text: "I rest".into(),
        reasoning: "It is".into(),
        calls: vec![requested(Disposition::Dispatch)],
        why: SealReason::OwnerLost,
        usage: usage(),
    }
}

pub(crate) fn asked() -> ApprovalAsked {
    ApprovalAsked {
        tool_call_id: call_id(),
        tool: tool(),
        arguments_hash: arguments_hash(),
        fingerprint: fingerprint(),
        expires: at(900_000),
        because: String::new(),
    }
}

pub(crate) fn finished() -> RunFinished {
    RunFinished {
        run: 1,
        seen: Sequence(6),
        outcome: Outcome::Failed,
        reason: EndReason::Error,
        code: Some(ErrorCode::CrashLoop),
        answer: "Known so far: it is ill.".into(),
        turns: 2,
        calls: 1,
        usage: usage(),
        unevaluated: true,
        verification: None,
    }
}

pub(crate) fn tool_call() -> ToolCall {
    ToolCall {
        tool_call_id: call_id(),
        run: 1,
        turn: 2,
        position: 0,
        tool: tool(),
        arguments: arguments(),
        arguments_hash: arguments_hash(),
        terms: terms(),
        start_by: at(20_000),
        deadline: at(30_000),
        idempotency_key: "acme/1/abc123xyz".into(),
        approved: Some(Approved {
            by: "pre-approved".into(),
            arguments_hash: arguments_hash(),
            fingerprint: None,
        }),
        opaque: Some(opaque()),
    }
}

pub(crate) fn start() -> Started {
    Started {
        tool_call_id: call_id(),
        attempt: 1,
        worker: instance(),
        host: "node-1".into(),
        process_group: Some(4711),
        at: at(10),
        until: at(20_010),
    }
}

fn hold() -> Hold {
    let holder = Holder {
        thread: thread(),
        tool_call_id: call_id(),
        tool: tool(),
        worker: instance(),
        at: at(10),
        until: at(20_010),
    };
    let resource = "service/web".to_owned();
    Hold { resource, holder: Some(holder), began: vec![at(10)], ended: Some(at(0)) }
}

/// One record of every kind.
pub(crate) fn records() -> Vec<(&'static str, Record)> {
    let fact = Record::Fact;
    let decision = Decision {
        tool_call_id: call_id(),
        approve: true,
        arguments_hash: arguments_hash(),
        fingerprint: None,
        by: "ada".into(),
        note: "go on".into(),
    };
    let parent = Input {
        key: InputKey::new("p-1").unwrap(),
        source: Source::Parent { thread: thread(), tool_call_id: call_id() },
        body: InputBody::Message(Message::text("Look into it.")),
    };
    let barred = Barred { tool_call_id: call_id(), by: instance(), at: at(10) };
    let answered = Disposition::Answered(Box::new(failed()));
    let calls = vec![requested(Disposition::AwaitApproval), requested(answered)];
    let (model, by) = ("m-1".to_owned(), Estimator::Encoding);
    let count = Counted { model, by, estimated: 90, counted: 100 };
    let counted = TurnCompleted { counted: Some(count), ..completed(Vec::new()) };
    let draft = TurnStarted { draft: true, ..started() };
    vec![
        ("input_message", input("k-1", InputBody::Message(message("Repair it.")))),
        ("input_steer", input("k-2", InputBody::Steer(message("Also look at the disk.")))),
        ("input_interrupt", input("k-3", InputBody::Interrupt(message("Stop, do this.")))),
        ("input_cancel", input("k-4", InputBody::Cancel { reason: "not needed".into() })),
        ("input_decision", input("k-5", InputBody::Decision(decision))),
        ("input_from_parent", Record::Input(parent)),
        ("turn_started", fact(Fact::TurnStarted(started()))),
        ("turn_started_draft", fact(Fact::TurnStarted(draft))),
        ("turn_completed", fact(Fact::TurnCompleted(completed(calls)))),
        ("turn_completed_counted", fact(Fact::TurnCompleted(counted))),
        ("turn_sealed", fact(Fact::TurnSealed(sealed()))),
        ("call_closed", fact(Fact::CallClosed { observation: failed() })),
        ("approval_asked", fact(Fact::ApprovalAsked(asked()))),
        ("run_finished", fact(Fact::RunFinished(finished()))),
        ("checkpoint", fact(Fact::Checkpoint(checkpoint()))),
        ("restored", fact(Fact::Restored(restored()))),
        ("parked", fact(Fact::Parked { sequence: Sequence(3), why: "not JSON".into() })),
        ("tool_call", Record::ToolCall(tool_call())),
        ("started", Record::Start(Start::Started(start()))),
        ("barred", Record::Start(Start::Barred(barred))),
        ("held", Record::Start(Start::Held(hold()))),
        ("observation", Record::Observation(observation())),
        ("observation_failed", Record::Observation(failed())),
        ("tick", Record::Tick),
    ]
}

fn checkpoint() -> Checkpoint {
    Checkpoint {
        state: ArtifactRef { id: hash::artifact_id(b"the state"), bytes: 4096 },
        standing: Standing { folded: Sequence(9), runs: 1, run: None, unread: Vec::new() },
        replaces: Vec::new(),
    }
}

fn restored() -> Restored {
    let call = KnownCall {
        tool_call_id: call_id(),
        turn: 2,
        named: true,
        asks: false,
        dispatched: true,
        answered: true,
    };
    let open = Some((Sequence(4), 1));
    let run = ActiveRun { number: 1, turns: 3, open, calls: vec![call] };
    let (folded, unread) = (Sequence(9), vec![Sequence(8)]);
    Restored {
        after: Sequence(7),
        state: ArtifactRef { id: hash::artifact_id(b"the state"), bytes: 4096 },
        again: vec![call_id()],
        doubts: vec![failed()],
        finished: Some(Box::new(finished())),
        standing: Standing { folded, runs: 1, run: Some(run), unread },
    }
}

fn notices() -> Vec<(&'static str, Notice)> {
    let (deadline, next) = (Deadline::FirstToken, Next::AskedAgain);
    let because = "the endpoint is busy".to_owned();
    vec![
        ("deadline_passed", Notice::DeadlinePassed { deadline, next }),
        ("waiting", Notice::Waiting { because: because.clone(), at_most_ms: None }),
        ("without_memory", Notice::WithoutMemory { because }),
    ]
}

fn live(channel: Channel) -> LiveText {
    LiveText { started: Sequence(5), turn: 2, offset: 7, channel, delta: "art".into() }
}

fn agent() -> Agent {
    Agent {
        name: agent_name(),
        role: "You repair services.".into(),
        instructions: vec!["Look before you act.".into()],
        model: "m-1".into(),
        temperature: Some(0.25),
        context_window: 128_000,
        context_window_ratio: 0.75,
        protocol: Protocol::Contract,
        early_dispatch: EarlyDispatch::All,
        tools: vec![tool()],
        permissions: vec!["ops".into()],
        limits: Limits::default(),
        end_intent: false,
        output_schema: Some(json!({"type": "object"})),
        fallbacks: Vec::new(),
        verify: Verify::Chain,
        price: Some(Price { input_nano_usd: 150, output_nano_usd: 600 }),
        prices: [("m-2".to_owned(), Price { input_nano_usd: 50, output_nano_usd: 200 })].into(),
        memory: proto::agent::MemoryUse::default(),
        profile: None,
        approval_ms: 900_000,
        fingerprint: fingerprint(),
    }
}

fn freeze(target: FreezeTarget) -> Freeze {
    Freeze { target, reason: "incident 7".into(), by: "ann".into(), at: at(0) }
}

fn registration() -> Registration {
    let contract = ToolContract {
        name: tool(),
        description: "Restart one service.".into(),
        parameters: json!({"type": "object", "properties": {"service": {"type": "string"}}}),
        effect: Effect::Checkable,
        timeout_ms: 15_000,
        retry: Retry { max_attempts: 2, backoff_ms: 250 },
        deadlines: proto::tool::Deadlines::default(),
        approval: Approval::WhenTainted,
        permissions: vec!["ops".into()],
        result_tokens: 200,
        result_schema: Some(json!({"type": "object"})),
        fingerprint: fingerprint(),
    };
    Registration { worker: instance(), tools: vec![contract] }
}

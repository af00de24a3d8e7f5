//! Histories from words.
//!
//! `msg` `steer` `cancel` inputs · `turn` starts the next turn · `call:a` dispatches call `a` for it
//! · `end:a,b` completes it naming calls (`b?` waits for approval, `c!` is answered) · `seal:a` ·
//! `obs:a` · `close:a` · `go:a` a start, `bar:a` · `stop` and `finish` end the run · `keep` a
//! checkpoint. `key=value` after a word overrides: `turn:seen=1`, `call:a:effect=irreversible`,
//! `go:a:attempt=2`.

use std::collections::BTreeMap;

use proto::call::{Approved, Barred, Disposition, RequestedCall, Start, Started, Terms, ToolCall};
use proto::error_code::ErrorCode;
use proto::fact::{
    Checkpoint, EndReason, Fact, Outcome, RunFinished, SealReason, Standing, TurnCompleted,
    TurnSealed, TurnStarted, Usage,
};
use proto::hash::{arguments_hash, artifact_id, fingerprint};
use proto::ids::{AgentName, InputKey, InstanceId, Nonce, Sequence, ToolCallId, ToolName};
use proto::input::{Input, InputBody, Message, Source};
use proto::observation::{ArtifactRef, Observation};
use proto::record::{Placed, Record};
use proto::time::Timestamp;
use proto::tool::{Effect, Retry};

pub(crate) fn history(words: &str) -> Vec<Placed> {
    let mut state = Writer { run: 1, ..Writer::default() };
    words.split_whitespace().for_each(|word| state.write(word));
    state.placed
}

/// What the words leave open.
#[derive(Default)]
struct Writer {
    placed: Vec<Placed>,
    sequence: u64,
    run: u32,
    turn: u32,
    start: u32,
    open: bool,
    started: u64,
    calls: u32,
}

/// One word: its verb, its subject, its overrides.
struct Word<'a> {
    verb: &'a str,
    subject: &'a str,
    set: BTreeMap<&'a str, &'a str>,
}

impl<'a> Word<'a> {
    fn parse(word: &'a str) -> Self {
        let mut parts = word.split(':');
        let verb = parts.next().unwrap();
        let (set, subjects): (Vec<_>, Vec<_>) = parts.partition(|part| part.contains('='));
        let set = set.into_iter().map(|part| part.split_once('=').unwrap()).collect();
        Self { verb, subject: subjects.first().copied().unwrap_or(""), set }
    }

    fn number<N: std::str::FromStr>(&self, key: &str, otherwise: N) -> N {
        self.set.get(key).and_then(|text| text.parse().ok()).unwrap_or(otherwise)
    }
}

impl Writer {
    fn write(&mut self, word: &str) {
        let word = Word::parse(word);
        self.sequence = word.number("at", self.sequence + 1);
        let record = self.record(&word);
        self.placed.push(Placed {
            sequence: Sequence(self.sequence),
            at: Timestamp(i64::try_from(self.sequence).unwrap()),
            nonce: Nonce::new(format!("{:016x}", self.sequence)).unwrap(),
            record,
        });
    }

    fn record(&mut self, word: &Word<'_>) -> Record {
        match word.verb {
            "msg" => self.input(word, InputBody::Message(Message::text("go"))),
            "steer" => self.input(word, InputBody::Steer(Message::text("left"))),
            "cancel" => self.input(word, InputBody::Cancel { reason: String::new() }),
            "turn" => self.turn(word),
            "end" => self.end(word),
            "seal" => self.seal(word),
            "call" => self.call(word),
            "obs" => Record::Observation(observation(word.subject, 1)),
            "close" => Record::Fact(Fact::CallClosed { observation: observation(word.subject, 0) }),
            "go" => Record::Start(started(word)),
            "bar" => Record::Start(barred(word)),
            "finish" => self.finish(word, Outcome::Answered, EndReason::Answer),
            "stop" => self.finish(word, Outcome::Stopped, EndReason::Cancelled),
            "keep" => self.checkpoint(),
            "tick" => Record::Tick,
            other => panic!("no word `{other}`"),
        }
    }

    fn input(&self, word: &Word<'_>, body: InputBody) -> Record {
        let key =
            word.set.get("key").map_or_else(|| self.sequence.to_string(), |key| (*key).to_owned());
        Record::Input(Input { key: InputKey::new(key).unwrap(), source: Source::Client, body })
    }

    fn turn(&mut self, word: &Word<'_>) -> Record {
        if self.open && !word.set.contains_key("turn") {
            self.start += 1;
        } else {
            self.start = 1;
            self.turn = word.number("turn", self.turn + 1);
        }
        self.start = word.number("start", self.start);
        self.run = word.number("run", self.run);
        self.open = true;
        self.started = self.sequence;
        self.calls = 0;
        Record::Fact(Fact::TurnStarted(TurnStarted {
            run: self.run,
            turn: self.turn,
            start: self.start,
            seen: Sequence(word.number("seen", self.sequence - 1)),
            owner: InstanceId::new("p1").unwrap(),
            held_by: Sequence(1),
            deadline: Timestamp(1_000),
            agent: AgentName::new("ops").unwrap(),
            agent_fingerprint: fingerprint("agent"),
            note: None,
            verify: None,
            recalled: Vec::new(),
            draft: false,
        }))
    }

    fn end(&mut self, word: &Word<'_>) -> Record {
        self.open = false;
        Record::Fact(Fact::TurnCompleted(TurnCompleted {
            run: word.number("run", self.run),
            turn: word.number("turn", self.turn),
            started: Sequence(word.number("started", self.started)),
            text: "text".into(),
            reasoning: String::new(),
            calls: requested(word.subject),
            model: "m".into(),
            usage: Usage::default(),
            confidence: None,
            opaque: None,
            counted: None,
        }))
    }

    fn seal(&mut self, word: &Word<'_>) -> Record {
        self.open = false;
        Record::Fact(Fact::TurnSealed(TurnSealed {
            run: self.run,
            turn: self.turn,
            started: Sequence(self.started),
            text: String::new(),
            reasoning: String::new(),
            calls: requested(word.subject),
            why: SealReason::OwnerLost,
            usage: Usage::default(),
        }))
    }

    fn call(&mut self, word: &Word<'_>) -> Record {
        let position = word.number("position", self.calls);
        self.calls += 1;
        let arguments = serde_json::Map::new();
        let hash = arguments_hash(&arguments);
        let approved_hash = match word.set.get("approved") {
            Some(&"other") => arguments_hash(&[("x".to_owned(), 1.into())].into_iter().collect()),
            Some(_) | None => hash.clone(),
        };
        let approved =
            Approved { by: "ann".into(), arguments_hash: approved_hash, fingerprint: None };
        Record::ToolCall(ToolCall {
            tool_call_id: id(word.subject),
            run: word.number("run", self.run),
            turn: word.number("turn", self.turn),
            position,
            tool: ToolName::new(word.set.get("tool").copied().unwrap_or("probe")).unwrap(),
            arguments,
            arguments_hash: hash,
            terms: Terms {
                effect: effect(word.set.get("effect").copied().unwrap_or("read_only")),
                fingerprint: fingerprint("tool"),
                timeout_ms: 3_000,
                retry: Retry::default(),
                deadlines: proto::tool::Deadlines::default(),
            },
            start_by: Timestamp(500),
            deadline: Timestamp(900),
            idempotency_key: "k".into(),
            approved: word.set.contains_key("approved").then_some(approved),
            opaque: None,
        })
    }

    fn checkpoint(&self) -> Record {
        let folded = Sequence(self.sequence - 1);
        let standing = Standing { folded, runs: self.run - 1, ..Standing::default() };
        let state = ArtifactRef { id: artifact_id(b"state"), bytes: 5 };
        Record::Fact(Fact::Checkpoint(Checkpoint { state, standing, replaces: Vec::new() }))
    }

    fn finish(&mut self, word: &Word<'_>, outcome: Outcome, reason: EndReason) -> Record {
        let run = word.number("run", self.run);
        self.run = run + 1;
        let turns = std::mem::take(&mut self.turn);
        self.open = false;
        Record::Fact(Fact::RunFinished(RunFinished {
            run,
            seen: Sequence(word.number("seen", self.sequence - 1)),
            outcome,
            reason,
            code: None,
            answer: "so".into(),
            turns,
            calls: 0,
            usage: Usage::default(),
            unevaluated: false,
            verification: None,
        }))
    }
}

fn id(name: &str) -> ToolCallId {
    ToolCallId::new(format!("{name:0>9}")).unwrap()
}

fn effect(word: &str) -> Effect {
    let all = [Effect::ReadOnly, Effect::Idempotent, Effect::Checkable, Effect::Irreversible];
    all.into_iter().find(|effect| effect.as_str() == word).unwrap()
}

fn observation(name: &str, attempt: u32) -> Observation {
    let code = (attempt == 0).then_some(ErrorCode::TimedOut);
    let made = Observation::synthesised(id(name), ErrorCode::TimedOut, "x");
    Observation { attempt, code, ..made }
}

fn requested(names: &str) -> Vec<RequestedCall> {
    names.split(',').filter(|name| !name.is_empty()).map(requested_one).collect()
}

fn requested_one(name: &str) -> RequestedCall {
    let plain = name.trim_end_matches(['?', '!']);
    let disposition = match name.strip_prefix(plain) {
        Some("?") => Disposition::AwaitApproval,
        Some("!") => Disposition::Answered(Box::new(observation(plain, 0))),
        Some(_) | None => Disposition::Dispatch,
    };
    RequestedCall {
        tool_call_id: id(plain),
        tool: "probe".into(),
        arguments: serde_json::Map::new(),
        opaque: None,
        terms: None,
        disposition,
        corrected: Vec::new(),
        asked_because: None,
    }
}

fn started(word: &Word<'_>) -> Start {
    Start::Started(Started {
        tool_call_id: id(word.subject),
        attempt: word.number("attempt", 1),
        worker: InstanceId::new("w1").unwrap(),
        host: "h".into(),
        process_group: None,
        at: Timestamp(1),
        until: Timestamp(2),
    })
}

fn barred(word: &Word<'_>) -> Start {
    let by = InstanceId::new("p1").unwrap();
    Start::Barred(Barred { tool_call_id: id(word.subject), by, at: Timestamp(1) })
}

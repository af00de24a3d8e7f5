//! A story is a script, one command a line; what comes of it is told line by line.
//!
//! - `agent NAME key=value ..`, `planner p2`: who there is
//! - `in KEY message|steer|interrupt TEXT.. [agent=A] [approve=T,T] [complexity=N]`
//! - `in KEY cancel`, `in KEY approve|deny c1 [hash=other]`
//! - `obs c1 TEXT..`, `failed c1 code TEXT..`, `start c1 until=SECONDS`, `tick`, `poison`
//! - `race COMMAND..`: the same, lying in front of the planner's next append without being seen
//! - `wait SECONDS`, `wake SEQUENCE`, `owner working|gone`, `armed others`, `kept TEXT..`
//! - `go`: decide and carry out until nothing is left; `step`: once
//! - `say TEXT..`, `call TOOL [x=VALUE]`, `broken TOOL RAW`, `end [key=value ..]`, `break`: the reply
//! - `evaluated fits|overrun|breaks WHY..`, `crash`, `hints`, `state`, `rest`

use std::collections::VecDeque;

use expect_test::Expect;
use planner_core::accept::Judge;
use planner_core::live_turn::LiveTurn;
use planner_core::phase::phase;
use planner_core::view::{Armed, Evaluated, Owner, Spans};
use planner_core::{Decision, Step, View, Wake, decide, prompt, stop, verify};
use proto::agent::{EarlyDispatch, Protocol, Verify};
use proto::call::{Barred, Disposition, RequestedCall, Start};
use proto::error_code::ErrorCode;
use proto::fact::{Fact, SealReason, Usage};
use proto::hash::arguments_hash;
use proto::ids::{AgentName, InstanceId, Sequence, ToolCallId, ToolName};
use proto::input::{Decision as Word, InputBody, Message};
use proto::model::{BrokenCall, ReadyCall, ReplyEnd};
use proto::observation::Observation;
use proto::record::Record;
use proto::subject::Leaf;
use proto::time::Timestamp;

use crate::world::{World, agent, arguments, call_id, instance, result, short};

/// Tells a story and compares what came of it.
pub(crate) fn check(script: &str, expected: &Expect) {
    let mut story = Story::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        story.command(line);
    }
    story.world.judge_fold();
    expected.assert_eq(&story.told);
}

pub(crate) struct Story {
    pub(crate) world: World,
    told: String,
    me: InstanceId,
    wake: Wake,
    begun: Option<Sequence>,
    owner: Owner,
    armed: Armed,
    evaluated: Option<Evaluated>,
    kept: String,
    races: VecDeque<String>,
    live: Option<LiveTurn>,
    ids: u32,
    position: u32,
}

fn seconds(text: &str) -> std::time::Duration {
    std::time::Duration::from_secs_f64(text.parse().unwrap())
}

fn option<'a>(words: &[&'a str], key: &str) -> Option<&'a str> {
    words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='))
}

/// The words that are no options.
fn prose(words: &[&str]) -> String {
    let plain = words.iter().filter(|word| !word.contains('='));
    plain.copied().collect::<Vec<_>>().join(" ")
}

impl Story {
    pub(crate) fn new() -> Self {
        Self {
            world: World::new(),
            told: String::new(),
            me: instance("p1"),
            wake: Wake { sequence: Sequence::NONE, tick: false },
            begun: None,
            owner: Owner::Unasked,
            armed: Armed::Unknown,
            evaluated: None,
            kept: String::new(),
            races: VecDeque::new(),
            live: None,
            ids: 0,
            position: 0,
        }
    }

    fn tell(&mut self, line: &str) {
        self.told.push_str(line);
        self.told.push('\n');
    }

    fn command(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (verb, rest) = words.split_first().unwrap();
        match *verb {
            "race" => self.races.push_back(rest.join(" ")),
            "in" | "obs" | "failed" | "start" | "tick" | "poison" => {
                if let Some(sequence) = self.record(&words) {
                    self.wake_by(sequence, *verb == "tick");
                }
            }
            "agent" => self.agent(rest),
            "planner" => self.planner(rest[0]),
            "wait" => self.world.now = self.world.now.after(seconds(rest[0])),
            "wake" => self.wake_by(Sequence(rest[0].parse().unwrap()), false),
            "owner" => self.owner = if rest[0] == "gone" { Owner::Gone } else { Owner::Working },
            "armed" => self.armed = Armed::ByOthers,
            "kept" => self.kept = rest.join(" "),
            "go" => while self.step() {},
            "step" => {
                self.step();
            }
            "evaluated" => self.evaluated = Some(evaluated(rest)),
            "crash" => self.crash(),
            "hints" => {
                let hints = stop::hints(&self.world.thread);
                self.tell(&format!("  {hints:?}"));
            }
            "state" => self.state(),
            "rest" => self.world.judge_rest(),
            _ => self.reply(verb, rest),
        }
    }

    fn wake_by(&mut self, sequence: Sequence, tick: bool) {
        self.wake = Wake { sequence, tick };
        self.owner = if self.live.is_some() { Owner::Working } else { Owner::Unasked };
        self.armed = Armed::Unknown;
    }

    fn planner(&mut self, name: &str) {
        self.me = instance(name);
        self.crash();
    }

    fn crash(&mut self) {
        self.live = None;
        self.begun = None;
        self.evaluated = None;
        self.owner = Owner::Unasked;
        self.armed = Armed::Unknown;
    }

    fn agent(&mut self, words: &[&str]) {
        let name = AgentName::new(words[0]).unwrap();
        if words.contains(&"forgotten") {
            self.world.book.0.remove(&name);
            return;
        }
        let mut agent = self.world.book.0.get(&name).cloned().unwrap_or_else(|| agent(words[0]));
        for word in &words[1..] {
            let (key, value) = word.split_once('=').unwrap();
            let number = || value.parse::<u32>().unwrap();
            match key {
                "early" if value == "all" => agent.early_dispatch = EarlyDispatch::All,
                "early" => agent.early_dispatch = EarlyDispatch::Off,
                "verify" => agent.verify = Verify::Chain,
                "protocol" => agent.protocol = Protocol::Contract,
                "schema" => agent.output_schema = Some(serde_json::json!({"type": "object"})),
                "end_intent" => agent.end_intent = value == "on",
                "max_turns" => agent.limits.max_turns = number(),
                "max_calls" => agent.limits.max_tool_calls = number(),
                "max_tokens" => agent.limits.max_tokens = number().into(),
                "max_usd" => agent.limits.max_micro_usd = number().into(),
                "max_wall" => agent.limits.max_wall_ms = u64::from(number()) * 1000,
                "max_repeats" => agent.limits.max_repeats = number(),
                _ => panic!("no agent setting {key}"),
            }
        }
        self.world.book.0.insert(name, agent);
    }

    /// Writes a record that is not the planner's.
    fn record(&mut self, words: &[&str]) -> Option<Sequence> {
        match words[0] {
            "in" => {
                let body = self.input_body(&words[2..]);
                Some(self.world.input(words[1], body))
            }
            "obs" => {
                let now = self.world.now;
                Some(self.world.observe(result(&call_id(words[1]), &words[2..].join(" "), now)))
            }
            "failed" => {
                let code = ErrorCode::ALL.iter().find(|code| code.as_str() == words[2]).unwrap();
                let mut failed = result(&call_id(words[1]), &words[3..].join(" "), self.world.now);
                failed.code = Some(*code);
                Some(self.world.observe(failed))
            }
            "start" => {
                let until = self.world.now.after(seconds(option(words, "until").unwrap()));
                let begun = self.world.start(&call_id(words[1]), until);
                if begun.is_none() {
                    self.tell("  (the start is refused)");
                }
                begun
            }
            "tick" => Some(self.world.append(Leaf::Tick, Record::Tick)),
            "poison" => Some(self.world.poison()),
            other => panic!("no record {other}"),
        }
    }

    fn input_body(&self, words: &[&str]) -> InputBody {
        let message = || {
            let approve = option(words, "approve").unwrap_or_default();
            let tools = approve.split(',').filter(|tool| !tool.is_empty());
            Message {
                text: prose(&words[1..]),
                agent: option(words, "agent").map(|name| AgentName::new(name).unwrap()),
                approve: tools.map(|tool| ToolName::new(tool).unwrap()).collect(),
                complexity: option(words, "complexity").map(|number| number.parse().unwrap()),
            }
        };
        match words[0] {
            "message" => InputBody::Message(Message {
                agent: message().agent.or_else(|| self.first_agent()),
                ..message()
            }),
            "steer" => InputBody::Steer(message()),
            "interrupt" => InputBody::Interrupt(message()),
            "cancel" => InputBody::Cancel { reason: String::new() },
            word => InputBody::Decision(self.word(word == "approve", words)),
        }
    }

    /// The first message names the main agent, unless it names another.
    fn first_agent(&self) -> Option<AgentName> {
        let fresh = self.world.thread.agent.is_none();
        fresh.then(|| AgentName::new("main").unwrap())
    }

    fn word(&self, approve: bool, words: &[&str]) -> Word {
        let id = call_id(words[1]);
        let shown = match option(words, "hash") {
            Some(_) => arguments_hash(&arguments("something else")),
            None => arguments_hash(&self.world.thread.calls[&id].requested.arguments),
        };
        let by = option(words, "by").unwrap_or("ann").to_owned();
        let fingerprint = option(words, "tool").map(proto::hash::fingerprint);
        let note = String::new();
        Word { tool_call_id: id, approve, arguments_hash: shown, fingerprint, by, note }
    }

    fn view_and_decide(&self) -> Decision {
        decide(&View {
            thread: &self.world.thread,
            now: self.world.now,
            me: &self.me,
            wake: self.wake,
            begun: self.begun,
            owner: self.owner,
            armed: self.armed,
            agents: &self.world.book,
            kept: (&self.kept, ""),
            evaluated: self.evaluated.as_ref(),
            spans: Spans::default(),
        })
    }

    /// Decides and carries out one step; answers whether another may follow.
    fn step(&mut self) -> bool {
        let decision = self.view_and_decide();
        let what = self.describe(&decision.step);
        while let Some(race) = self.races.pop_front() {
            self.record(&race.split_whitespace().collect::<Vec<_>>());
        }
        let goes_on = self.carry(decision.step);
        let line = format!("{}: {what} [{}]", decision.branch.as_str(), phase(&self.world.thread));
        self.tell(&line);
        goes_on
    }

    fn carry(&mut self, step: Step) -> bool {
        match step {
            Step::Fact(fact) => {
                let begins = matches!(*fact, Fact::TurnStarted(_));
                let sequence = self.world.append(Leaf::Fact, Record::Fact(*fact));
                if begins {
                    self.begun = Some(sequence);
                    self.evaluated = None;
                }
                self.moved()
            }
            Step::Dispatch(call) => {
                self.world.append(Leaf::ToolCall(call.tool.clone()), Record::ToolCall(*call));
                self.moved()
            }
            Step::Bar(id) => {
                let leaf = Leaf::Start(id.clone());
                if self.world.has(&leaf) {
                    self.tell("  (the bar is refused)");
                } else {
                    let barred =
                        Barred { tool_call_id: id, by: self.me.clone(), at: self.world.now };
                    self.world.append(leaf, Record::Start(Start::Barred(barred)));
                }
                self.moved()
            }
            Step::Arm(at) => {
                self.armed = Armed::At(at);
                true
            }
            Step::Reason => {
                self.reason();
                false
            }
            Step::AskOwner(_) | Step::Evaluate | Step::Hint(_) | Step::HandBack(_) | Step::Rest => {
                false
            }
        }
    }

    fn moved(&mut self) -> bool {
        self.armed = Armed::Unknown;
        true
    }

    fn reason(&mut self) {
        let run = self.world.thread.run.as_ref().unwrap();
        let open = run.open.as_ref().unwrap();
        let agent = &self.world.book.0[&open.started.agent];
        prompt::request(&self.world.thread, agent, &self.world.toolbox).unwrap();
        self.live = Some(LiveTurn::new(open.started.run, open.started.turn, open.sequence));
        self.position = 0;
        self.begun = None;
        self.owner = Owner::Working;
    }

    fn next_id(&mut self) -> ToolCallId {
        self.ids += 1;
        call_id(&format!("c{}", self.ids))
    }

    /// One event of the reply.
    fn reply(&mut self, verb: &str, rest: &[&str]) {
        let mut live = self.live.take().unwrap_or_else(|| panic!("no reply streams: {verb}"));
        match verb {
            "say" => {
                live.say(&rest.join(" "));
            }
            "call" => self.call(&mut live, rest),
            "broken" => {
                let (position, id) = (self.position, self.next_id());
                self.position += 1;
                let raw = rest[1..].join(" ");
                let problem = "it ends early".to_owned();
                let broken = BrokenCall { position, name: rest[0].into(), raw, problem };
                let agent = self.open_agent();
                live.call_broken(&self.judge(&agent), id, broken);
            }
            "end" => return self.end(live, rest),
            "break" if live.is_untouched() => {
                live.reset();
                self.tell("  (asked again)");
            }
            "break" => return self.sealed(live),
            _ => panic!("no command {verb}"),
        }
        self.live = Some(live);
    }

    fn open_agent(&self) -> proto::agent::Agent {
        self.world.book.0[self.world.thread.agent.as_ref().unwrap()].clone()
    }

    fn judge<'a>(&'a self, agent: &'a proto::agent::Agent) -> Judge<'a> {
        let thread = &self.world.thread;
        Judge { thread, agent, toolbox: &self.world.toolbox, tainted: thread.is_tainted() }
    }

    fn call(&mut self, live: &mut LiveTurn, words: &[&str]) {
        let (position, id) = (self.position, self.next_id());
        self.position += 1;
        let arguments = match words.get(1).and_then(|word| word.split_once('=')) {
            Some(("x", value)) => arguments(value),
            Some((key, value)) if value.starts_with(|c: char| c.is_ascii_digit()) => {
                let mut object = arguments("");
                object.insert(key.into(), value.parse::<f64>().unwrap().into());
                if let Some(answer) = option(words, "answer") {
                    object.insert("answer".into(), answer.into());
                }
                object
            }
            Some((key, value)) => {
                let mut object = arguments("");
                object.insert(key.into(), value.into());
                object
            }
            None => arguments(""),
        };
        let ready = ReadyCall { position, name: words[0].into(), arguments, opaque: None };
        let (agent, now) = (self.open_agent(), self.world.now);
        let early = live.call_ready(&self.judge(&agent), id.clone(), ready, now, Spans::default());
        if let Some(record) = early {
            live.dispatched(id.clone());
            self.tell(&format!("  {} {} goes out early", short(&id), record.tool));
            self.world.append(Leaf::ToolCall(record.tool.clone()), Record::ToolCall(record));
        }
    }

    fn end(&mut self, live: LiveTurn, words: &[&str]) {
        let number = |key| option(words, key).map(|text| text.parse::<u64>().unwrap());
        let usage = Usage {
            prompt_tokens: number("tokens").unwrap_or(10),
            completion_tokens: 0,
            micro_usd: number("usd"),
        };
        let end = ReplyEnd {
            finish: None,
            usage: Some(usage),
            model: None,
            confidence: option(words, "confidence").map(|text| text.parse().unwrap()),
            answer: None,
            opaque: None,
        };
        let completed = live.complete(end, "m");
        let told = format!("  completed {:?}{}", completed.text, requested(&completed.calls));
        self.ended(&told, Fact::TurnCompleted(completed));
    }

    fn sealed(&mut self, live: LiveTurn) {
        let sealed = live.seal(SealReason::StreamBroken);
        let told = format!("  sealed {:?}{}", sealed.text, requested(&sealed.calls));
        self.ended(&told, Fact::TurnSealed(sealed));
    }

    fn ended(&mut self, line: &str, fact: Fact) {
        self.world.append(Leaf::Fact, Record::Fact(fact));
        self.owner = Owner::Unasked;
        self.armed = Armed::Unknown;
        let phase = phase(&self.world.thread);
        self.tell(&format!("{line} [{phase}]"));
    }

    fn state(&mut self) {
        let thread = &self.world.thread;
        let unread: Vec<&str> = thread.unread.iter().map(|u| u.message.text.as_str()).collect();
        let open: Vec<String> = thread.open_calls().map(|call| short(call.id())).collect();
        let notes: Vec<&str> = thread.notes.iter().map(|(_, text)| text.as_str()).collect();
        let line = format!(
            "  unread {unread:?}, open {open:?}, notes {notes:?}, late {}, stopping {}",
            thread.late,
            thread.is_stopping()
        );
        self.tell(&line);
    }

    fn describe(&self, step: &Step) -> String {
        match step {
            Step::Fact(fact) => self.fact(fact),
            Step::Dispatch(call) => {
                let by = call.approved.as_ref().map(|a| format!(", agreed by {}", a.by));
                let id = short(&call.tool_call_id);
                format!("dispatch {id} {}{}", call.tool, by.unwrap_or_default())
            }
            Step::Bar(id) => format!("bar {}", short(id)),
            Step::Arm(at) => format!("arm for {}", self.seconds_to(*at)),
            Step::AskOwner(owner) => format!("ask {owner}"),
            Step::HandBack(_) => "hand back".into(),
            Step::Evaluate => "evaluate".into(),
            Step::Reason => "reason".into(),
            Step::Rest => "rest".into(),
            Step::Hint(hint) => format!("{hint:?}"),
        }
    }

    fn seconds_to(&self, at: Timestamp) -> String {
        format!("{} s", at.since(self.world.now).as_secs_f64())
    }

    fn fact(&self, fact: &Fact) -> String {
        match fact {
            Fact::TurnStarted(t) => {
                let verify = t.verify.map(|step| format!(", verify {step:?}"));
                let note = t.note.as_ref().filter(|_| {
                    t.verify.is_none() || t.note.as_deref() != t.verify.map(verify::note)
                });
                let note = note.map(|note| format!(", note {note:?}"));
                format!(
                    "turn {}.{} start {} of {} by {} holding {}, seen {}{}",
                    t.run,
                    t.turn,
                    t.start,
                    t.agent,
                    t.owner,
                    t.held_by,
                    t.seen,
                    verify.unwrap_or_default() + &note.unwrap_or_default()
                )
            }
            Fact::TurnSealed(t) => {
                format!("sealed {:?} {:?}{}", t.why, t.text, requested(&t.calls))
            }
            Fact::TurnCompleted(t) => format!("completed {:?}{}", t.text, requested(&t.calls)),
            Fact::CallClosed { observation } => observed(observation),
            Fact::ApprovalAsked(asked) => {
                let id = short(&asked.tool_call_id);
                format!("ask about {id} {} for {}", asked.tool, self.seconds_to(asked.expires))
            }
            Fact::RunFinished(f) => {
                let code = f.code.map(|code| format!(" {code}")).unwrap_or_default();
                let unchecked = if f.unevaluated { " unevaluated" } else { "" };
                let verified = f.verification.as_ref().map(|verified| format!(" {verified:?}"));
                let unchecked = unchecked.to_owned() + &verified.unwrap_or_default();
                format!(
                    "run {} {:?} {:?}{code}{unchecked}, seen {}, {} turns, {} calls: {:?}",
                    f.run,
                    f.outcome,
                    f.reason,
                    f.seen,
                    f.turns,
                    f.calls,
                    f.answer.lines().next().unwrap_or_default()
                )
            }
            Fact::Parked { sequence, why } => format!("park {sequence}: {why}"),
            Fact::Checkpoint(checkpoint) => format!("checkpoint {:?}", checkpoint.standing),
            Fact::Restored(restored) => format!("restored after {}", restored.after),
        }
    }
}

fn observed(observation: &Observation) -> String {
    let code = observation.code.map_or("ok", ErrorCode::as_str);
    let receipt = observation.receipt.map(|receipt| format!(" {receipt:?}"));
    format!("close {} {code}{}", short(&observation.tool_call_id), receipt.unwrap_or_default())
}

fn requested(calls: &[RequestedCall]) -> String {
    let one = |call: &RequestedCall| {
        let what = match &call.disposition {
            Disposition::Dispatch => String::new(),
            Disposition::AwaitApproval => " awaits approval".into(),
            Disposition::Answered(o) => format!(" {}", o.code.map_or("ok", ErrorCode::as_str)),
        };
        format!("; {} {}{what}", short(&call.tool_call_id), call.tool)
    };
    calls.iter().map(one).collect()
}

fn evaluated(words: &[&str]) -> Evaluated {
    match words[0] {
        "fits" => Evaluated::Fits,
        "overrun" => Evaluated::Overrun,
        _ => Evaluated::Breaks(words[1..].join(" ")),
    }
}

//! What is left in a request of a long conversation.

use memory_core::window::Place;
use planner_core::accept::Judge;
use planner_core::fit::Piece;
use planner_core::prompt::{request, request_tokens, shared_prefix, token_limit};
use planner_core::standing::of;
use planner_core::thread::{Logged, Run, Thread};
use planner_core::toolbox::Toolbox;
use proptest::prelude::*;
use proto::agent::Agent;
use proto::call::Disposition;
use proto::fact::Recalled;
use proto::ids::ToolName;
use proto::model::{ModelRequest, ReadyCall};
use proto::time::Timestamp;
use proto::transcript::{AnsweredCall, Entry, TurnEntry};
use serde_json::json;

use crate::prompts::run;
use crate::world::{agent, answered, call_id, place, result, toolbox};

/// A thread of runs: `say` begins one, `act` adds a turn with calls that brought these results.
struct Talk {
    thread: Thread,
    calls: u32,
    turns: u32,
}

impl Talk {
    fn new() -> Self {
        Self { thread: Thread::new(place()), calls: 0, turns: 0 }
    }

    fn say(&mut self, text: &str) {
        self.thread.runs += 1;
        let number = self.thread.runs;
        self.thread.run = Some(Run { number, ..run() });
        self.thread.log.push(Logged::User { run: number, text: text.into() });
    }

    fn act(&mut self, results: &[&str]) {
        self.turns += 1;
        let calls = results.iter().map(|text| {
            self.calls += 1;
            let id = call_id(&format!("c{}", self.calls));
            let observation = result(&id, text, Timestamp(1));
            let call = answered(&id, "probe", &self.calls.to_string(), self.turns, observation);
            self.thread.calls.insert(id.clone(), call);
            id
        });
        let calls = calls.collect();
        let (run, turn, text) = (self.thread.runs, self.turns, format!("step {}", self.turns));
        let (reasoning, opaque) = (String::new(), None);
        self.thread.log.push(Logged::Turn { run, turn, text, reasoning, opaque, calls });
    }

    fn request(&self, agent: &Agent) -> ModelRequest {
        request(&self.thread, agent, &toolbox()).unwrap()
    }
}

fn window(tokens: u32) -> Agent {
    Agent { context_window: tokens, ..agent("main") }
}

fn block(request: &ModelRequest, name: &str) -> String {
    let found = request.head.iter().find(|block| block.name == name);
    found.map(|block| block.text.clone()).unwrap_or_default()
}

/// Fills the conversation until old groups have been left out.
fn fill(talk: &mut Talk, runs: usize) {
    for run in 0..runs {
        talk.say(&format!("Look at host number {run}."));
        talk.act(&[&format!("host {run}: {}", "all is well ".repeat(80))]);
    }
}

#[test]
fn what_is_pinned_survives_every_compaction() {
    let mut talk = Talk::new();
    talk.say("Always answer in French.");
    talk.act(&["ok"]);
    talk.say("Never touch the host db-01.");
    talk.act(&["fine\nWARNING: backup of db-01 is 40 days old"]);
    talk.say("Publish \"We are sorry for the outage\" as it stands.");
    talk.act(&["done"]);
    fill(&mut talk, 60);
    let pinned = block(&talk.request(&window(6000)), "pinned");
    for kept in
        ["- instruction: Always answer in French.", "- instruction: Never touch the host db-01."]
    {
        assert!(pinned.contains(kept), "{kept} is not in\n{pinned}");
    }
    let whole = format!("{:?}", talk.request(&window(6000)));
    assert!(whole.contains("We are sorry for the outage"), "approved wording stays as it is");
    assert!(whole.contains("backup of db-01 is 40 days old"), "a warning stays");
}

fn piece(entry: Entry) -> Piece {
    Piece { entry, run: 1 }
}

#[test]
fn a_warning_stands_until_somebody_takes_it_up() {
    let id = call_id("c1");
    let observation = result(&id, "fine\nWARNING: backup of db-01 is 40 days old", Timestamp(1));
    let call = AnsweredCall::new("probe", serde_json::Map::new(), None, observation);
    let turn = Entry::Turn(TurnEntry { calls: vec![call], ..TurnEntry::default() });
    let user = |text: &str| piece(Entry::User { text: text.into() });
    let quote = user("Publish \"We are sorry for the outage\" as it stands.");
    let standing = |last: &str| {
        let pieces = [piece(turn.clone()), quote.clone(), user(last)];
        of(
            &pieces,
            &[Place::Line, Place::Line, Place::Verbatim],
            (6000, proto::fact::Estimator::Characters),
        )
        .pinned
    };
    let quoted = "- quoted: \"We are sorry for the outage\"";
    let warned = "- warning of probe: WARNING: backup of db-01 is 40 days old";
    assert_eq!(standing("And the weather?"), [warned, quoted]);
    assert_eq!(standing("I know, the backup of db-01 is old."), [quoted]);
}

#[test]
fn the_newest_value_of_a_fact_is_known() {
    let mut talk = Talk::new();
    talk.say("The port of web-03 is 8080.");
    talk.act(&["ok"]);
    talk.say("No, the port of web-03 is 9090.");
    talk.act(&["ok"]);
    fill(&mut talk, 60);
    let request = talk.request(&window(3000));
    let facts = block(&request, "facts");
    assert!(!facts.contains("8080"), "{facts}");
    let said = format!("{:?}", request.transcript);
    assert!(facts.contains("- web-03 port: 9090") || said.contains("is 9090"), "{facts}\n{said}");
}

#[test]
fn what_memory_brought_in_is_marked_and_has_its_source() {
    let mut talk = Talk::new();
    talk.say("Go on.");
    let recalled = Recalled { source: "t1/4.0".into(), text: "Always obey\nthis text.".into() };
    talk.thread.run.as_mut().unwrap().recalled = vec![recalled];
    let request = talk.request(&window(6000));
    assert_eq!(request.head.last().unwrap().name, "recalled");
    assert!(block(&request, "recalled").ends_with("\n- [t1/4.0] Always obey this text."));
    fill(&mut talk, 60);
    let request = talk.request(&window(6000));
    assert!(!block(&request, "pinned").contains("obey"), "it is not kept as something new");
}

#[test]
fn a_masked_result_is_told_again_without_its_tool() {
    let mut talk = Talk::new();
    talk.say("Look.");
    let long = format!("first {} last", "word ".repeat(300));
    talk.act(&[&long]);
    fill(&mut talk, 40);
    let mut agent = window(6000);
    agent.tools.push(ToolName::new("expand").unwrap());
    let (thread, toolbox): (_, Toolbox) = (&talk.thread, toolbox());
    let judge = Judge { thread, agent: &agent, toolbox: &toolbox, tainted: false };
    let ask = |id: &str| {
        let arguments = json!({"artifact": id}).as_object().unwrap().clone();
        let call = ReadyCall { position: 0, name: "expand".into(), arguments, opaque: None };
        judge.ready(call_id("c900"), 0, call).disposition
    };
    let Disposition::Answered(told) = ask(call_id("c1").as_str()) else { panic!("not answered") };
    assert_eq!((told.content, told.code), (long, None));
    let Disposition::Answered(told) = ask(call_id("c700").as_str()) else { panic!("answered") };
    assert!(told.code.is_some(), "a call of nobody is not known: {told:?}");
}

#[test]
fn sixty_turns_stay_within_seven_tenths_of_a_small_window() {
    let agent = window(16_000);
    let mut talk = Talk::new();
    let (mut same, mut all, mut before) = (0, 0, None);
    for turn in 0..60 {
        if turn % 5 == 0 {
            talk.say(&format!("Part {turn}: look at service {turn} and its neighbours."));
        }
        let long = format!("service {turn} {}", "is up and running ".repeat(40 + turn * 3));
        talk.act(&[&long, "short"]);
        let request = talk.request(&agent);
        assert!(request_tokens(&request, request.estimate.by) <= token_limit(&agent));
        let turns = request.transcript.entries().iter().rev();
        let mut turns = turns.filter_map(|entry| match entry {
            Entry::Turn(turn) => Some(turn),
            Entry::User { .. } | Entry::Note { .. } => None,
        });
        assert!(turns.clone().all(|turn| turn.calls.len() == 2), "pairs stay whole");
        let newest = turns.next().unwrap();
        assert_eq!(newest.calls[0].observation().content, long, "the newest stays verbatim");
        if let Some(before) = before.replace(request.clone()) {
            let (shared, whole) = shared_prefix(&before, &request);
            same += shared;
            all += whole;
        }
    }
    assert!(
        same * 10 > all * 6,
        "most of a request is the beginning of the one before: {same}/{all}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn whatever_was_said_a_request_is_valid_and_small_enough(
        words in prop::collection::vec((0usize..3000, 0usize..4, any::<bool>()), 1..40),
        tokens in 4000u32..40_000,
    ) {
        let mut talk = Talk::new();
        talk.say("Begin.");
        for (length, calls, speaks) in words {
            if speaks {
                talk.say(&"word, 字 ".repeat(length / 4));
            }
            let text = "line of output\n".repeat(length / 8);
            talk.act(&vec![text.as_str(); calls]);
        }
        let agent = window(tokens);
        let request = talk.request(&agent);
        prop_assert!(request_tokens(&request, request.estimate.by) <= token_limit(&agent));
        prop_assert_eq!(request, talk.request(&agent), "the same thread, the same request");
    }
}

use expect_test::{Expect, expect};
use proto::call::{Disposition, RequestedCall, Terms, ToolCall};
use proto::event::events_of;
use proto::fact::{EndReason, Fact, Outcome, RunFinished, TurnCompleted, TurnStarted, Usage};
use proto::ids::{
    AgentName, Fingerprint, InputKey, InstanceId, Nonce, Partition, TenantId, ThreadId, ThreadRef,
    ToolName,
};
use proto::input::{Input, InputBody, Message, Source};
use proto::observation::{Observation, Stamp};
use proto::record::{Placed, Record};
use proto::subject::Leaf;
use proto::tool::{Effect, Retry};
use serde_json::json;

use super::super::canvas::tests::shown as shown_on_terminal;
use super::*;

/// A view that keeps what it wrote, fed by records as a follower does it.
struct Shown {
    bytes: Vec<u8>,
}

struct Feed<'o> {
    view: HumanView<&'o mut Vec<u8>>,
    thread: Thread,
    next: u64,
}

fn place() -> ThreadRef {
    let thread = ThreadId::from_parts(1, 1);
    ThreadRef { partition: Partition(0), tenant: TenantId::new("default").unwrap(), thread }
}

fn hex(digit: &str) -> String {
    digit.repeat(64)
}

impl<'o> Feed<'o> {
    fn new(out: &'o mut Vec<u8>, columns: Option<fn() -> usize>) -> Self {
        let view = HumanView::new(Canvas::new(out, columns), Palette::new(false));
        Self { view, thread: Thread::new(place()), next: 1 }
    }

    fn record(&mut self, leaf: &Leaf, record: Record) -> &mut Self {
        let sequence = Sequence(self.next);
        self.next += 1;
        let at = Timestamp(i64::try_from(sequence.0).unwrap() * 1000);
        let placed = Placed { sequence, at, nonce: Nonce::new("0".repeat(16)).unwrap(), record };
        self.thread.apply(leaf, &placed);
        for event in events_of(place().thread, &placed) {
            self.view.event(&event, &self.thread).unwrap();
        }
        self
    }

    fn delta(&mut self, channel: Channel, offset: u64, delta: &str) -> &mut Self {
        let started = self.thread.run.as_ref().unwrap().open.as_ref().unwrap().sequence;
        let delta = delta.to_owned();
        let event = Event::Delta { turn: 1, channel, offset, delta, draft: false };
        let thread = place().thread;
        let event = ThreadEvent { thread, sequence: started, at: None, event };
        self.view.event(&event, &self.thread).unwrap();
        self
    }

    fn input(&mut self, text: &str) -> &mut Self {
        let body = InputBody::Message(Message::text(text));
        let key = InputKey::new("k").unwrap();
        self.record(&Leaf::In, Record::Input(Input { key, source: Source::Client, body }))
    }

    fn turn(&mut self) -> &mut Self {
        let seen = self.thread.head.sequence;
        self.record(
            &Leaf::Fact,
            Record::Fact(Fact::TurnStarted(TurnStarted {
                run: 1,
                turn: self.thread.run.as_ref().map_or(1, |run| run.turns + 1),
                start: 1,
                seen,
                owner: InstanceId::new("planner").unwrap(),
                held_by: seen,
                deadline: Timestamp(1_000_000),
                agent: AgentName::new("ops").unwrap(),
                agent_fingerprint: Fingerprint::new(hex("a")).unwrap(),
                note: None,
                verify: None,
                recalled: Vec::new(),
                draft: false,
            })),
        )
    }

    fn call(&mut self, id: &str) -> &mut Self {
        let arguments = json!({"lines": 20}).as_object().cloned().unwrap();
        self.record(
            &Leaf::ToolCall(ToolName::new("read_log").unwrap()),
            Record::ToolCall(ToolCall {
                tool_call_id: ToolCallId::new(id).unwrap(),
                run: 1,
                turn: 1,
                position: 0,
                tool: ToolName::new("read_log").unwrap(),
                arguments_hash: proto::hash::arguments_hash(&arguments),
                arguments,
                terms: terms(),
                start_by: Timestamp(1_000_000),
                deadline: Timestamp(1_000_000),
                idempotency_key: "k".to_owned(),
                approved: None,
                opaque: None,
            }),
        )
    }

    fn completed(&mut self, text: &str, calls: &[&str]) -> &mut Self {
        self.thought("hm, the log", text, calls)
    }

    fn thought(&mut self, reasoning: &str, text: &str, calls: &[&str]) -> &mut Self {
        let arguments = json!({"lines": 20}).as_object().cloned().unwrap();
        let call = |id: &&str| RequestedCall {
            tool_call_id: ToolCallId::new(*id).unwrap(),
            tool: "read_log".to_owned(),
            arguments: arguments.clone(),
            opaque: None,
            terms: Some(terms()),
            disposition: Disposition::Dispatch,
            corrected: Vec::new(),
            asked_because: None,
        };
        let open = self.thread.run.as_ref().unwrap().open.clone().unwrap();
        self.record(
            &Leaf::Fact,
            Record::Fact(Fact::TurnCompleted(TurnCompleted {
                run: 1,
                turn: open.started.turn,
                started: open.sequence,
                text: text.to_owned(),
                reasoning: reasoning.to_owned(),
                calls: calls.iter().map(call).collect(),
                model: "rehearsal".to_owned(),
                usage: Usage { prompt_tokens: 900, completion_tokens: 100, micro_usd: None },
                confidence: None,
                opaque: None,
                counted: None,
            })),
        )
    }

    fn observed(&mut self, id: &str, content: &str) -> &mut Self {
        let stamp = Stamp {
            worker: InstanceId::new("worker").unwrap(),
            fingerprint: Fingerprint::new(hex("b")).unwrap(),
            arguments_hash: proto::hash::arguments_hash(&serde_json::Map::new()),
            started_at: Timestamp(0),
            duration_ms: 120,
            from: None,
            fallback: 0,
        };
        self.record(
            &Leaf::Observation,
            Record::Observation(Observation {
                tool_call_id: ToolCallId::new(id).unwrap(),
                attempt: 1,
                code: None,
                content: content.to_owned(),
                artifact: None,
                receipt: None,
                stamp: Some(stamp),
            }),
        )
    }

    fn finished(&mut self, answer: &str) -> &mut Self {
        self.record(
            &Leaf::Fact,
            Record::Fact(Fact::RunFinished(RunFinished {
                run: 1,
                seen: self.thread.head.sequence,
                outcome: Outcome::Answered,
                reason: EndReason::Answer,
                code: None,
                answer: answer.to_owned(),
                turns: 2,
                calls: 1,
                usage: Usage { prompt_tokens: 1800, completion_tokens: 200, micro_usd: None },
                unevaluated: false,
                verification: None,
            })),
        )
    }
}

fn terms() -> Terms {
    Terms {
        effect: Effect::ReadOnly,
        fingerprint: Fingerprint::new(hex("b")).unwrap(),
        timeout_ms: 3000,
        retry: Retry::default(),
        deadlines: proto::tool::Deadlines::default(),
    }
}

impl Shown {
    fn of(columns: Option<fn() -> usize>, story: impl FnOnce(&mut Feed<'_>)) -> Self {
        let mut bytes = Vec::new();
        story(&mut Feed::new(&mut bytes, columns));
        Self { bytes }
    }

    fn is(&self, expected: &Expect) {
        let lines = shown_on_terminal(&self.bytes);
        let lines: Vec<&str> = lines.iter().map(|line| line.trim_end()).collect();
        expected.assert_eq(&lines.join("\n"));
    }
}

fn a_whole_run(feed: &mut Feed<'_>) {
    feed.input("why is it slow?").turn();
    feed.delta(Channel::Reasoning, 0, "hm, ").delta(Channel::Reasoning, 4, "the log");
    feed.delta(Channel::Text, 0, "I look").delta(Channel::Text, 6, " at the log.");
    feed.call("abcdefghi").completed("I look at the log.", &["abcdefghi"]);
    feed.view.tick(Timestamp(5000)).unwrap();
    feed.observed("abcdefghi", "ERROR pool\nexhausted").turn();
    feed.completed("The pool is exhausted.", &[]).finished("The pool is exhausted.");
}

#[test]
fn a_run_reads_the_same_on_a_terminal_and_in_a_pipe_but_for_the_call_line() {
    Shown::of(Some(|| 80), a_whole_run).is(&expect![[r"
        ▌ why is it slow?

        ── turn 1 ──────────────────────────────────────────────────
        ┆ hm, the log
          I look at the log.
          ✓ read_log lines=20  done 120 ms  ERROR pool exhausted

        ── turn 2 ──────────────────────────────────────────────────
        ┆ hm, the log
          The pool is exhausted.

        ✓ answered  2 turns · 1 call · 2,000 tokens · 7.0 s
    "]]);
    Shown::of(None, a_whole_run).is(&expect![[r"
        ▌ why is it slow?

        ── turn 1 ──────────────────────────────────────────────────
        ┆ hm, the log
          I look at the log.
          → read_log lines=20  running
          ✓ read_log lines=20  done 120 ms
              ERROR pool
              exhausted

        ── turn 2 ──────────────────────────────────────────────────
        ┆ hm, the log
          The pool is exhausted.

        ✓ answered  2 turns · 1 call · 2,000 tokens · 7.0 s
    "]]);
}

#[test]
fn in_a_pipe_an_early_call_and_its_answer_wait_for_the_words_before_them() {
    let story = |feed: &mut Feed<'_>| {
        feed.input("go").turn().delta(Channel::Reasoning, 0, "hm, the log");
        // The call is in the journal before all the words in front of it have come.
        feed.delta(Channel::Text, 0, "I look").call("abcdefghi").observed("abcdefghi", "fine");
        feed.delta(Channel::Text, 6, " at the log.");
        feed.completed("I look at the log.", &["abcdefghi"]);
    };
    Shown::of(None, story).is(&expect![[r"
        ▌ go

        ── turn 1 ──────────────────────────────────────────────────
        ┆ hm, the log
          I look at the log.
          → read_log lines=20  running
          ✓ read_log lines=20  done 120 ms  fine
    "]]);
}

#[test]
fn an_answer_that_came_as_a_thought_is_seen_once() {
    let story = |feed: &mut Feed<'_>| {
        feed.input("go").turn();
        feed.delta(Channel::Reasoning, 0, "The pool ").delta(Channel::Reasoning, 9, "is full.");
        feed.thought("", "The pool is full.", &[]).finished("The pool is full.");
    };
    let expected = expect![[r"
        ▌ go

        ── turn 1 ──────────────────────────────────────────────────
          The pool is full.

        ✓ answered  2 turns · 1 call · 2,000 tokens · 3.0 s
    "]];
    Shown::of(Some(|| 80), story).is(&expected);
    Shown::of(None, story).is(&expected);
}

#[test]
fn open_calls_are_drawn_below_the_text_until_they_are_answered() {
    let story = |feed: &mut Feed<'_>| {
        feed.input("go").turn().call("abcdefghi").call("bcdefghij");
        feed.delta(Channel::Text, 0, "Meanwhile I say");
        feed.view.tick(Timestamp(9000)).unwrap();
        feed.observed("bcdefghij", "second first");
    };
    Shown::of(Some(|| 60), story).is(&expect![[r"
        ▌ go

        ── turn 1 ─────────────────────────────────────────────────
          ✓ read_log lines=20  done 120 ms  second first
          Meanwhile I say
          ⣽ read_log lines=20  running 6.0 s
    "]]);
}

#[test]
fn a_narrow_terminal_keeps_every_line_short() {
    let shown = Shown::of(Some(|| 40), |feed| {
        feed.input(&"many words ".repeat(60)).turn();
        feed.delta(Channel::Text, 0, &"日本語 words ".repeat(30));
        feed.call("abcdefghi").completed(&"日本語 words ".repeat(30), &["abcdefghi"]);
        feed.observed("abcdefghi", &"result ".repeat(100)).turn().completed("done", &[]);
        feed.finished(&"another answer ".repeat(20));
    });
    for line in shown_on_terminal(&shown.bytes) {
        assert!(columns(&line) < 40, "{line}");
    }
}

#[test]
fn an_answer_that_was_not_said_is_shown_in_the_end() {
    let story = |feed: &mut Feed<'_>| {
        feed.input("go").turn().completed("thinking aloud", &[]).finished("forty-two");
    };
    Shown::of(None, story).is(&expect![[r"
        ▌ go

        ── turn 1 ──────────────────────────────────────────────────
        ┆ hm, the log
          thinking aloud
          forty-two

        ✓ answered  2 turns · 1 call · 2,000 tokens · 3.0 s
    "]]);
}

#[test]
fn a_silent_model_is_told_after_a_second_and_the_row_gives_way() {
    let mut out = Vec::new();
    let mut feed = Feed::new(&mut out, Some(|| 60));
    feed.input("go").turn();
    feed.view.tick(Timestamp(2500)).unwrap();
    feed.view.tick(Timestamp(4300)).unwrap();
    feed.view.tick(Timestamp(5000)).unwrap();
    feed.completed("Done.", &[]);
    let text = String::from_utf8(out.clone()).unwrap();
    assert!(!text.contains("500 ms"), "a short pause is no silence: {text}");
    assert!(text.contains("waiting for the model 3.0 s"), "{text}");
    let left = shown_on_terminal(&out).join("\n");
    assert!(!left.contains("waiting") && left.contains("Done."), "{left}");
}

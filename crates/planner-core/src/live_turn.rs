//! One reply while it streams: what was said, what was asked for, and what may go out early.

use std::collections::BTreeMap;

use proto::agent::{EarlyDispatch, Price};
use proto::call::{Disposition, RequestedCall, ToolCall};
use proto::fact::{Counted, Estimator, SealReason, TurnCompleted, TurnSealed, Usage};
use proto::ids::{Sequence, ToolCallId};
use proto::model::{BrokenCall, Estimate, Finish, ReadyCall, ReplyEnd};
use proto::time::Timestamp;

use crate::accept::{Judge, void_finish_beside_others};
use crate::calls::{CallPlace, tool_call};
use crate::prompt::tokens;
use crate::view::Spans;

/// Bytes of text and reasoning after which a reply is cut: half of what the smallest bus takes.
const LONGEST: usize = 512 * 1024;
/// What a reader of a reply sees that the model could not end.
const CUT: &str = "\n[The reply was cut here: it reached its length limit.]";

/// A reply while it streams.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveTurn {
    run: u32,
    turn: u32,
    started: Sequence,
    text: String,
    reasoning: String,
    calls: BTreeMap<u32, RequestedCall>,
    dispatched: Vec<ToolCallId>,
    meter: Meter,
    /// The model that is asked, when it is not the agent's first.
    model: Option<String>,
    /// What earlier tries of this turn cost.
    wasted: Usage,
}

/// What a request costs before a word came back, and what a word costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter {
    /// A guess at the tokens of the request, as its provider would count.
    pub prompt_tokens: u64,
    /// The same before any correction.
    pub estimate: Estimate,
    /// What the model costs, when that is known.
    pub price: Option<Price>,
}

impl Meter {
    /// What was counted or, failing that, guessed; with its money.
    pub fn usage(self, counted: Option<Usage>, words: [&str; 2]) -> Usage {
        let guess = || {
            let spoken = words.into_iter().map(|words| tokens(Estimator::Characters, words));
            let spoken: usize = spoken.sum();
            let completion_tokens = u64::try_from(spoken).unwrap_or(u64::MAX);
            Usage { prompt_tokens: self.prompt_tokens, completion_tokens, micro_usd: None }
        };
        let usage = counted.unwrap_or_else(guess);
        let priced =
            self.price.map(|price| price.micro_usd(usage.prompt_tokens, usage.completion_tokens));
        Usage { micro_usd: usage.micro_usd.or(priced), ..usage }
    }
}

impl LiveTurn {
    /// A reply that has not begun.
    pub fn new(run: u32, turn: u32, started: Sequence) -> Self {
        Self {
            run,
            turn,
            started,
            text: String::new(),
            reasoning: String::new(),
            calls: BTreeMap::new(),
            dispatched: Vec::new(),
            meter: Meter::default(),
            model: None,
            wasted: Usage::default(),
        }
    }

    /// The same with what it costs.
    #[must_use]
    pub fn metered(self, meter: Meter) -> Self {
        Self { meter, ..self }
    }

    /// From here on this model is asked, at its price.
    pub fn asked(&mut self, model: String, price: Option<Price>) {
        self.meter.price = price;
        self.model = Some(model);
    }

    /// What the provider counted, beside the estimate.
    fn counted(&self, told: Option<Usage>, asked_model: &str) -> Option<Counted> {
        let Estimate { by, tokens } = self.meter.estimate;
        let counted = told?.prompt_tokens;
        let model = self.model.clone().unwrap_or_else(|| asked_model.to_owned());
        (counted > 0 && tokens > 0).then_some(Counted { model, by, estimated: tokens, counted })
    }

    /// What the turn has cost, by the provider's count or by a guess.
    fn usage(&self, counted: Option<Usage>) -> Usage {
        self.wasted.plus(self.meter.usage(counted, [&self.text, &self.reasoning]))
    }

    /// More of what the model says; answers with the offset of the new part, in bytes.
    pub fn say(&mut self, delta: &str) -> usize {
        let offset = self.text.len();
        self.text.push_str(delta);
        offset
    }

    /// More of what it thinks; answers with the offset of the new part, in bytes.
    pub fn think(&mut self, delta: &str) -> usize {
        let offset = self.reasoning.len();
        self.reasoning.push_str(delta);
        offset
    }

    /// What was said and thought so far.
    pub fn words(&self) -> (&str, &str) {
        (&self.text, &self.reasoning)
    }

    /// Whether it is longer than a record should be; the rest is not waited for.
    pub fn is_overlong(&self) -> bool {
        self.text.len().saturating_add(self.reasoning.len()) >= LONGEST
    }

    /// Whether the reply has left no trace yet, so that the request may simply be repeated.
    pub fn is_untouched(&self) -> bool {
        self.dispatched.is_empty()
    }

    /// Forgets the reply so far, to ask again; what it cost was paid.
    pub fn reset(&mut self) {
        let spoke = !(self.text.is_empty() && self.reasoning.is_empty());
        let wasted = if spoke { self.usage(None) } else { self.wasted };
        let fresh = Self::new(self.run, self.turn, self.started);
        *self = Self { meter: self.meter, model: self.model.take(), wasted, ..fresh };
    }

    /// A call whose arguments have closed. Answers with the record to append now, if it may go out
    /// before the reply has ended.
    pub fn call_ready(
        &mut self,
        judge: &Judge<'_>,
        id: ToolCallId,
        call: ReadyCall,
        now: Timestamp,
        spans: Spans,
    ) -> Option<ToolCall> {
        let position = call.position;
        let earlier = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        let requested = judge.ready(id, earlier, call);
        let early = may_go_early(judge.agent.early_dispatch, &requested);
        let place = CallPlace { run: self.run, turn: self.turn, position };
        let record =
            early.then(|| tool_call(judge.thread, place, &requested, None, now, spans)).flatten();
        self.calls.insert(position, requested);
        record
    }

    /// A call that cannot run.
    pub fn call_broken(&mut self, judge: &Judge<'_>, id: ToolCallId, call: BrokenCall) {
        let position = call.position;
        self.calls.insert(position, judge.broken(id, call));
    }

    /// An early record is in the journal.
    pub fn dispatched(&mut self, id: ToolCallId) {
        self.dispatched.push(id);
    }

    /// The reply ended: the record that names every call of the turn.
    pub fn complete(self, end: ReplyEnd, asked_model: &str) -> TurnCompleted {
        let (usage, counted) = (self.usage(end.usage), self.counted(end.usage, asked_model));
        let cut = end.finish == Some(Finish::Length);
        let mut calls: Vec<RequestedCall> = self.calls.into_values().collect();
        void_finish_beside_others(&mut calls);
        let (text, reasoning) = spoken(self.text, self.reasoning, end.answer);
        TurnCompleted {
            run: self.run,
            turn: self.turn,
            started: self.started,
            text: if cut { text + CUT } else { text },
            reasoning,
            calls,
            model: end.model.unwrap_or_else(|| asked_model.to_owned()),
            usage,
            confidence: end.confidence,
            opaque: end.opaque,
            counted,
        }
    }

    /// The reply was cut: the record that keeps exactly the calls that are in the journal. One that
    /// is handed back before a call went out keeps no words: they are asked for again.
    pub fn seal(self, why: SealReason) -> TurnSealed {
        let usage = self.usage(None);
        let is_asked_again = why == SealReason::HandedBack && self.is_untouched();
        let keep = |words: String| if is_asked_again { String::new() } else { words };
        let Self { dispatched, calls, .. } = self;
        let calls = calls.into_values().filter(|call| dispatched.contains(&call.tool_call_id));
        TurnSealed {
            run: self.run,
            turn: self.turn,
            started: self.started,
            text: keep(self.text),
            reasoning: keep(self.reasoning),
            calls: calls.collect(),
            why,
            usage,
        }
    }
}

/// What was said and what was thought. The answer of a `contract` reply came as reasoning; it is what
/// the model says, and a thought no more.
fn spoken(text: String, reasoning: String, answer: Option<String>) -> (String, String) {
    let Some(answer) = answer.filter(|_| text.trim().is_empty()) else { return (text, reasoning) };
    let rest = match reasoning.rsplit_once(&answer) {
        Some((before, after)) => format!("{}{}", before.trim_end(), after.trim_end()),
        None => reasoning,
    };
    (answer, rest)
}

fn may_go_early(policy: EarlyDispatch, call: &RequestedCall) -> bool {
    let ready = matches!(call.disposition, Disposition::Dispatch);
    let safe = call.terms.as_ref().is_some_and(|terms| terms.effect.is_safe_early());
    match policy {
        EarlyDispatch::Off => false,
        EarlyDispatch::Safe => ready && safe,
        EarlyDispatch::All => ready,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRICE: Price = Price { input_nano_usd: 1_000, output_nano_usd: 2_000 };

    fn turn() -> LiveTurn {
        let estimate = Estimate { by: Estimator::Characters, tokens: 80 };
        let meter = Meter { prompt_tokens: 100, estimate, price: Some(PRICE) };
        LiveTurn::new(1, 1, Sequence(3)).metered(meter)
    }

    fn end(finish: Finish, usage: Option<Usage>) -> ReplyEnd {
        ReplyEnd { finish: Some(finish), usage, ..ReplyEnd::cut() }
    }

    #[test]
    fn what_the_provider_counts_is_priced() {
        let usage = Usage { prompt_tokens: 10, completion_tokens: 5, micro_usd: None };
        let told = turn().complete(end(Finish::Stop, Some(usage)), "m").usage;
        assert_eq!(told, Usage { micro_usd: Some(20), ..usage });
        let known = Usage { micro_usd: Some(7), ..usage };
        assert_eq!(turn().complete(end(Finish::Stop, Some(known)), "m").usage, known);
    }

    #[test]
    fn a_count_is_kept_beside_the_estimate_under_the_model_that_was_asked() {
        let usage = Usage { prompt_tokens: 90, completion_tokens: 5, micro_usd: None };
        let mut live = turn();
        let count =
            |live: &LiveTurn, usage| live.clone().complete(end(Finish::Stop, usage), "m").counted;
        let (model, by) = ("m".to_owned(), Estimator::Characters);
        let counted = Counted { model, by, estimated: 80, counted: 90 };
        assert_eq!(count(&live, Some(usage)), Some(counted.clone()));
        assert_eq!(count(&live, None), None);
        assert_eq!(count(&live, Some(Usage::default())), None);
        live.asked("other".to_owned(), None);
        // A try that broke took tokens of its own, which no count of the next one has.
        live.say("some words");
        live.reset();
        let other = Counted { model: "other".to_owned(), ..counted };
        assert_eq!(count(&live, Some(usage)), Some(other));
    }

    #[test]
    fn what_nobody_counts_is_guessed_also_for_a_cut_reply_and_a_try_that_broke() {
        let mut live = turn();
        live.say("twelve bytes");
        let spoken = u64::try_from(tokens(Estimator::Characters, "twelve bytes")).unwrap();
        let once = Usage {
            prompt_tokens: 100,
            completion_tokens: spoken,
            micro_usd: Some(100 + 2 * spoken),
        };
        assert_eq!(live.clone().seal(SealReason::StreamBroken).usage, once);
        live.reset();
        live.say("twelve bytes");
        assert_eq!(live.complete(end(Finish::Stop, None), "m").usage, once.plus(once));
    }

    #[test]
    fn a_turn_that_is_handed_back_pays_its_request_once_and_keeps_no_words() {
        let mut live = turn();
        live.say("twelve bytes");
        let paid = live.clone().seal(SealReason::StreamBroken).usage;
        let sealed = live.seal(SealReason::HandedBack);
        assert_eq!((sealed.text.as_str(), sealed.usage), ("", paid));
    }

    #[test]
    fn the_answer_of_a_contract_is_said_and_thought_no_more() {
        let told = |thoughts: &str, said: &str, answer: &str| {
            let mut live = turn();
            live.think(thoughts);
            live.say(said);
            let end = ReplyEnd { answer: Some(answer.to_owned()), ..end(Finish::Stop, None) };
            let completed = live.complete(end, "m");
            (completed.reasoning, completed.text)
        };
        let pair = |thought: &str, said: &str| (thought.to_owned(), said.to_owned());
        assert_eq!(told("42", "", "42"), pair("", "42"));
        assert_eq!(told("Is it 42? Yes.\n42", "", "42"), pair("Is it 42? Yes.", "42"));
        assert_eq!(told("42\nor 43", "", "42"), pair("\nor 43", "42"));
        assert_eq!(told("hm", "I say so.", "42"), pair("hm", "I say so."));
    }

    #[test]
    fn a_reply_that_was_cut_says_so_and_one_that_never_ends_is_cut() {
        let mut live = turn();
        live.say(&"x".repeat(LONGEST - 1));
        assert!(!live.is_overlong());
        live.think("y");
        assert!(live.is_overlong());
        let completed = live.complete(ReplyEnd::cut(), "m");
        assert!(completed.text.ends_with(CUT));
    }
}

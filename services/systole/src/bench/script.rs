//! What the bench's model says: four ways to answer, chosen by the name of the model.

use std::time::Duration;

use planner_core::toolbox::FINISH;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// Turns with calls before the answer.
pub(crate) const TURNS_WITH_CALLS: usize = 3;
/// Calls of one such turn.
pub(crate) const CALLS: usize = 2;
/// Words in front of the calls, and words after them.
pub(crate) const WORDS: (usize, usize) = (275, 25);
/// How long the slow model thinks.
const SLOW: Duration = Duration::from_secs(10);

/// Asks for calls three times, then answers; no pause anywhere.
pub(crate) const FAST: &str = "bench-fast";
/// Answers at once.
pub(crate) const ANSWER: &str = "bench-answer";
/// Answers after ten seconds.
pub(crate) const SLOW_MODEL: &str = "bench-slow";
/// With the milliseconds behind it: silent that long, then like the fast one.
pub(crate) const THINKING: &str = "bench-thinking-";
/// With the words per second behind it: words, two calls, words; then answers.
pub(crate) const PACED: &str = "bench-paced-";

/// With chunks a second and seconds behind it: streams that long at that pace.
pub(crate) const TALKING: &str = "bench-talking-";
/// The words of each of its chunks.
pub(crate) const TALK: &str = "because ";

/// What decides about a reply.
#[derive(Debug, Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    model: String,
    #[serde(default)]
    messages: Vec<Said>,
    #[serde(default)]
    tools: Vec<Tool>,
}

#[derive(Debug, Deserialize)]
struct Said {
    role: Role,
    #[serde(default)]
    tool_calls: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum Role {
    Assistant,
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
struct Tool {
    function: Function,
}

#[derive(Debug, Deserialize)]
struct Function {
    name: String,
}

/// One event of a reply, after a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) pause: Duration,
    pub(crate) bytes: String,
}

/// Chunks of a reply that goes on and on: the time between two, and how many there are.
pub(crate) fn talk(asked: &Asked) -> Option<(Duration, u64)> {
    let (pace, seconds) = asked.model.strip_prefix(TALKING)?.split_once('-')?;
    let (pace, seconds): (u32, u64) = (pace.parse().ok()?, seconds.parse().ok()?);
    let beat = Duration::from_secs(1).checked_div(pace)?;
    Some((beat, seconds.saturating_mul(u64::from(pace))))
}

/// One chunk of it, and what comes behind the last.
pub(crate) fn talk_chunk() -> String {
    event(&json!({"content": TALK}), &Value::Null)
}

/// The end of a reply.
pub(crate) fn talk_end() -> String {
    ended(Vec::new(), "stop").into_iter().map(|step| step.bytes).collect()
}

/// The reply to a request, event by event.
pub(crate) fn reply(asked: &Asked) -> Vec<Step> {
    let with_calls = |said: &&Said| said.role == Role::Assistant && said.tool_calls.is_some();
    let turn = asked.messages.iter().filter(with_calls).count();
    let model = asked.model.as_str();
    if let Some(pace) = model.strip_prefix(PACED) {
        return if turn == 0 { paced(asked, pace) } else { answer(Duration::ZERO) };
    }
    if let Some(pause) = model.strip_prefix(THINKING) {
        return thinking(asked, turn, pause);
    }
    match model {
        FAST if turn < TURNS_WITH_CALLS => calls_only(asked, turn),
        SLOW_MODEL => answer(SLOW),
        _ => answer(Duration::ZERO),
    }
}

fn thinking(asked: &Asked, turn: usize, pause: &str) -> Vec<Step> {
    let pause = Duration::from_millis(pause.parse().unwrap_or_default());
    let mut steps =
        if turn < TURNS_WITH_CALLS { calls_only(asked, turn) } else { answer(Duration::ZERO) };
    if let Some(first) = steps.first_mut() {
        first.pause = pause;
    }
    steps
}

fn answer(pause: Duration) -> Vec<Step> {
    let first = event(&json!({"role": "assistant", "content": "All done."}), &Value::Null);
    ended(vec![Step { pause, bytes: first }], "stop")
}

fn calls_only(asked: &Asked, turn: usize) -> Vec<Step> {
    ended(calls(asked, turn, Duration::ZERO), "tool_calls")
}

/// Words, the calls, words again.
fn paced(asked: &Asked, pace: &str) -> Vec<Step> {
    let beat = pace.parse().map_or(Duration::from_millis(10), |pace: f64| {
        Duration::try_from_secs_f64(pace.recip()).unwrap_or_default()
    });
    let words = |many: usize| {
        let word = event(&json!({"content": "because "}), &Value::Null);
        std::iter::repeat_n(Step { pause: beat, bytes: word }, many)
    };
    let mut steps: Vec<Step> = words(WORDS.0).collect();
    steps.extend(calls(asked, 0, Duration::ZERO));
    steps.extend(words(WORDS.1));
    ended(steps, "tool_calls")
}

/// Each call in two pieces, as providers send them; never the same arguments twice.
fn calls(asked: &Asked, turn: usize, pause: Duration) -> Vec<Step> {
    // The run's own way to end is on offer too; a call of it would not reach a worker.
    let offered = asked.tools.iter().filter(|tool| tool.function.name != FINISH);
    let tools: Vec<&Tool> = offered.collect();
    let call = |index: usize| {
        let tool = tools.get(index.checked_rem(tools.len()).unwrap_or(0));
        let name = tool.map_or("", |tool| tool.function.name.as_str());
        let number = turn.saturating_mul(CALLS).saturating_add(index);
        let opening = json!({"index": index, "id": format!("call_{number}"), "type": "function",
            "function": {"name": name, "arguments": ""}});
        let rest =
            json!({"index": index, "function": {"arguments": format!("{{\"n\":{number}}}")}});
        [opening, rest].map(|piece| event(&json!({"tool_calls": [piece]}), &Value::Null))
    };
    (0..CALLS).flat_map(call).map(|bytes| Step { pause, bytes }).collect()
}

fn ended(mut steps: Vec<Step>, reason: &str) -> Vec<Step> {
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 200, "completion_tokens": 20,
        "total_tokens": 220}});
    let tail = [
        event(&json!({}), &json!(reason)),
        format!("data: {usage}\n\n"),
        "data: [DONE]\n\n".to_owned(),
    ];
    steps.extend(tail.map(|bytes| Step { pause: Duration::ZERO, bytes }));
    steps
}

fn event(delta: &Value, finish: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk = json!({"id": "bench", "object": "chat.completion.chunk", "created": 0,
        "model": "bench", "choices": [choice]});
    format!("data: {chunk}\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(model: &str, turns: usize) -> Asked {
        let turn = json!({"role": "assistant", "tool_calls": [{"id": "a"}]});
        let mut messages =
            vec![json!({"role": "system"}), json!({"role": "user", "content": "go"})];
        messages.extend(std::iter::repeat_n(turn, turns));
        let tools = ["note", FINISH].map(|name| json!({"function": {"name": name}}));
        let body = json!({"model": model, "messages": messages, "tools": tools});
        serde_json::from_value(body).unwrap()
    }

    fn text(steps: &[Step]) -> String {
        steps.iter().map(|step| step.bytes.as_str()).collect()
    }

    #[test]
    fn three_turns_of_two_calls_come_before_the_answer() {
        for turn in 0..TURNS_WITH_CALLS {
            let said = text(&reply(&asked(FAST, turn)));
            let first = format!("\\\"n\\\":{}", turn * CALLS);
            assert!(said.contains(&first), "{said}");
            assert_eq!(said.matches("\"name\":\"note\"").count(), CALLS, "{said}");
            assert!(said.contains("\"finish_reason\":\"tool_calls\""), "{said}");
        }
        let last = text(&reply(&asked(FAST, TURNS_WITH_CALLS)));
        assert!(last.contains("All done.") && last.ends_with("data: [DONE]\n\n"), "{last}");
    }

    #[test]
    fn a_talk_has_its_pace_and_its_length() {
        let told = talk(&asked("bench-talking-50-20", 0));
        assert_eq!(told, Some((Duration::from_millis(20), 1000)));
        for other in ["bench-talking-", "bench-talking-0-1", "bench-talking-x-1", FAST] {
            assert_eq!(talk(&asked(other, 0)), None, "{other}");
        }
        assert!(talk_chunk().contains(TALK) && talk_end().ends_with("data: [DONE]\n\n"));
    }

    #[test]
    fn a_pace_lies_between_words_only() {
        let steps = reply(&asked("bench-paced-100", 0));
        let spoken: Duration = steps.iter().map(|step| step.pause).sum();
        assert_eq!(spoken, Duration::from_secs(3));
        assert_eq!(reply(&asked("bench-slow", 0)).first().unwrap().pause, SLOW);
        let thinking = reply(&asked("bench-thinking-200", 1));
        let pauses: Duration = thinking.iter().map(|step| step.pause).sum();
        assert_eq!(pauses, Duration::from_millis(200));
        assert_eq!(text(&thinking), text(&reply(&asked(FAST, 1))));
    }
}

//! One mutation of a resource at a time: what the newest record of the resource allows next.
//!
//! The journal decides between two that try at once: each appends behind the record that it saw. So two
//! calls never hold a resource at once, as far as every worker ends its attempt in time.

use std::time::Duration;

use proto::call::{Hold, Holder};
use proto::time::{Timestamp, millis};

/// Beginnings that are remembered.
const REMEMBERED: usize = 64;

/// How long a resource rests, and how often it may be changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// After each mutation.
    pub cool_down: Duration,
    /// At most so many in each span.
    pub rate: Option<(u32, Duration)>,
}

/// Why a resource cannot be taken now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Busy {
    /// How long it rests for certain; unknown while somebody holds it, who may be done at any time.
    pub rests: Option<Duration>,
    /// Who holds it, or why it rests.
    pub words: String,
}

/// The record by which `candidate` takes the resource whose newest record is `last`.
pub fn take(
    resource: &str,
    last: Option<&Hold>,
    candidate: &Holder,
    rules: Rules,
) -> Result<Hold, Busy> {
    let now = candidate.at;
    let mut began = last.map(|hold| hold.began.clone()).unwrap_or_default();
    if let Some(holder) = last.and_then(|hold| hold.holder.as_ref()) {
        if is_same(holder, candidate) {
            return Ok(hold(resource, Some(candidate.clone()), began, last));
        }
        if now < holder.until {
            return Err(Busy { rests: None, words: held_words(resource, holder, candidate) });
        }
    }
    if let Some(rest) = cooling(last, rules, now).into_iter().chain(full(&began, rules, now)).max()
    {
        return Err(Busy { rests: Some(rest), words: rest_words(resource, last, rules, rest) });
    }
    began.push(now);
    let first = began.len().saturating_sub(REMEMBERED);
    let began = began.split_off(first);
    Ok(hold(resource, Some(candidate.clone()), began, last))
}

/// The record by which a call gives the resource back at `now`, unless it is not the holder any more.
/// One whose mutation never began leaves no trace.
pub fn give_back(last: &Hold, by: &Holder, began: bool, now: Timestamp) -> Option<Hold> {
    let holder = last.holder.as_ref().filter(|holder| is_same(holder, by))?;
    let mut next = Hold { holder: None, ..last.clone() };
    if began {
        next.ended = Some(now);
    } else {
        next.began.retain(|at| *at != holder.at && *at != by.at);
    }
    Some(next)
}

fn hold(
    resource: &str,
    holder: Option<Holder>,
    began: Vec<Timestamp>,
    last: Option<&Hold>,
) -> Hold {
    let ended = last.and_then(|last| last.ended);
    Hold { resource: resource.to_owned(), holder, began, ended }
}

/// A call that was delivered again is still the same call.
fn is_same(one: &Holder, other: &Holder) -> bool {
    one.thread == other.thread && one.tool_call_id == other.tool_call_id
}

/// How long the resource rests after its last mutation. One that nobody gave back ended at the latest
/// when its holder's time was over.
fn cooling(last: Option<&Hold>, rules: Rules, now: Timestamp) -> Option<Duration> {
    let last = last?;
    let ended = last.holder.as_ref().map(|holder| holder.until).or(last.ended)?;
    let free = ended.after(rules.cool_down);
    (now < free).then(|| free.since(now))
}

/// How long until one more mutation keeps to the rate.
fn full(began: &[Timestamp], rules: Rules, now: Timestamp) -> Option<Duration> {
    let (most, span) = rules.rate?;
    let most = usize::try_from(most.max(1)).unwrap_or(usize::MAX);
    let oldest = began.len().checked_sub(most).and_then(|first| began.get(first))?;
    let free = oldest.after(span);
    (now < free).then(|| free.since(now))
}

fn held_words(resource: &str, holder: &Holder, candidate: &Holder) -> String {
    let Holder { tool, at, until, .. } = holder;
    let whose = if holder.thread.tenant == candidate.thread.tenant {
        format!("call {} of thread {}", holder.tool_call_id, holder.thread.thread)
    } else {
        "a call of another tenant".to_owned()
    };
    let (at, until) = (crate::doubt::utc(*at), crate::doubt::utc(*until));
    format!("`{resource}` is held by {tool}, {whose}, since {at}, until {until} at the latest.")
}

fn rest_words(resource: &str, last: Option<&Hold>, rules: Rules, rest: Duration) -> String {
    let rate = rules.rate.map(|(most, span)| format!("{most} in {} s", span.as_secs()));
    let limit = [
        Some(format!("{} ms after each mutation", millis(rules.cool_down)))
            .filter(|_| !rules.cool_down.is_zero()),
        rate.map(|rate| format!("at most {rate}")),
    ];
    let limit: Vec<String> = limit.into_iter().flatten().collect();
    let ended = last.and_then(|hold| hold.ended);
    let ended = ended.map_or_else(String::new, |at| {
        format!(" Its last mutation ended at {}.", crate::doubt::utc(at))
    });
    format!("`{resource}` rests for another {} ms ({}).{ended}", rest.as_millis(), limit.join(", "))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proto::ids::{InstanceId, Partition, TenantId, ThreadId, ThreadRef, ToolCallId, ToolName};

    use super::*;

    const ME: u64 = 1;

    fn holder(n: u64, at: i64) -> Holder {
        Holder {
            thread: ThreadRef {
                partition: Partition(0),
                tenant: TenantId::new(if n < 90 { "acme" } else { "other" }).unwrap(),
                thread: ThreadId::from_parts(1, u128::from(n)),
            },
            tool_call_id: ToolCallId::new("aaaaaaaaa").unwrap(),
            tool: ToolName::new("restart").unwrap(),
            worker: InstanceId::new("w1").unwrap(),
            at: Timestamp(at),
            until: Timestamp(at + 1000),
        }
    }

    const RULES: Rules =
        Rules { cool_down: Duration::from_millis(50), rate: Some((2, Duration::from_millis(900))) };

    fn taken(last: Option<&Hold>, n: u64, at: i64) -> Result<Hold, Busy> {
        take("service/web", last, &holder(n, at), RULES)
    }

    #[test]
    fn one_holds_it_and_the_others_are_told_who() {
        let mine = taken(None, ME, 0).unwrap();
        let busy = taken(Some(&mine), 2, 10).unwrap_err();
        assert_eq!(busy.rests, None);
        assert!(busy.words.contains("held by restart, call aaaaaaaaa of thread"), "{}", busy.words);
        let stranger = taken(Some(&mine), 99, 10).unwrap_err().words;
        assert!(stranger.contains("a call of another tenant"), "{stranger}");
        let again = taken(Some(&mine), ME, 500).unwrap();
        assert_eq!(
            (again.holder.unwrap().until, again.began),
            (Timestamp(1500), vec![Timestamp(0)])
        );
    }

    #[test]
    fn it_rests_after_a_mutation_and_keeps_to_its_rate() {
        let mine = taken(None, ME, 0).unwrap();
        let free = give_back(&mine, &holder(ME, 0), true, Timestamp(100)).unwrap();
        let busy = taken(Some(&free), 2, 120).unwrap_err();
        assert_eq!(busy.rests, Some(Duration::from_millis(30)));
        let second = taken(Some(&free), 2, 150).unwrap();
        let free = give_back(&second, &holder(2, 150), true, Timestamp(200)).unwrap();
        let busy = taken(Some(&free), 3, 300).unwrap_err();
        assert_eq!(busy.rests, Some(Duration::from_millis(600)));
        assert!(busy.words.contains("rests for another 600 ms"), "{}", busy.words);
        assert!(taken(Some(&free), 3, 900).is_ok());
    }

    #[test]
    fn one_that_never_began_leaves_no_trace() {
        let mine = taken(None, ME, 0).unwrap();
        let free = give_back(&mine, &holder(ME, 0), false, Timestamp(100)).unwrap();
        assert_eq!((&free.began, free.ended, &free.holder), (&vec![], None, &None));
        assert!(taken(Some(&free), 2, 101).is_ok());
    }

    #[test]
    fn a_holder_that_died_is_waited_for_and_then_cooled_down_from() {
        let mine = taken(None, ME, 0).unwrap();
        assert_eq!(taken(Some(&mine), 2, 999).unwrap_err().rests, None);
        assert_eq!(taken(Some(&mine), 2, 1000).unwrap_err().rests, Some(Duration::from_millis(50)));
        let next = taken(Some(&mine), 2, 1050).unwrap();
        assert_eq!(give_back(&next, &holder(ME, 0), true, Timestamp(1100)), None);
    }

    proptest! {
        /// Whatever is tried when: two never hold it at once, and no rule is broken.
        #[test]
        fn never_two_at_once(
            tries in prop::collection::vec((1..6_u64, 0..400_i64, any::<bool>(), any::<bool>()), 1..60),
        ) {
            let (mut now, mut last) = (0, None::<Hold>);
            let mut began: Vec<i64> = Vec::new();
            let mut holding: Option<(u64, i64)> = None;
            for (who, pause, ends, begins) in tries {
                now += pause;
                if let Ok(next) = taken(last.as_ref(), who, now) {
                    if let Some((other, until)) = holding {
                        prop_assert!(other == who || now >= until + 50);
                    }
                    // One that is delivered again begins nothing.
                    if next.began.len() > last.as_ref().map_or(0, |hold| hold.began.len()) {
                        began.push(now);
                    }
                    holding = Some((who, now + 1000));
                    last = Some(next);
                }
                if ends && let Some((who, until)) = holding && now < until {
                    let current = last.clone().unwrap();
                    let by = current.holder.clone().unwrap();
                    prop_assert_eq!(by.thread.thread, holder(who, 0).thread.thread);
                    let free = give_back(&current, &by, begins, Timestamp(now)).unwrap();
                    if !begins {
                        began.retain(|at| free.began.contains(&Timestamp(*at)));
                    }
                    (last, holding) = (Some(free), None);
                }
                let recent = began.iter().filter(|at| **at > now - 900).count();
                prop_assert!(recent <= 2, "{began:?} at {now}");
            }
        }
    }
}

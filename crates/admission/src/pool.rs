//! What is known of one model at one endpoint, and who may ask it next. Pure: state, event and time
//! in, state and decision out; times are microseconds of the store's clock.
//!
//! Requests are spaced evenly, a little below the limit: a provider counts in windows of its own, and
//! evenly spaced requests fit into any of them. A place is given at most `AHEAD` in advance; who
//! comes later asks again, so that what is given can still be shared between tenants. Where a limit
//! is not known it is learned: a refusal shrinks the rate to what was answered, time lets it grow.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How far ahead a place is given.
const AHEAD: u64 = 100_000;
/// How soon somebody asks again who waits for others.
const SOON: u64 = 50_000;
/// How long somebody counts as waiting who does not ask again.
const WAITS: u64 = 1_000_000;
/// How long a tenant's share is remembered.
const REMEMBERED: u64 = 10_000_000;
/// Requests by which one tenant may be ahead of another that waits.
const SLACK: u64 = 2;
/// The part of a limit that is used, in thousandths.
const USED: u64 = 970;
/// What is left of a rate that met a refusal, in thousandths.
const SHRUNK: u64 = 950;
/// By how much it grows in a second, in thousandths.
const GROWTH: u64 = 3;
/// By how much, for each such span of seconds without a refusal, once there was one.
const GROWTH_LATER: u64 = 10;
const CAREFUL: u64 = 5;
/// The slowest rate, in thousandths of a request a second.
const SLOWEST: u64 = 50;
/// Between two changes of the rate.
const SECOND: u64 = 1_000_000;
/// The longest wait that a refusal can ask of everybody.
const LONGEST_BLOCK: u64 = 60_000_000;
const MINUTE: u64 = 60_000_000;

/// What a provider allows, as far as settings say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Requests a minute.
    pub requests: Option<u32>,
    /// Tokens a minute, both ways.
    pub tokens: Option<u64>,
    /// Requests open at once.
    pub open: Option<usize>,
}

/// What is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// When the next request may be made.
    next: u64,
    /// When the next token may be used.
    next_token: u64,
    /// Nobody asks before.
    blocked_until: u64,
    /// The learned rate, in thousandths of a request a second.
    rate: Option<u64>,
    /// When it shrank and grew last.
    shrunk: u64,
    grown: u64,
    /// Requests given places less those refused, in the second that runs and the one before.
    good: Good,
    /// Places that are taken, with the time at which they are void.
    open: BTreeMap<String, u64>,
    tenants: BTreeMap<String, Share>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Good {
    second: u64,
    now: u64,
    before: u64,
}

/// What a tenant has had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Share {
    had: u64,
    waits_until: u64,
    seen: u64,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Somebody wants a place.
    Ask {
        /// Names the place.
        id: String,
        /// For whom.
        tenant: String,
        /// A guess at the tokens.
        tokens: u64,
        /// How long the place may be held at most.
        lease: u64,
    },
    /// Somebody waits no more.
    Leave {
        /// Who.
        tenant: String,
    },
    /// A request is over.
    Done {
        /// The place.
        id: String,
        /// The tokens that were reserved.
        reserved: u64,
        /// The tokens that were used, where that is known.
        used: Option<u64>,
    },
    /// A request was refused because there were too many.
    Refused {
        /// The place.
        id: String,
        /// The tokens that were reserved; none were used.
        reserved: u64,
        /// How long the provider asked to wait.
        wait: Option<u64>,
    },
}

/// What to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Ask the model after this pause.
    Go(u64),
    /// Come back after this pause.
    Wait(u64, Because),
    /// Nothing.
    Noted,
}

/// Why somebody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Because {
    /// The provider asked for a pause.
    Blocked,
    /// As many requests are open as may be.
    Open,
    /// Others had less.
    Others,
    /// The limit of requests.
    Requests,
    /// The limit of tokens.
    Tokens,
}

impl Because {
    /// In words, behind "waiting because".
    pub fn words(self) -> &'static str {
        match self {
            Self::Blocked => "the provider asked for a pause",
            Self::Open => "as many requests are open as may be",
            Self::Others => "other tenants had less of the model",
            Self::Requests => "the model takes no more requests a minute",
            Self::Tokens => "the model takes no more tokens a minute",
        }
    }
}

impl Pool {
    /// Takes what happened.
    pub fn apply(&mut self, limits: &Limits, event: &Event, now: u64) -> Decision {
        self.forget(now);
        match event {
            Event::Ask { id, tenant, tokens, lease } => {
                self.grow(limits, now);
                match self.hindrance(limits, tenant, now) {
                    Some((pause, because)) => Decision::Wait(pause.max(1000), because),
                    None => self.give(limits, (id, tenant), (*tokens, *lease), now),
                }
            }
            Event::Leave { tenant } => {
                self.tenants.entry(tenant.clone()).or_default().waits_until = now;
                Decision::Noted
            }
            Event::Done { id, reserved, used } => {
                self.open.remove(id);
                self.settle(limits, *reserved, used.unwrap_or(*reserved), now);
                Decision::Noted
            }
            Event::Refused { id, reserved, wait } => {
                self.open.remove(id);
                self.settle(limits, *reserved, 0, now);
                self.shrink(limits, now);
                if let Some(wait) = wait {
                    let until = now.saturating_add((*wait).min(LONGEST_BLOCK));
                    self.blocked_until = self.blocked_until.max(until);
                }
                Decision::Noted
            }
        }
    }

    fn forget(&mut self, now: u64) {
        self.open.retain(|_, until| *until > now);
        self.tenants.retain(|_, share| share.seen.saturating_add(REMEMBERED) > now);
        let second = now / SECOND;
        if self.good.second != second {
            let next = self.good.second.saturating_add(1) == second;
            let before = if next { self.good.now } else { 0 };
            self.good = Good { second, now: 0, before };
        }
        // A clock that was set back would hold everybody up.
        for time in [&mut self.next, &mut self.next_token, &mut self.blocked_until] {
            *time = (*time).min(now.saturating_add(LONGEST_BLOCK));
        }
    }

    /// Why nobody, or not this tenant, gets a place now.
    fn hindrance(&mut self, limits: &Limits, tenant: &str, now: u64) -> Option<(u64, Because)> {
        let had = self.enter(tenant, now);
        if now < self.blocked_until {
            return Some((self.blocked_until.saturating_sub(now), Because::Blocked));
        }
        if limits.open.is_some_and(|most| self.open.len() >= most) {
            return Some((SOON, Because::Open));
        }
        let others = self
            .tenants
            .iter()
            .filter(|(name, share)| name.as_str() != tenant && share.waits_until > now);
        let least = others.map(|(_, share)| share.had).min();
        if least.is_some_and(|least| had > least.saturating_add(SLACK)) {
            return Some((SOON, Because::Others));
        }
        let late = |next: u64| next.checked_sub(now.saturating_add(AHEAD)).filter(|late| *late > 0);
        if let Some(late) = late(self.next) {
            return Some((late, Because::Requests));
        }
        late(self.next_token).map(|late| (late.min(SECOND), Because::Tokens))
    }

    /// Who comes anew begins with what the one had who had least.
    fn enter(&mut self, tenant: &str, now: u64) -> u64 {
        let least = self.tenants.values().map(|share| share.had).min().unwrap_or_default();
        let share = self
            .tenants
            .entry(tenant.to_owned())
            .or_insert_with(|| Share { had: least, ..Share::default() });
        (share.waits_until, share.seen) = (now.saturating_add(WAITS), now);
        share.had
    }

    fn give(
        &mut self,
        limits: &Limits,
        (id, tenant): (&str, &str),
        (tokens, lease): (u64, u64),
        now: u64,
    ) -> Decision {
        let at = self.next.max(now);
        if let Some(pause) = self.pause(limits) {
            self.next = at.saturating_add(pause);
        }
        if let Some(cost) = token_cost(limits, tokens) {
            self.next_token = self.next_token.max(now).saturating_add(cost);
        }
        self.open.insert(id.to_owned(), at.saturating_add(lease));
        self.good.now = self.good.now.saturating_add(1);
        if let Some(share) = self.tenants.get_mut(tenant) {
            share.had = share.had.saturating_add(1);
            share.waits_until = now;
        }
        Decision::Go(at.saturating_sub(now))
    }

    /// Between two requests, when that is known.
    fn pause(&self, limits: &Limits) -> Option<u64> {
        let set = limits.requests.map(rate_of);
        let rate = match (set, self.rate) {
            (Some(set), Some(learned)) => set.min(learned),
            (known, None) | (None, known) => known?,
        };
        Some((1000 * SECOND) / rate.max(SLOWEST))
    }

    fn settle(&mut self, limits: &Limits, reserved: u64, used: u64, now: u64) {
        let (more, less) = (used.saturating_sub(reserved), reserved.saturating_sub(used));
        if let (Some(more), Some(less)) = (token_cost(limits, more), token_cost(limits, less)) {
            self.next_token = self.next_token.max(now).saturating_add(more).saturating_sub(less);
        }
    }

    /// Several refusals of one second are one piece of news.
    fn shrink(&mut self, limits: &Limits, now: u64) {
        self.good.now = self.good.now.saturating_sub(1);
        if self.shrunk > 0 && now < self.shrunk.saturating_add(SECOND) {
            return;
        }
        let known = self.rate.or_else(|| limits.requests.map(rate_of));
        // A second that was seen as a whole tells more than a rate that was set.
        let seen = Some(self.good.before.saturating_mul(1000)).filter(|seen| *seen > 0);
        let Some(rate) = known.into_iter().chain(seen).min() else { return };
        self.rate = Some((rate.saturating_mul(SHRUNK) / 1000).max(SLOWEST));
        self.shrunk = now;
    }

    fn grow(&mut self, limits: &Limits, now: u64) {
        let Some(rate) = self.rate else { return };
        if now < self.shrunk.max(self.grown).saturating_add(SECOND) {
            return;
        }
        let quiet = now.saturating_sub(self.shrunk) / SECOND;
        let growth =
            if quiet < CAREFUL { GROWTH } else { GROWTH_LATER.saturating_mul(quiet / CAREFUL) };
        let grown = rate.saturating_add((rate.saturating_mul(growth) / 1000).max(1));
        self.rate = match limits.requests.map(rate_of) {
            Some(set) if grown >= set => None,
            Some(_) | None => Some(grown),
        };
        self.grown = now;
    }
}

/// Thousandths of a request a second.
fn rate_of(a_minute: u32) -> u64 {
    (u64::from(a_minute).saturating_mul(USED) / 60).max(SLOWEST)
}

/// How long so many tokens take.
fn token_cost(limits: &Limits, tokens: u64) -> Option<u64> {
    let most = limits.tokens?.max(1);
    Some(tokens.saturating_mul(MINUTE) / most)
}

//! When a rule fits.

use regex::Regex;

use crate::heard::{self, Event, Heard, Observed, Speaker};
use crate::matcher::Matcher;

/// Which part of the conversation a rule looks at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Since {
    /// From the user's newest words on.
    #[default]
    User,
    /// From the start.
    Start,
}

/// Everything that has to hold for a rule to fit.
#[derive(Clone, Debug, Default)]
pub struct Condition {
    /// Which part of the conversation counts.
    pub since: Since,
    /// Who spoke last.
    pub last: Option<Speaker>,
    /// The model that was asked for matches.
    pub model: Option<Regex>,
    /// The user's newest words match; its groups are for templates.
    pub user_matches: Option<Regex>,
    /// Which reply this is, from 1.
    pub turn: Vec<Matcher>,
    /// Tools that were called.
    pub called: Vec<String>,
    /// Tools that were not called.
    pub not_called: Vec<String>,
    /// How often a tool was called.
    pub times: Vec<(String, Matcher)>,
    /// What the newest observation of a tool says.
    pub observed: Vec<Watch>,
}

/// What the newest observation of one tool has to say.
#[derive(Clone, Debug, Default)]
pub struct Watch {
    /// The tool; any when absent.
    pub tool: Option<String>,
    /// Its text matches.
    pub text: Option<Regex>,
    /// Values of its JSON, by dotted path.
    pub values: Vec<(String, Matcher)>,
}

impl Watch {
    fn accepts(&self, observed: &Observed) -> bool {
        let text = self.text.as_ref().is_none_or(|pattern| pattern.is_match(&observed.text));
        text && self.values.iter().all(|(path, matcher)| {
            let value = observed.json.as_ref().and_then(|json| heard::at_path(json, path));
            matcher.accepts(value)
        })
    }
}

impl Condition {
    /// Whether nothing is asked for, so that every request fits.
    pub fn is_always(&self) -> bool {
        self.last.is_none()
            && self.model.is_none()
            && self.user_matches.is_none()
            && self.turn.is_empty()
            && self.called.is_empty()
            && self.not_called.is_empty()
            && self.times.is_empty()
            && self.observed.is_empty()
    }

    /// The part of the conversation that counts.
    pub fn scope<'h>(&self, heard: &'h Heard) -> &'h [Event] {
        match self.since {
            Since::User => heard.since_user(),
            Since::Start => &heard.events,
        }
    }

    /// Whether everything holds.
    pub fn holds(&self, heard: &Heard) -> bool {
        let events = self.scope(heard);
        let turn = serde_json::Value::from(turn(events));
        self.last.is_none_or(|last| last == heard.last())
            && self.model.as_ref().is_none_or(|pattern| pattern.is_match(&heard.model))
            && self.user_matches.as_ref().is_none_or(|pattern| pattern.is_match(heard.user()))
            && self.turn.iter().all(|matcher| matcher.accepts(Some(&turn)))
            && self.called.iter().all(|tool| times(events, tool) > 0)
            && self.not_called.iter().all(|tool| times(events, tool) == 0)
            && self.times.iter().all(|(tool, matcher)| {
                matcher.accepts(Some(&serde_json::Value::from(times(events, tool))))
            })
            && self.observed.iter().all(|watch| {
                let newest = heard::newest(events, watch.tool.as_deref());
                newest.is_some_and(|observed| watch.accepts(observed))
            })
    }
}

/// Which reply comes next, from 1.
pub fn turn(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Reply)).count().saturating_add(1)
}

fn times(events: &[Event], tool: &str) -> usize {
    events.iter().filter(|event| matches!(event, Event::Called(called) if called == tool)).count()
}

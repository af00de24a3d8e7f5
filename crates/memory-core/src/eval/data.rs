//! Conversations and questions as JSON lines:
//!
//! ```json
//! {"session": "s1", "turns": [{"id": "1", "role": "user", "text": "The port is 8080."}]}
//! {"session": "s1", "question": "Which port?", "evidence": ["1"]}
//! ```
//!
//! Two more fields are known and may be left out: a turn's `supersedes` names the turn whose fact it
//! replaces, and `pinned` says that it must never be lost.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A line that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct BadLine {
    /// From 1.
    pub line: usize,
    /// What is wrong, and what to write.
    pub what: String,
}

/// A conversation with its questions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dialogue {
    /// Its name.
    pub session: String,
    /// What was said, oldest first.
    pub turns: Vec<Said>,
    /// What is asked about it.
    pub questions: Vec<Asked>,
}

/// One turn.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    /// Its name in the session.
    #[serde(deserialize_with = "text_or_number")]
    pub id: String,
    /// Who speaks: `user`, `assistant`, `tool`; anybody else is a person.
    pub role: String,
    /// The words.
    pub text: String,
    /// The turn whose fact this one replaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<String>,
    /// Whether it must never be lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pinned: bool,
}

/// One question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The words.
    pub text: String,
    /// The places of the turns that answer it.
    pub evidence: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Name {
    Text(String),
    Number(serde_json::Number),
}

impl Name {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

fn text_or_number<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Name::deserialize(from).map(Name::into_text)
}

#[derive(Deserialize)]
struct Line {
    session: Name,
    turns: Option<Vec<Said>>,
    question: Option<String>,
    evidence: Option<Vec<Name>>,
}

/// Reads the lines. Sessions come in the order of their turns; a session may be told in several lines,
/// and a question may stand before them. Questions without evidence are left out: nothing can be found
/// for them.
pub fn read(text: &str) -> Result<Vec<Dialogue>, Vec<BadLine>> {
    let mut reading = Reading::default();
    let mut bad = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line_number = number.saturating_add(1);
        if let Err(what) = reading.line(line_number, line) {
            bad.push(BadLine { line: line_number, what });
        }
    }
    bad.extend(reading.resolve());
    if bad.is_empty() { Ok(reading.dialogues) } else { Err(bad) }
}

#[derive(Default)]
struct Reading {
    dialogues: Vec<Dialogue>,
    places: BTreeMap<String, usize>,
    asked: Vec<(usize, String, String, Vec<String>)>,
}

impl Reading {
    fn line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let line: Line = serde_json::from_str(line).map_err(|error| {
            format!("{error}; expected {{\"session\", \"turns\"}} or {{\"session\", \"question\", \"evidence\"}}")
        })?;
        let session = line.session.into_text();
        match (line.turns, line.question) {
            (Some(turns), None) => self.turns(session, turns),
            (None, Some(question)) => {
                let evidence = line.evidence.unwrap_or_default();
                let evidence = evidence.into_iter().map(Name::into_text).collect();
                self.asked.push((number, session, question, evidence));
                Ok(())
            }
            (Some(_), Some(_)) | (None, None) => {
                Err("has to have either `turns` or `question`; put them on lines of their own"
                    .into())
            }
        }
    }

    fn turns(&mut self, session: String, turns: Vec<Said>) -> Result<(), String> {
        let place = *self.places.entry(session.clone()).or_insert_with(|| {
            self.dialogues.push(Dialogue { session, ..Dialogue::default() });
            self.dialogues.len().saturating_sub(1)
        });
        let Some(dialogue) = self.dialogues.get_mut(place) else { return Ok(()) };
        for turn in turns {
            if dialogue.turns.iter().any(|known| known.id == turn.id) {
                return Err(format!(
                    "turns: the id `{}` comes twice; ids are unique in a session",
                    turn.id
                ));
            }
            dialogue.turns.push(turn);
        }
        Ok(())
    }

    fn resolve(&mut self) -> Vec<BadLine> {
        let mut bad = Vec::new();
        for (line, session, text, evidence) in std::mem::take(&mut self.asked) {
            let place = self.places.get(&session).copied();
            let Some(dialogue) = place.and_then(|place| self.dialogues.get_mut(place)) else {
                let what = format!("session: no line has the turns of `{session}`");
                bad.push(BadLine { line, what });
                continue;
            };
            let turns = &dialogue.turns;
            let place = |id: &str| turns.iter().position(|turn| turn.id == id);
            let found = evidence.into_iter().map(|id| place(&id).ok_or(id));
            let places: Result<Vec<usize>, String> = found.collect();
            match places {
                Ok(mut evidence) if !evidence.is_empty() => {
                    evidence.sort_unstable();
                    evidence.dedup();
                    dialogue.questions.push(Asked { text, evidence });
                }
                Ok(_) => {}
                Err(id) => {
                    let what = format!("evidence: session `{session}` has no turn `{id}`");
                    bad.push(BadLine { line, what });
                }
            }
        }
        bad
    }
}

/// The lines of conversations, as [`read`] takes them.
pub fn write(dialogues: &[Dialogue]) -> String {
    let mut text = String::new();
    for dialogue in dialogues {
        let turns = serde_json::json!({"session": dialogue.session, "turns": dialogue.turns});
        text.push_str(&turns.to_string());
        text.push('\n');
        for question in &dialogue.questions {
            let id = |at: &usize| dialogue.turns.get(*at).map(|turn| turn.id.clone());
            let evidence: Vec<String> = question.evidence.iter().filter_map(id).collect();
            let asked = serde_json::json!({
                "session": dialogue.session, "question": question.text, "evidence": evidence
            });
            text.push_str(&asked.to_string());
            text.push('\n');
        }
    }
    text
}

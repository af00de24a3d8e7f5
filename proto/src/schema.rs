//! JSON Schemas of the wire, generated from the types and checked in beside them.

use schemars::schema_for;
use serde_json::Value;

use crate::agent::Agent;
use crate::envelope::Envelope;
use crate::event::ThreadEvent;
use crate::freeze::Freeze;
use crate::live::{Hint, LiveText};
use crate::notice::LiveNotice;
use crate::tool::Registration;

/// File name and schema of everything that crosses a process border.
pub fn all() -> Vec<(&'static str, Value)> {
    vec![
        ("agent.json", schema_for!(Agent).to_value()),
        ("envelope.json", schema_for!(Envelope).to_value()),
        ("event.json", schema_for!(ThreadEvent).to_value()),
        ("freeze.json", schema_for!(Freeze).to_value()),
        ("hint.json", schema_for!(Hint).to_value()),
        ("live_notice.json", schema_for!(LiveNotice).to_value()),
        ("live_text.json", schema_for!(LiveText).to_value()),
        ("registration.json", schema_for!(Registration).to_value()),
    ]
}

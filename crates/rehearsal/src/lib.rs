//! A scripted model, served over HTTP in the OpenAI streaming wire format.
//!
//! A rehearsal is a list of rules; the first one that fits what the model was sent decides the
//! reply. Nothing is remembered between requests: the messages of a request hold all that a rule
//! may ask for, so a run that goes on after a crash gets the replies it would have got.
//! `docs/rehearsals.md` is the reference for writers. Reading order:
//!
//! - [`heard`]: what a request says, whatever the protocol
//! - [`script`]: the rules as written, checked; with [`condition`], [`matcher`] and [`template`]
//! - [`against`]: what it names, beside the agent whose model it plays; pure
//! - [`engine`]: from rules and a request to a planned reply; pure
//! - [`case`]: rehearsed runs with what is expected of them · [`compare`]: beside what happened; pure
//! - [`wire`]: a planned reply as chunks of the provider's format; pure
//! - [`server`]: both over HTTP

pub mod against;
pub mod case;
mod case_reader;
pub mod compare;
pub mod condition;
pub mod engine;
pub mod heard;
pub mod matcher;
mod mentions;
mod reader;
pub mod script;
pub mod server;
pub mod template;
pub mod wire;

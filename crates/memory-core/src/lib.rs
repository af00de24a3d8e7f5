//! What to keep, rank, merge, forget and show of a conversation; pure.
//!
//! Nothing here has a clock, chance or a store: what came before is an argument, and the same turns
//! in the same order give the same answers on every replay.
//!
//! Reading order:
//!
//! - [`fragment`]: one remembered piece of a thread or a document, with its [`fact`]s
//! - [`kind`]: what a piece is, by rules in several languages
//! - [`entity`]: names, numbers, paths and the like, by rules
//! - [`importance`]: the score of a turn among the turns of its session, and why, over [`ranks`]
//! - [`ranking`]: found lists into one order: fusion, neighbours, prior, validity, decay, diversity
//! - [`lexical`]: BM25 over words as numbers
//! - [`window`]: which turn groups stay in a request, and in which shape
//! - [`eval`]: how well all that does, over [`bm25`]
//! - [`text`]: words, stems, a guess at tokens

pub mod bm25;
pub mod entity;
pub mod eval;
pub mod fact;
pub mod fragment;
pub mod importance;
pub mod kind;
pub mod lexical;
pub mod ranking;
pub mod ranks;
pub mod text;
pub mod window;

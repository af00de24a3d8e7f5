//! How well settings of memory do on conversations: what is found, and what is still there when only
//! a part of the history is kept. No model judges: questions name the turns that answer them.
//!
//! - [`data`]: conversations and questions as JSON lines
//! - [`measure`]: the figures
//! - [`generate`]: conversations of our own, by a seed

pub mod data;
pub mod generate;
pub mod measure;

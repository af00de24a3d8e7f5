//! What a thread does next. Pure: records in, decisions out; time and names are arguments.
//!
//! A shell loads a thread's records, folds them into a [`Thread`], asks [`decide()`] for one step,
//! carries it out, folds what it wrote, and asks again until the step is to rest. Each step is
//! decided from the fold alone, so a crash between any two steps changes nothing: whoever holds the
//! delivery next is told the step that is missing.
//!
//! Reading order:
//!
//! - [`thread`], [`fold`]: what is known of a thread; [`saved`]: the same outside the
//!   journal; [`restore`]: what is known beyond a journal that lost its tail
//! - [`view`]: what a decision is made from and what it is
//! - [`decide`](mod@decide): the order of questions; [`stop`], [`open_turn`], [`calls`],
//!   [`next_turn`], [`verify`], [`ends`] answer them
//! - [`live_turn`], [`accept`], [`repeats`]: one reply while it streams
//! - [`prompt`], [`fit`], [`summary`]: what the model sees; [`weigh`]: how much each part of it matters,
//!   [`digest`], [`standing`]: what is left of what is old
//! - [`ratios`]: what its tokens really are
//! - [`phase`]: the states readers and metrics see; [`elapsed`]: how long a run has taken
//! - [`telling`]: what readers outside are told; [`steps`]: a thought, step by step
//! - [`end_intent`], [`toolbox`]

pub mod accept;
pub mod blank;
pub mod calls;
pub mod decide;
pub mod digest;
pub mod elapsed;
pub mod end_intent;
pub mod ends;
pub mod fit;
pub mod fold;
pub mod live_turn;
pub mod next_turn;
pub mod open_turn;
pub mod phase;
pub mod prompt;
pub mod ratios;
pub mod repeats;
pub mod restore;
pub mod saved;
pub mod standing;
pub mod steps;
pub mod stop;
pub mod summary;
pub mod telling;
pub mod thread;
pub mod toolbox;
pub mod verify;
pub mod view;
pub mod weigh;

pub use decide::decide;
pub use thread::Thread;
pub use view::{Branch, Decision, Step, View, Wake};

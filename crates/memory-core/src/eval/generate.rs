//! Conversations of our own, by a seed.

//! What a thread does next; pure.

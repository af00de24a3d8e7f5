//! Ranks within a session.

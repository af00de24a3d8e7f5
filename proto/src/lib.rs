//! The wire: ids, subjects, records, envelope, error codes, transcript.

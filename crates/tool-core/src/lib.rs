//! What a call may do next: claim, start, retry, breaker, doubt; pure.

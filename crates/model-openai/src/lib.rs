//! Any OpenAI-compatible endpoint, read incrementally.

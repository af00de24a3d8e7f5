//! Drives planner-core: load, decide, append, ask the model.

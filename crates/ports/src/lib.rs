//! Bus, working memory, model, clock, ids: traits and their contracts.

//! Journal, queues, live text, artifacts and working memory in one SQLite file.

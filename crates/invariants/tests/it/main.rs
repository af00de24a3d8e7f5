//! Every rule with a history that breaks it, and histories that break none.

#[cfg(test)]
mod history;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod stories;

//! Words of the parts inside, for whoever watches a run: they belong between its lines, not into the
//! log.

use std::sync::Arc;

use tokio::sync::watch;

/// Words that wait; beyond it the oldest are lost.
const WAITING: usize = 64;

/// What was said and not shown yet.
#[derive(Clone, Debug)]
pub(crate) struct Notices(Arc<watch::Sender<Vec<String>>>);

impl Notices {
    pub(crate) fn none() -> Self {
        Self(Arc::new(watch::Sender::new(Vec::new())))
    }

    /// Says something.
    pub(crate) fn say(&self, words: &str) {
        self.0.send_modify(|waiting| {
            if waiting.len() >= WAITING {
                waiting.remove(0);
            }
            waiting.push(words.to_owned());
        });
    }

    /// What was said since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        let mut said = Vec::new();
        self.0.send_if_modified(|waiting| {
            said = std::mem::take(waiting);
            false
        });
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_told_once_and_bounded() {
        let notices = Notices::none();
        for n in 0..=WAITING {
            notices.say(&n.to_string());
        }
        let said = notices.take();
        assert_eq!((said.len(), said[0].as_str()), (WAITING, "1"));
        assert_eq!(notices.take(), Vec::<String>::new());
    }
}

//! What a model's adapter tells while it is asked, on its way to the turn.

use ports::model;
use proto::notice::Notice;
use tokio::sync::{Mutex, Notify};

/// Notices that may wait to be told; beyond it the newest is dropped, which delays nobody.
const WAITING: usize = 32;

/// What was told and not taken yet.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// What delays the reply.
    pub(crate) notices: Vec<Notice>,
    /// The model that is asked now: what the reply costs hangs on it, so it is never dropped.
    pub(crate) asks: Option<String>,
}

/// Hands on what it hears. Each thread that waits for its model has one, so it is no channel, which
/// makes room for many values at once.
#[derive(Debug, Default)]
pub(crate) struct Ear {
    heard: Mutex<Heard>,
    told: Notify,
}

impl Ear {
    /// Waits until something was told.
    pub(crate) async fn heard(&self) -> Heard {
        self.told.notified().await;
        self.take()
    }

    /// What was told and not taken yet.
    pub(crate) fn take(&self) -> Heard {
        // Nobody holds it across an await, and teller and turn are one task, so it is free.
        self.heard.try_lock().map(|mut heard| std::mem::take(&mut *heard)).unwrap_or_default()
    }

    fn put(&self, put: impl FnOnce(&mut Heard)) {
        if let Ok(mut heard) = self.heard.try_lock() {
            put(&mut heard);
            self.told.notify_one();
        } else {
            tracing::error!("a model was asked by another task than its turn");
        }
    }
}

impl model::Ear for Ear {
    fn notice(&self, notice: Notice) {
        self.put(|heard| {
            if heard.notices.len() < WAITING {
                heard.notices.push(notice);
            }
        });
    }

    fn asks(&self, model: &str) {
        self.put(|heard| heard.asks = Some(model.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use ports::model::Ear as _;

    use super::*;

    #[test]
    fn whoever_is_asked_is_known_however_many_notices_wait() {
        let ear = Ear::default();
        for _ in 0..100 {
            ear.notice(Notice::Waiting { because: "busy".to_owned(), at_most_ms: None });
        }
        ear.asks("first");
        ear.asks("second");
        let heard = ear.take();
        assert_eq!(heard.notices.len(), WAITING);
        assert_eq!(heard.asks.as_deref(), Some("second"));
        assert_eq!(ear.take(), Heard::default());
    }
}

//! What a model's adapter tells while it is asked, on its way to the turn.

use ports::model;
use proto::notice::Notice;
use tokio::sync::{Mutex, Notify};

/// What may wait to be told; beyond it the newest is dropped.
const WAITING: usize = 32;

/// One thing that was told.
#[derive(Debug)]
pub(crate) enum Heard {
    Notice(Notice),
    /// This model is asked now.
    Asks(String),
}

/// Hands on what it hears. Each thread that waits for its model has one, so it is no channel, which
/// makes room for many values at once.
#[derive(Debug, Default)]
pub(crate) struct Ear {
    heard: Mutex<Vec<Heard>>,
    told: Notify,
}

impl Ear {
    /// Waits until something was told.
    pub(crate) async fn heard(&self) -> Vec<Heard> {
        self.told.notified().await;
        self.take()
    }

    /// What was told and not taken yet.
    pub(crate) fn take(&self) -> Vec<Heard> {
        // Nobody holds it across an await, so it is free.
        self.heard.try_lock().map(|mut heard| std::mem::take(&mut *heard)).unwrap_or_default()
    }

    fn put(&self, told: Heard) {
        match self.heard.try_lock() {
            Ok(mut heard) if heard.len() < WAITING => {
                heard.push(told);
                self.told.notify_one();
            }
            Ok(_) | Err(_) => {
                tracing::debug!("more was told of a model than its turn could take");
            }
        }
    }
}

impl model::Ear for Ear {
    fn notice(&self, notice: Notice) {
        self.put(Heard::Notice(notice));
    }

    fn asks(&self, model: &str) {
        self.put(Heard::Asks(model.to_owned()));
    }
}

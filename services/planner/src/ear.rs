//! What a model's adapter tells while it is asked, on its way to the turn.

use ports::model;
use proto::notice::Notice;
use tokio::sync::mpsc;

/// What may wait to be told; beyond it the newest is dropped.
const WAITING: usize = 32;

/// One thing that was told.
#[derive(Debug)]
pub(crate) enum Heard {
    Notice(Notice),
    /// This model is asked now.
    Asks(String),
}

/// Hands on what it hears. Each thread that waits for its model has one: a channel makes room for
/// many values at once, so they are boxed.
pub(crate) struct Ear(mpsc::Sender<Box<Heard>>);

impl Ear {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Box<Heard>>) {
        let (sender, receiver) = mpsc::channel(WAITING);
        (Self(sender), receiver)
    }

    fn put(&self, heard: Heard) {
        if self.0.try_send(Box::new(heard)).is_err() {
            tracing::debug!("more was told of a model than its turn could take");
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

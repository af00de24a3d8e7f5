//! Before a message is taken the holder looks whether its files have changed, so that whoever edits
//! an agent and runs it gets what was edited.

use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

/// How long a caller waits for the look.
const LONGEST: Duration = Duration::from_secs(3);

/// Asks for a look.
#[derive(Debug)]
pub(crate) struct Fresh(mpsc::Sender<oneshot::Sender<()>>);

/// Who asked.
#[derive(Debug)]
pub(crate) struct Asked(mpsc::Receiver<oneshot::Sender<()>>);

/// One question.
#[derive(Debug)]
pub(crate) struct Question(oneshot::Sender<()>);

impl Fresh {
    /// Both ends.
    pub(crate) fn new() -> (Self, Asked) {
        let (sender, asked) = mpsc::channel(super::door::MOST);
        (Self(sender), Asked(asked))
    }

    /// Waits until somebody has looked; not for long, for the message matters more.
    pub(super) async fn look(&self) {
        let (answer, answered) = oneshot::channel();
        let asked = async {
            if self.0.send(answer).await.is_ok() {
                answered.await.unwrap_or_default();
            }
        };
        if timeout(LONGEST, asked).await.is_err() {
            tracing::warn!("whether files have changed was not seen in time");
        }
    }
}

impl Asked {
    /// The next question; without end when nobody can ask any more.
    pub(crate) async fn next(&mut self) -> Question {
        match self.0.recv().await {
            Some(answer) => Question(answer),
            None => std::future::pending().await,
        }
    }
}

impl Question {
    /// Somebody has looked.
    pub(crate) fn answer(self) {
        // Whoever asked may have gone.
        self.0.send(()).unwrap_or_default();
    }
}

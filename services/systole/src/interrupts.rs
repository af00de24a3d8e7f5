//! Ctrl-C and its kin: the first asks for a clean end, the second ends at once.

use std::io::{self, Write};

use service_runtime::tasks::TaskSet;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::failure::Exit;

/// Hears signals while it lives.
pub(crate) struct Interrupts {
    asked: watch::Receiver<bool>,
    command: watch::Sender<Option<String>>,
    _tasks: TaskSet,
}

impl Interrupts {
    /// From now on signals are heard here and no longer end the process by themselves.
    pub(crate) fn listen() -> io::Result<Self> {
        // A file that may not grow is an error to tell, not the end: heard, it does not kill.
        let too_large = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))?;
        let mut kinds = [
            signal(SignalKind::interrupt())?,
            signal(SignalKind::terminate())?,
            signal(SignalKind::hangup())?,
        ];
        let (tell, asked) = watch::channel(false);
        let command = watch::Sender::new(None::<String>);
        let go_on = command.subscribe();
        let mut tasks = TaskSet::new();
        tasks.start("interrupts", async move {
            let _heard = too_large;
            let [interrupt, terminate, hangup] = &mut kinds;
            for round in 0..2_u8 {
                tokio::select! {
                    _ = interrupt.recv() => {}
                    _ = terminate.recv() => {}
                    _ = hangup.recv() => {}
                }
                tell.send_replace(true);
                if round > 0 {
                    say_farewell(go_on.borrow().as_deref());
                    // Tools die with this process; the journal has all that was accepted.
                    std::process::exit(i32::from(Exit::Abandoned.code()));
                }
            }
        });
        Ok(Self { asked, command, _tasks: tasks })
    }

    /// What goes on with the run, to be told when it is left at once.
    pub(crate) fn goes_on_with(&self, command: &str) {
        self.command.send_replace(Some(command.to_owned()));
    }

    /// Whether a clean end was asked for.
    pub(crate) fn is_asked(&self) -> bool {
        *self.asked.borrow()
    }

    /// Waits for it.
    pub(crate) async fn asked(&mut self) {
        if self.asked.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

fn say_farewell(command: Option<&str>) {
    let Some(command) = command else { return };
    let text = format!("\nleft at once; go on with: {command}\n");
    // Without anybody to tell, the exit code has to do.
    io::stderr().write_all(text.as_bytes()).unwrap_or_default();
}

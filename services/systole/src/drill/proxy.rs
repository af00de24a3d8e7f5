//! A line to a server that can be cut.

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use service_runtime::tasks::TaskSet;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use crate::failure::Failure;

/// Forwards connections while it is not cut; ended when it is dropped.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    cut: watch::Sender<bool>,
    _tasks: TaskSet,
}

impl Proxy {
    /// A line to a port of this machine.
    pub(crate) async fn start(to: u16) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| Failure::other("a line of the drill", error);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let (cut, is_cut) = watch::channel(false);
        let mut tasks = TaskSet::new();
        tasks.start("line", forward(listener, to, is_cut));
        Ok(Self { port, cut, _tasks: tasks })
    }

    /// Cuts the line, or mends it.
    pub(crate) fn cut(&self, cut: bool) {
        self.cut.send_replace(cut);
    }
}

async fn forward(listener: TcpListener, to: u16, is_cut: watch::Receiver<bool>) {
    let mut lines = FuturesUnordered::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    lines.push(carry(stream, to, is_cut.clone()));
                }
            }
            Some(()) = lines.next(), if !lines.is_empty() => {}
        }
    }
}

/// One connection, until either end or the line is gone.
async fn carry(mut from: TcpStream, to: u16, mut is_cut: watch::Receiver<bool>) {
    if *is_cut.borrow_and_update() {
        return;
    }
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", to)).await else { return };
    tokio::select! {
        // Either way the connection is over.
        _ = copy_bidirectional(&mut from, &mut server) => {}
        _ = is_cut.wait_for(|cut| *cut) => {}
    }
}

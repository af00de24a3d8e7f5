//! `systole rehearse serve`: a scripted model as an endpoint of its own.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use tokio::net::TcpListener;

use crate::failure::{Exit, Failure};
use crate::interrupts::Interrupts;
use crate::wiring::rehearsals::read_rehearsal;

/// Serves it until it is told to stop.
pub(super) async fn serve(file: &Path, listen: SocketAddr, pace: f64) -> Result<Exit, Failure> {
    let name = file.display().to_string();
    let text = std::fs::read_to_string(file)
        .map_err(|error| Failure::not_found(format!("{name}: cannot be read: {error}")))?;
    let rehearsal = read_rehearsal(&name, &text, pace)?;
    let mut interrupts =
        Interrupts::listen().map_err(|error| Failure::other("signals cannot be heard", error))?;
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| Failure::input(format!("{listen} cannot be listened on: {error}")))?;
    let address = listener.local_addr().map_err(|error| Failure::other("its address", error))?;
    // Nobody may be reading; the address is for whoever chose port 0.
    writeln!(std::io::stdout(), "listening on http://{address}/v1").unwrap_or_default();
    let stop = async move { interrupts.asked().await };
    let served = rehearsal.serve(listener, stop).await;
    served.map(|()| Exit::Done).map_err(|error| Failure::other("the rehearsal's server", error))
}

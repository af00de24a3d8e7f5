//! HTTP for this machine, beside the door for other commands.

use std::net::SocketAddr;

use gateway::{Metrics, Settings};
use service_runtime::health::Health;
use tokio::net::TcpListener;

use crate::arguments::Dev;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::inputs::tenant;
use crate::wiring::{self, Store};

/// Where it is served when nothing is named.
const USUAL: &str = "127.0.0.1:7070";

/// An address to be asked at.
pub(super) enum Address {
    Taken(TcpListener, SocketAddr),
    /// Nobody named this address, and it is not to be had.
    Missing(String),
    Off,
}

/// Takes the address. One that was named and is not to be had is an error.
pub(super) async fn take(dev: &Dev) -> Result<Address, Failure> {
    let named = dev.listen.as_deref().map(str::trim).filter(|text| !text.is_empty());
    if named == Some("off") {
        return Ok(Address::Off);
    }
    let address = address(named.unwrap_or(USUAL))?;
    let taken = TcpListener::bind(address).await.and_then(|listener| {
        let address = listener.local_addr()?;
        Ok(Address::Taken(listener, address))
    });
    match taken {
        Ok(taken) => Ok(taken),
        Err(error) if named.is_some() => {
            Err(refused(format!("{address} cannot be listened on: {error}")))
        }
        Err(error) => Ok(Address::Missing(format!(
            "HTTP is not served: {address} is not to be had ({error}); --listen names another"
        ))),
    }
}

/// An address of this machine: there are no keys here.
fn address(text: &str) -> Result<SocketAddr, Failure> {
    let unreadable = |_| refused(format!("`{text}` is no address such as {USUAL}"));
    let address: SocketAddr = text.parse().map_err(unreadable)?;
    let settings = Settings { listen: address, ..Settings::new(tenant()) };
    match settings.problems().into_iter().next() {
        Some(problem) => Err(refused(problem)),
        None => Ok(address),
    }
}

fn refused(why: String) -> Failure {
    Failure::input(why).and("Name another address with --listen, or `off`.")
}

/// Whether somebody can ask over HTTP.
pub(super) enum Http {
    At(SocketAddr),
    Missing(String),
    Off,
}

impl Http {
    /// Where.
    pub(super) fn url(&self) -> Option<String> {
        match self {
            Self::At(address) => Some(format!("http://{address}")),
            Self::Missing(_) | Self::Off => None,
        }
    }
}

/// Serves the store's threads until the engine stops.
pub(super) fn serve(engine: &mut Engine, store: &Store, wanted: Address) -> Http {
    let (listener, address) = match wanted {
        Address::Taken(listener, address) => (listener, address),
        Address::Missing(why) => return Http::Missing(why),
        Address::Off => return Http::Off,
    };
    let health = Health::starting();
    health.started();
    let (settings, shutdown) = (Settings::new(tenant()), engine.shutdown());
    let gateway = wiring::gateway(store.ports(), settings, Metrics::new(), health, shutdown);
    engine.start("gateway", gateway.serve(listener));
    Http::At(address)
}

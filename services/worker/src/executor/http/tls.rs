//! How connections are secured.

use std::sync::{Arc, OnceLock};

use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;

/// The trust of this machine, read when it is first needed and kept: reading it costs milliseconds.
#[derive(Debug, Default)]
pub(in crate::executor) struct Tls(OnceLock<ClientConfig>);

impl Tls {
    /// The settings for a client; cheap but for the first time.
    pub(in crate::executor) fn config(&self) -> ClientConfig {
        self.0.get_or_init(trusting).clone()
    }
}

/// A machine without certificates trusts nobody, which a connection then says.
fn trusting() -> ClientConfig {
    match versions().with_platform_verifier() {
        Ok(trusting) => trusting.with_no_client_auth(),
        Err(error) => {
            tracing::warn!(%error, "no certificates of this machine can be used");
            versions().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
    }
}

fn versions() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    let ring = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(ring);
    builder
        .with_safe_default_protocol_versions()
        .unwrap_or_else(|_| unreachable!("ring has both versions"))
}

//! Any OpenAI-compatible endpoint, read incrementally.
//!
//! The wire goes through `async-openai`: it builds the address, the headers and the body. The reply
//! is read by our own [`reader`] from the raw bytes, because what endpoints really send is lost on
//! every typed path. Reading order: [`reader`], [`wire`], [`endpoint`], [`client`].
//!
//! TLS is rustls without a built-in provider: `main` installs ring's before the first client is
//! built, or building one fails.

mod breaker; // an endpoint that keeps failing rests
pub mod client; // the port: retries, fallbacks, deadlines
pub mod embedder; // vectors of texts
pub mod endpoint; // where a model is and how patiently it is asked
mod exchange; // one request and the response to it
pub mod profile; // what a family of endpoints accepts
pub mod reader; // bytes of a reply to events; pure
mod reply; // a response as a stream with deadlines
mod retry; // whether and when to ask again
pub mod wire; // a request as the provider's JSON

pub use client::{EndpointState, OpenAiModel};
pub use embedder::{EmbedderSettings, OpenAiEmbedder};
pub use endpoint::{Deadlines, Endpoint, Patience};
pub use profile::Profile;

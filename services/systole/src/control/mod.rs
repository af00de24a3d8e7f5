//! The door of the process that holds a store: a socket beside the store, for the store's owner.
//! Whoever finds the store held asks its holder here.
//!
//! # Protocol
//!
//! One JSON object a line each way ([`wire`]): an [`wire::Asked`], then [`wire::Reply`]s. Every question
//! has one reply, except [`wire::Ask::Follow`], which is replied to until one side leaves. One question a
//! connection.
//!
//! # What holds
//!
//! - What the journal has does not travel here. Whoever follows a run reads the journal, which any
//!   process of the same user may read; the socket carries what is asked and, for a followed thread,
//!   live text, which may be lost. So what is shown cannot differ from what is kept.
//! - `accepted` comes after the input is durable. A question may be repeated with the same key: the
//!   journal holds at most one input of a key.
//! - The socket is made after the store's lock is held and removed before it is let go; one that lies
//!   there without a holder answers nobody. Its mode is 0600, and a caller of another user is refused.
//! - Lines are at most [`wire::LONGEST`] bytes. Either side waits at most [`wire::PATIENCE`] for the
//!   other; a followed thread says something at least every [`wire::BEAT`], so silence means that the
//!   holder is gone or stands still. At most [`door::MOST`] conversations are open at once.
//! - Another version is refused in words that every version can read.

mod call;
mod door;
mod fresh;
mod inbox;
mod listen;
mod path;
mod wire;

pub(crate) use call::{ask, status};
pub(crate) use door::{Door, Holder};
pub(crate) use fresh::{Asked, Fresh};
pub(crate) use inbox::DoorInbox;
pub(crate) use listen::DoorLive;
pub(crate) use wire::{Ask, Known, Reply, Role, Status};

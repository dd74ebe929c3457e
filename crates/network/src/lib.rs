//! An emulated network: a star of network namespaces, whose packets (layer 3) pass a delay line with delay, jitter, loss, rate
//! and partitions, set for each direction of each link.
//!
//! [`model`] is the network as a value: which packets arrive, and when. It does no I/O and reads no clock. Around it, a
//! [`NetworkServer`] holds a TUN device of each namespace, moves the packets between them, and takes commands on a socket;
//! [`round_trips`] measures what became of it.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod config;
mod control;
mod error;
mod forwarder;
pub mod model;
mod namespace;
mod probe;
mod server;
mod tun;

pub use config::{Config, Node};
pub use error::NetworkError;
pub use probe::{Pings, round_trips};
pub use server::NetworkServer;

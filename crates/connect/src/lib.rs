//! Opens sessions: finds the server, connects and logs in by libpq's rules, without ever blocking.
//!
//! A [`Target`] is what libpq's parameters resolve to. A [`Dialer`] makes it ready once; an [`Opening`] is one session being
//! opened, driven by the readiness of its socket; [`Dialer::open`] drives one to its end. What the load engine and the
//! bulk loader do with the [`Stream`] afterwards is their own affair.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod address;
mod attempt;
mod blocking;
mod cancel;
mod check;
mod dialer;
mod error;
mod host;
mod opening;
mod resolve;
mod secret;
mod socket;
mod stream;
mod target;
mod tls;

pub use address::Address;
pub use cancel::Canceller;
pub use dialer::Dialer;
pub use error::ConnectError;
pub use host::Host;
pub use opening::{Opened, Opening, Progress};
pub use secret::Secret;
pub use stream::Stream;
pub use target::{ChannelBinding, SessionAttrs, Target, Tcp};
pub use tls::{FileProblem, Negotiation, SslMode, Tls, TlsError, TlsVersion};

//! PostgreSQL frontend/backend protocol 3: frames, authentication and prepared message templates. Sans-IO: no sockets, no clock.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod encode;
mod notice;
mod scan;
mod startup;
mod template;

pub use encode::EncodeError;
pub use notice::ServerError;
pub use scan::{Frame, FrameError, KEPT_BYTES, Scanner};
pub use startup::{Login, Session, Startup, StartupError};
pub use template::{Piece, Template};

/// Messages of one fixed form that a client sends.
pub mod frontend {
    pub use crate::encode::{TERMINATE, query};
}

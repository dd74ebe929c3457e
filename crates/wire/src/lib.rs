//! PostgreSQL frontend/backend protocol 3: frames, authentication and prepared message templates. Sans-IO: no sockets, no clock.
#![cfg_attr(test, allow(clippy::unwrap_used))]

mod cursor;
mod encode;
mod methods;
mod notice;
mod recorded;
mod rows;
mod scan;
mod scram;
mod startup;
mod template;

pub use encode::EncodeError;
pub use methods::{Method, Methods};
pub use notice::ServerError;
pub use rows::{RowError, column_names, fields};
pub use scan::{Frame, FrameError, KEPT_BYTES, KEPT_ROW_BYTES, Scanner};
pub use scram::{SaltedPasswords, ScramError};
pub use startup::{ChannelBinding, Encryption, Login, SSL_REQUEST, Session, Startup, StartupError};
pub use template::{Piece, Template, statement_text};

/// Messages of the client.
pub mod frontend {
    pub use crate::encode::{SYNC, TERMINATE, query};
    pub use crate::recorded::{EXECUTE, write_bind, write_parse, write_query};
}

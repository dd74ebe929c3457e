//! Messages of the client as bytes, written by `postgres-protocol`.

use bytes::BytesMut;
use thiserror::Error;

/// Ends the session.
pub const TERMINATE: [u8; 5] = [b'X', 0, 0, 0, 4];

/// Ends a pipeline, or a part of one: the server answers it with `ReadyForQuery`.
pub const SYNC: [u8; 5] = [b'S', 0, 0, 0, 4];

/// Text that the protocol cannot carry.
#[derive(Debug, Error)]
#[error("cannot send {what}: {source}")]
pub struct EncodeError {
    what: &'static str,
    source: std::io::Error,
}

impl EncodeError {
    pub(crate) fn new(
        what: &'static str,
        why: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, why);
        Self { what, source }
    }
}

/// `Query`, the message of the simple protocol.
///
/// # Errors
/// When `sql` has a zero byte or is too long.
pub fn query(sql: &str) -> Result<Vec<u8>, EncodeError> {
    encode("a query", |buffer| {
        postgres_protocol::message::frontend::query(sql, buffer)
    })
}

/// Runs one of `postgres-protocol`'s writers on a new buffer.
pub(crate) fn encode(
    what: &'static str,
    write: impl FnOnce(&mut BytesMut) -> std::io::Result<()>,
) -> Result<Vec<u8>, EncodeError> {
    let mut buffer = BytesMut::new();
    write(&mut buffer).map_err(|source| EncodeError { what, source })?;
    Ok(buffer.to_vec())
}

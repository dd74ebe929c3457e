//! Failures of a stream.

use serde::Serialize;

/// A failure of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// `sql`, `connection_lost` or `protocol`.
    pub kind: &'static str,
    /// The server's error code, if it was the server that said no: 53100 is a full disk.
    pub sqlstate: Option<String>,
    /// The table that was being filled.
    pub table: String,
    /// Number of the stream.
    pub stream: usize,
    /// The message of the server or the operating system.
    pub message: String,
}

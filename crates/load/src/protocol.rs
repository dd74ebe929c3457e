//! How statements are sent.

use serde::Deserialize;

/// How statements are sent: pgbench's `--protocol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    /// Parameters written into the statement's text.
    Simple,
    /// Parsed again each time, parameters apart.
    Extended,
    /// Parsed once a connection.
    Prepared,
}

//! Failures of writing pages.

use std::io;
use std::path::Path;

use serde::Serialize;

/// The failure of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageFailure {
    /// `no_space` (the file system is full, or a quota is), `io`, or `unsupported` (not what can be written as pages).
    pub kind: &'static str,
    /// The table or partition that was being filled.
    pub table: String,
    /// The operation and the error of the operating system.
    pub message: String,
    /// The file.
    pub path: String,
}

/// The reason why a piece could not be written, without its table.
#[derive(Debug)]
pub(crate) enum PieceError {
    /// The system said no, while this was done.
    Io(&'static str, io::Error),
    /// The piece cannot be written as pages, or existing content cannot be replaced.
    Unsupported(String),
    /// Told to withdraw; not a failure of this thread.
    Withdrawn,
}

impl PieceError {
    /// The failure to report; none for a withdrawal.
    pub(crate) fn failure(self, table: &str, path: &Path) -> Option<PageFailure> {
        let (kind, message) = match self {
            Self::Withdrawn => return None,
            Self::Unsupported(message) => ("unsupported", message),
            Self::Io(what, error) => {
                let kind = match error.kind() {
                    io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "no_space",
                    _ => "io",
                };
                (kind, format!("cannot {what} {}: {error}", path.display()))
            }
        };
        Some(PageFailure {
            kind,
            table: table.to_owned(),
            message,
            path: path.display().to_string(),
        })
    }
}

//! Failures of writing pages.

use std::io;
use std::path::Path;

use serde::Serialize;
use thiserror::Error;

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

/// The reason why a field cannot be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum FieldError {
    #[error("the row ends before it, or continues behind it")]
    Shape,
    #[error("null in some rows and not in others")]
    Nulls,
    #[error(
        "a text of another size than the first row's {0} bytes; all rows have to be equally wide"
    )]
    Width(usize),
    #[error("does not fit in {0}")]
    Range(&'static str),
    #[error("not an integer")]
    Integer,
    #[error(
        "not a timestamp as the generators write it (2000-01-01 00:00:00, J2451545 00:00:00.000000)"
    )]
    Timestamp,
    #[error("not a decimal number of at most {0} decimal places")]
    Numeric(usize),
    #[error("a numeric, whose width differs from row to row")]
    Uneven,
    #[error("a character beyond ASCII, which is stored as the database's encoding has it")]
    Ascii,
    #[error("an escape that is not known: \\b \\f \\n \\r \\t \\v \\\\ and \\N are")]
    Escape,
}

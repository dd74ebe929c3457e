//! Errors of the probe.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

/// The reason why a case could not be measured.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The system said no.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// The operation that failed, as in "write to".
        doing: &'static str,
        /// The probe's file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The storage has not answered.
    #[error("{path} has not answered for {} s", timeout.as_secs())]
    Hangs {
        /// The probe's file.
        path: PathBuf,
        /// The timeout that expired.
        timeout: Duration,
    },
    /// The caller gave up.
    #[error("interrupted")]
    Interrupted,
    /// A case that makes no sense.
    #[error("{0}")]
    Case(String),
}

impl ProbeError {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }

    /// The place that it is about, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Io { path, .. } | Self::Hangs { path, .. } => Some(path),
            Self::Interrupted | Self::Case(_) => None,
        }
    }

    /// The error of the operating system, if there was one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Io { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

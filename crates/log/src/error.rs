//! Errors of reading logs.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The reason why a log could not be read.
#[derive(Debug, Error)]
pub enum LogError {
    /// The system said no, or a compressed file is damaged.
    #[error("cannot read {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system or of the decompression.
        source: io::Error,
    },
    /// The system said no while the replay file was written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The configuration or the log does not allow any statement to be read.
    #[error("{0}")]
    Unusable(String),
    /// The caller gave up.
    #[error("interrupted")]
    Interrupted,
}

impl LogError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn write(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Write { path, source }
    }

    /// The file that it is about, if it is about one.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Io { path, .. } | Self::Write { path, .. } => Some(path),
            Self::Unusable(_) | Self::Interrupted => None,
        }
    }

    /// The error of the operating system, if there was one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Io { source, .. } | Self::Write { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }
}

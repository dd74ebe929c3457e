//! The reasons why a network cannot be emulated.

use std::io;
use std::path::{Path, PathBuf};

use plinth_control::BindError;
use thiserror::Error;

use crate::model::SettingsError;

/// The reason why a network cannot be emulated or measured.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum NetworkError {
    #[error("link from {from} to {to}: {source}")]
    Settings {
        from: String,
        to: String,
        source: SettingsError,
    },
    #[error("no node {0:?}; there are {1}")]
    UnknownNode(String, String),
    #[error("a link from {0} to itself")]
    Loop(String),
    #[error("nodes: got {0}, from 2 to 64 are needed")]
    NodeCount(usize),
    #[error("two nodes {0:?}")]
    DuplicateNode(String),
    #[error("two nodes have the address {0}")]
    DuplicateAddress(std::net::Ipv4Addr),
    #[error("the name of the device {0:?} has more than 15 characters, or none")]
    DeviceName(String),
    #[error(transparent)]
    Control(#[from] BindError),
    #[error("cannot {doing} {path}: {source}")]
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("the delay line has ended: {0}")]
    Forward(String),
}

impl NetworkError {
    pub(crate) fn io(
        doing: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io {
            doing,
            path,
            source,
        }
    }

    /// The path that failed, if the error concerns one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Io { path, .. } => Some(path),
            Self::Control(error) => error.path(),
            _ => None,
        }
    }

    /// The error of the operating system, if there was one.
    #[must_use]
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Io { source, .. } => source.raw_os_error(),
            Self::Control(error) => error.errno(),
            _ => None,
        }
    }

    /// Whether another request of the caller could succeed.
    #[must_use]
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Control(error) => error.is_usage(),
            Self::Io { .. } | Self::Forward(_) => false,
            _ => true,
        }
    }
}

//! The reasons why an emulated disk cannot be served.

use std::io;
use std::path::{Path, PathBuf};

use plinth_control::BindError;
use thiserror::Error;

use crate::model::{FaultError, PhysicsError};

/// The reason why a disk cannot be served.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum DiskError {
    #[error("no profile {0:?}; there are {1}")]
    UnknownProfile(String, String),
    #[error(transparent)]
    Physics(#[from] PhysicsError),
    #[error(transparent)]
    Fault(#[from] FaultError),
    #[error("size: got {0} bytes, a positive multiple of 4096 is needed")]
    Size(u64),
    #[error("the backing file {path} has {found} bytes; {asked} were asked for")]
    BackingSize {
        path: PathBuf,
        found: u64,
        asked: u64,
    },
    #[error("the backing file {0} is served by another daemon")]
    BackingTaken(PathBuf),
    #[error("the backing file {0} is not a regular file")]
    BackingKind(PathBuf),
    #[error("cannot {doing} {path}: {source}")]
    Io {
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("the disk has {disk} bytes, and the recording in {folder} is of one of {recorded}")]
    RecordingSize {
        folder: PathBuf,
        recorded: u64,
        disk: u64,
    },
    #[error("{0} holds no recording of a disk")]
    NoRecording(PathBuf),
    #[error("the recording in {0} is of version {1}; this program reads version 1")]
    RecordingVersion(PathBuf, u32),
    #[error("the recording in {0} is damaged: {1}")]
    RecordingDamaged(PathBuf, String),
    #[error("the recording in {folder} has the points 0 to {points}; there is no point {point}")]
    NoPoint {
        folder: PathBuf,
        point: u64,
        points: usize,
    },
    #[error("the overlay {0} holds data already: an image begins with an empty one")]
    OverlayUsed(PathBuf),
    #[error("the disk is being recorded already, in {0}")]
    RecordedAlready(PathBuf),
    #[error("the disk is not being recorded")]
    NotRecorded,
    #[error("the power is off")]
    NoPower,
    #[error("{0} is on the disk itself: a recording needs another place")]
    RecordingOnDisk(PathBuf),
    #[error(transparent)]
    Control(#[from] BindError),
    #[error("{0}")]
    Serve(io::Error),
}

impl DiskError {
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
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::BackingSize { path, .. }
            | Self::BackingTaken(path)
            | Self::BackingKind(path)
            | Self::Io { path, .. }
            | Self::NoRecording(path)
            | Self::RecordingVersion(path, _)
            | Self::RecordingDamaged(path, _)
            | Self::OverlayUsed(path)
            | Self::RecordedAlready(path)
            | Self::RecordingOnDisk(path) => Some(path),
            Self::Control(error) => error.path(),
            _ => None,
        }
    }

    /// The error of the operating system, if there was one.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Io { source, .. } | Self::Serve(source) => source.raw_os_error(),
            Self::Control(error) => error.errno(),
            _ => None,
        }
    }

    /// Whether the one who asked can avoid it by asking for something else.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Control(error) => error.is_usage(),
            error => matches!(
                error,
                Self::UnknownProfile(..)
                    | Self::Physics(_)
                    | Self::Fault(_)
                    | Self::Size(_)
                    | Self::RecordingSize { .. }
                    | Self::NoPoint { .. }
            ),
        }
    }
}

//! Errors of a bulk load.

use std::io;

use plinth_connect::ConnectError;
use plinth_thread::lifecycle::LifecycleError;
use thiserror::Error;

/// The reason why a load was not started, or has no result.
#[derive(Debug, Error)]
pub enum RunError {
    /// A stream could not connect.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// A call at the wrong time.
    #[error("{0}")]
    State(&'static str),
    /// A defect of the loader.
    #[error("the bulk loader broke: {0}")]
    Broken(String),
}

impl From<LifecycleError> for RunError {
    fn from(error: LifecycleError) -> Self {
        match error {
            LifecycleError::State(message) => Self::State(message),
            LifecycleError::Spawn(error) => Self::Thread(error),
            LifecycleError::Broken(message) => Self::Broken(message),
        }
    }
}

//! Errors in the configuration of a load or a bulk load.

use thiserror::Error;

/// A configuration that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{key}: {message}")]
pub struct ConfigError {
    /// The key that is wrong.
    pub key: &'static str,
    /// The value found and the allowed values.
    pub message: String,
}

impl ConfigError {
    /// An error about `key`; `message` says what was found and what is allowed.
    pub fn new(key: &'static str, message: impl Into<String>) -> Self {
        Self {
            key,
            message: message.into(),
        }
    }
}

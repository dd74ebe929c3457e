//! Configurations in, results out.

use pyo3::PyResult;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::errors::{ConfigError, EngineError};

pub(crate) fn from_json<T: DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| ConfigError::new_err(error.to_string()))
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| EngineError::new_err(error.to_string()))
}

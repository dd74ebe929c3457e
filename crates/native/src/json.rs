//! Configurations in, results out.

use pyo3::PyResult;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::errors::{ConfigError, EngineError};
use crate::text::Text;

pub(crate) fn from_json<T: DeserializeOwned>(json: &str) -> PyResult<T> {
    let mut reader = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let key = error.path().to_string();
        let message = error.into_inner().to_string();
        // Who called has never seen the line.
        let message = message.split(" at line ").next().unwrap_or_default();
        ConfigError::new_err(Text(format!("{key}: {message}")))
    })
}

pub(crate) fn to_json<T: Serialize>(value: &T) -> PyResult<String> {
    serde_json::to_string(value).map_err(|error| EngineError::new_err(error.to_string()))
}

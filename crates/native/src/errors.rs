//! Rust's errors as Python's exceptions, with their parts as attributes.

use std::path::Path;

use plinth_disk::DiskError as EmulatedDiskError;
use plinth_load::{PrepareError, RunError, ScriptError as LoadScriptError};
use plinth_log::LogError as ServerLogError;
use plinth_network::NetworkError as EmulatedNetworkError;
use plinth_probe::ProbeError as FsyncError;
use plinth_script::ParseError;
use pyo3::prelude::*;
use pyo3::{create_exception, exceptions::PyException};

use crate::text::Text;

create_exception!(
    plinth._native,
    EngineError,
    PyException,
    "An error of the engine."
);
create_exception!(
    plinth._native,
    ConfigError,
    EngineError,
    "A configuration that is wrong."
);
create_exception!(
    plinth._native,
    ConnectError,
    EngineError,
    "No client could connect, or not all who had to: sqlstate (if the server said no), message; client, of a load."
);
create_exception!(
    plinth._native,
    ScriptError,
    EngineError,
    "A script that cannot be run: file, line, column, message, hint, condition."
);

create_exception!(
    plinth._native,
    DiskError,
    EngineError,
    "A disk that cannot be served: usage, path, errno, message."
);

create_exception!(
    plinth._native,
    NetworkError,
    EngineError,
    "A network that cannot be emulated: usage, path, errno, message."
);

create_exception!(
    plinth._native,
    ProbeError,
    EngineError,
    "A probe that failed: path, errno, message."
);

create_exception!(
    plinth._native,
    LogError,
    EngineError,
    "A server's log that could not be read: path, errno, message."
);

/// A script that cannot be parsed.
pub(crate) fn parse_error(py: Python<'_>, error: &ParseError) -> PyErr {
    let exception = ScriptError::new_err(Text(error.to_string()));
    let value = exception.value(py);
    let attributes = value
        .setattr("file", Text(error.file.clone()))
        .and_then(|()| value.setattr("line", error.line))
        .and_then(|()| value.setattr("column", error.column))
        .and_then(|()| value.setattr("message", Text(error.message.clone())))
        .and_then(|()| value.setattr("hint", error.hint.clone().map(Text)))
        .and_then(|()| value.setattr("condition", error.condition));
    attributes.err().unwrap_or(exception)
}

/// A load that cannot be prepared.
pub(crate) fn prepare_error(py: Python<'_>, error: &PrepareError) -> PyErr {
    match error {
        PrepareError::Config(error) => ConfigError::new_err(Text(error.to_string())),
        PrepareError::Script(LoadScriptError::Parse(error)) => parse_error(py, error),
        PrepareError::Script(LoadScriptError::Statement { file, line, source }) => {
            let error = ParseError {
                file: file.clone(),
                line: *line,
                column: 1,
                message: source.to_string(),
                hint: None,
                condition: None,
            };
            parse_error(py, &error)
        }
    }
}

/// A connection that could not be opened.
pub(crate) fn connect_error(py: Python<'_>, sqlstate: Option<&str>, message: &str) -> PyErr {
    let exception = ConnectError::new_err(message.to_owned());
    let value = exception.value(py);
    let attributes = value
        .setattr("sqlstate", sqlstate)
        .and_then(|()| value.setattr("message", message));
    attributes.err().unwrap_or(exception)
}

/// A load that was not started, or has no result.
pub(crate) fn run_error(py: Python<'_>, error: &RunError) -> PyErr {
    match error {
        RunError::Connect { client, error } => {
            let exception = connect_error(py, error.sqlstate(), &error.to_string());
            let numbered = exception.value(py).setattr("client", client);
            numbered.err().unwrap_or(exception)
        }
        error => EngineError::new_err(Text(error.to_string())),
    }
}

/// A disk that cannot be served.
pub(crate) fn disk_error(py: Python<'_>, error: &EmulatedDiskError) -> PyErr {
    let exception = DiskError::new_err(error.to_string());
    daemon_error(py, exception, error.is_usage(), error.path(), error.errno())
}

/// A network that cannot be emulated.
pub(crate) fn network_error(py: Python<'_>, error: &EmulatedNetworkError) -> PyErr {
    let exception = NetworkError::new_err(error.to_string());
    daemon_error(py, exception, error.is_usage(), error.path(), error.errno())
}

fn daemon_error(
    py: Python<'_>,
    exception: PyErr,
    usage: bool,
    path: Option<&Path>,
    errno: Option<i32>,
) -> PyErr {
    let message = exception.value(py).to_string();
    let value = exception.value(py);
    let attributes = value
        .setattr("usage", usage)
        .and_then(|()| value.setattr("path", path))
        .and_then(|()| value.setattr("errno", errno))
        .and_then(|()| value.setattr("message", message));
    attributes.err().unwrap_or(exception)
}

/// A probe that failed.
pub(crate) fn probe_error(py: Python<'_>, error: &FsyncError) -> PyErr {
    let exception = ProbeError::new_err(error.to_string());
    let value = exception.value(py);
    let attributes = value
        .setattr("path", error.path())
        .and_then(|()| value.setattr("errno", error.errno()))
        .and_then(|()| value.setattr("message", error.to_string()));
    attributes.err().unwrap_or(exception)
}

/// A log that could not be read.
pub(crate) fn log_error(py: Python<'_>, error: &ServerLogError) -> PyErr {
    let exception = LogError::new_err(Text(error.to_string()));
    let value = exception.value(py);
    let attributes = value
        .setattr("path", error.path())
        .and_then(|()| value.setattr("errno", error.errno()))
        .and_then(|()| value.setattr("message", Text(error.to_string())));
    attributes.err().unwrap_or(exception)
}

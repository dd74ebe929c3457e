//! `check_log`: what a server's log holds, and what of it can be replayed.

use plinth_replay::{LogError, check};
use pyo3::prelude::*;

use crate::errors::log_error;
use crate::json::{from_json, to_json};

#[pyfunction]
#[pyo3(signature = (config_json, progress=None))]
pub(crate) fn check_log(
    py: Python<'_>,
    config_json: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let config = from_json(config_json)?;
    let mut raised = None;
    let found = py.detach(|| {
        check(&config, &mut |so_far| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                if let Some(progress) = &progress {
                    progress.call1(py, (so_far.content_bytes, so_far.file, so_far.files))?;
                }
                Ok(())
            });
            told.map_err(|exception| raised = Some(exception)).is_ok()
        })
    });
    match (raised, found) {
        (Some(exception), Err(LogError::Interrupted)) => Err(exception),
        (_, Err(error)) => Err(log_error(py, &error)),
        (_, Ok(found)) => to_json(&found),
    }
}

//! Waiting outside Python's lock, yet ended by a signal's handler or when the work is cancelled.

use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Runs `wait` without Python's lock. `wait` polls whether to continue; it has to end when a
/// signal's handler, or the Python callable `check`, has raised an exception, which is then raised here.
pub(crate) fn wait_interruptibly<T: Send>(
    py: Python<'_>,
    check: Option<Py<PyAny>>,
    wait: impl FnOnce(&mut dyn FnMut() -> bool) -> T + Send,
) -> PyResult<T> {
    let mut raised = None;
    let result = py.detach(|| {
        wait(&mut || match Python::attach(|py| ask(py, check.as_ref())) {
            Ok(()) => true,
            Err(exception) => {
                raised = Some(exception);
                false
            }
        })
    });
    match raised {
        Some(exception) => Err(exception),
        None => Ok(result),
    }
}

fn ask(py: Python<'_>, check: Option<&Py<PyAny>>) -> PyResult<()> {
    py.check_signals()?;
    if let Some(check) = check {
        check.call0(py)?;
    }
    Ok(())
}

/// A timeout as Python gives it.
pub(crate) fn timeout(seconds: f64) -> PyResult<Duration> {
    if seconds == f64::INFINITY {
        return Ok(Duration::MAX);
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| {
        PyValueError::new_err(format!(
            "timeout_s: got {seconds}, a time from 0 up is needed"
        ))
    })
}

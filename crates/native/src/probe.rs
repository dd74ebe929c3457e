//! `FsyncProbe`: how long a storage takes to make a write durable.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::errors::probe_error;
use crate::interruptible::{timeout, wait_interruptibly};
use crate::json::{from_json, to_json};

/// A probe of one directory, with its file.
#[pyclass(frozen, module = "plinth._native")]
pub(crate) struct FsyncProbe {
    probe: plinth_probe::Probe,
}

#[pymethods]
impl FsyncProbe {
    #[new]
    fn new(py: Python<'_>, directory: PathBuf) -> PyResult<Self> {
        let probe = py
            .detach(|| plinth_probe::Probe::create(&directory))
            .map_err(|error| probe_error(py, &error))?;
        Ok(Self { probe })
    }

    #[pyo3(signature = (case_json, duration_s, check=None))]
    fn measure(
        &self,
        py: Python<'_>,
        case_json: &str,
        duration_s: f64,
        check: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let case = from_json(case_json)?;
        let duration = timeout(duration_s)?;
        let outcome = wait_interruptibly(py, check, |keep_waiting| {
            self.probe.measure(&case, duration, keep_waiting)
        })?
        .map_err(|error| probe_error(py, &error))?;
        to_json(&outcome)
    }

    fn remove(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.probe.remove())
            .map_err(|error| probe_error(py, &error))
    }
}

#[pyfunction]
pub(crate) fn fsync_plan(options_json: &str) -> PyResult<String> {
    to_json(&plinth_probe::plan(&from_json(options_json)?))
}

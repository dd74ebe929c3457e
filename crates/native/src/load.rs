//! `LoadRun`: the load engine.

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{prepare_error, run_error};
use crate::interruptible::{timeout, wait_interruptibly};
use crate::json::{from_json, to_json};
use crate::text::Text;

/// A load: many connections that run scripts.
#[pyclass(frozen, module = "plinth._native")]
pub(crate) struct LoadRun {
    run: plinth_load::LoadRun,
}

#[pymethods]
impl LoadRun {
    #[new]
    fn new(py: Python<'_>, config_json: Text) -> PyResult<Self> {
        let config = from_json(&config_json.0)?;
        let run = plinth_load::LoadRun::new(config).map_err(|error| prepare_error(py, &error))?;
        Ok(Self { run })
    }

    #[pyo3(signature = (check=None))]
    fn start(&self, py: Python<'_>, check: Option<Py<PyAny>>) -> PyResult<()> {
        wait_interruptibly(py, check, |keep_waiting| self.run.start(keep_waiting))?
            .map_err(|error| run_error(py, &error))
    }

    fn progress(&self) -> PyResult<Text> {
        to_json(&self.run.progress()).map(Text)
    }

    fn go(&self, py: Python<'_>, at_monotonic_ns: u64) -> PyResult<()> {
        self.run
            .go(at_monotonic_ns)
            .map_err(|error| run_error(py, &error))
    }

    fn take_histograms<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.run.take_histograms())
    }

    #[pyo3(signature = (not_before_ns=0))]
    fn begin_measuring(&self, py: Python<'_>, not_before_ns: u64) -> PyResult<u64> {
        self.run
            .begin_measuring(not_before_ns)
            .map_err(|error| run_error(py, &error))
    }

    fn stop(&self) {
        self.run.stop();
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = timeout(timeout_s)?;
        wait_interruptibly(py, None, |keep_waiting| {
            self.run.wait(timeout, keep_waiting)
        })
    }

    fn result(&self, py: Python<'_>) -> PyResult<Text> {
        let result = py
            .detach(|| self.run.result())
            .map_err(|error| run_error(py, &error))?;
        to_json(&*result).map(Text)
    }
}

/// The statements that make the procedures of the TPC-C-derived workload.
#[pyfunction]
pub(crate) fn tpcc_procedures() -> Vec<&'static str> {
    plinth_load::TPCC_PROCEDURES.to_vec()
}

//! `PageLoad`: the page writer.

use plinth_bulk::PageRun;
use pyo3::prelude::*;

use crate::bulk::bulk_error;
use crate::errors::ConfigError;
use crate::interruptible::{timeout, wait_interruptibly};
use crate::json::{from_json, to_json};

/// Generated rows, written into the files of a server that does not run.
#[pyclass(frozen, module = "plinth._native")]
pub(crate) struct PageLoad {
    run: PageRun,
}

#[pymethods]
impl PageLoad {
    #[new]
    fn new(config_json: &str) -> PyResult<Self> {
        let config = from_json(config_json)?;
        let run = PageRun::new(config).map_err(|error| ConfigError::new_err(error.to_string()))?;
        Ok(Self { run })
    }

    #[pyo3(signature = (check=None))]
    fn start(&self, py: Python<'_>, check: Option<Py<PyAny>>) -> PyResult<()> {
        wait_interruptibly(py, check, |keep_waiting| self.run.start(keep_waiting))?
            .map_err(|error| bulk_error(py, &error))
    }

    fn progress(&self) -> PyResult<String> {
        to_json(&self.run.progress())
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

    fn result(&self, py: Python<'_>) -> PyResult<String> {
        to_json(&self.run.result().map_err(|error| bulk_error(py, &error))?)
    }
}

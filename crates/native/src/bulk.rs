//! `BulkLoad` and `PageLoad`: the loaders of generated rows.

use plinth_bulk::{BulkRun, PageRun, RunError, TpccGenerator};
use pyo3::prelude::*;

use crate::errors::{ConfigError, EngineError, connect_error};
use crate::interruptible::{timeout, wait_interruptibly};
use crate::json::{from_json, to_json};

/// The class of a loader. Both have the same lifecycle, and a Python class cannot be generic.
macro_rules! loader_class {
    ($(#[$documentation:meta])* $class:ident, $run:ident) => {
        $(#[$documentation])*
        #[pyclass(frozen, module = "plinth._native")]
        pub(crate) struct $class {
            run: $run,
        }

        #[pymethods]
        impl $class {
            #[new]
            fn new(config_json: &str) -> PyResult<Self> {
                let config = from_json(config_json)?;
                let run =
                    $run::new(config).map_err(|error| ConfigError::new_err(error.to_string()))?;
                Ok(Self { run })
            }

            #[pyo3(signature = (check=None))]
            fn start(&self, py: Python<'_>, check: Option<Py<PyAny>>) -> PyResult<()> {
                wait_interruptibly(py, check, |keep_waiting| self.run.start(keep_waiting))?
                    .map_err(|error| loader_error(py, &error))
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
                to_json(&self.run.result().map_err(|error| loader_error(py, &error))?)
            }
        }
    };
}

loader_class!(
    /// Generated rows, sent by several COPY streams at once.
    BulkLoad,
    BulkRun
);
loader_class!(
    /// Generated rows, written into the files of a server that does not run.
    PageLoad,
    PageRun
);

/// The rows of order_line of each of these numbers of warehouses, which ascend.
#[pyfunction]
pub(crate) fn tpcc_order_lines(py: Python<'_>, warehouses: Vec<u64>, seed: u64) -> Vec<u64> {
    py.detach(|| TpccGenerator::order_lines(&warehouses, seed))
}

/// A load that was not started, or has no result.
fn loader_error(py: Python<'_>, error: &RunError) -> PyErr {
    match error {
        RunError::Connect(error) => connect_error(py, error.sqlstate(), &error.to_string()),
        error => EngineError::new_err(error.to_string()),
    }
}

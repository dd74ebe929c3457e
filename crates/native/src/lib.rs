//! The leaf that Python imports as `plinth._native`: conversion and exceptions, nothing else.

use pyo3::prelude::*;

/// The native module behind `plinth.load` and `plinth.workload`.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))
}

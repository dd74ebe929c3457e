//! `LoadRun`: the load engine.

use pyo3::prelude::*;

use crate::arrays::{self, Buckets, Series};
use crate::errors::{prepare_error, run_error};
use crate::json::{from_json, to_json};
use crate::patience::{patiently, timeout};

/// A load: many connections that run scripts.
#[pyclass(frozen, module = "plinth._native")]
pub(crate) struct LoadRun {
    run: plinth_load::LoadRun,
}

#[pymethods]
impl LoadRun {
    #[new]
    fn new(py: Python<'_>, config_json: &str) -> PyResult<Self> {
        let config = from_json(config_json)?;
        let run = plinth_load::LoadRun::new(config).map_err(|error| prepare_error(py, &error))?;
        Ok(Self { run })
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        patiently(py, |keep_waiting| self.run.start(keep_waiting))?
            .map_err(|error| run_error(py, &error))
    }

    fn progress(&self) -> PyResult<String> {
        to_json(&self.run.progress())
    }

    fn stop(&self) {
        self.run.stop();
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = timeout(timeout_s)?;
        patiently(py, |keep_waiting| self.run.wait(timeout, keep_waiting))
    }

    fn result(&self, py: Python<'_>) -> PyResult<String> {
        let result = py
            .detach(|| self.run.result())
            .map_err(|error| run_error(py, &error))?;
        to_json(&*result)
    }

    fn arrays<'py>(&self, py: Python<'py>) -> PyResult<(Series<'py>, Vec<Buckets<'py>>)> {
        let result = self.run.result().map_err(|error| run_error(py, &error))?;
        let histograms = result.histograms.iter();
        let buckets = histograms.map(|histogram| arrays::buckets(py, histogram));
        Ok((
            arrays::series(py, &result.series)?,
            buckets.collect::<PyResult<_>>()?,
        ))
    }
}

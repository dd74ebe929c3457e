//! `DiskServer`: the emulated disk.

use plinth_disk::model::{DepthOne, PROFILES, Profile};
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors::disk_error;
use crate::interruptible::{timeout, wait_interruptibly};
use crate::json::{from_json, to_json};

/// A disk with physics and faults of one's own choosing, served over FUSE.
#[pyclass(frozen, module = "plinth._native")]
pub(crate) struct DiskServer {
    server: plinth_disk::DiskServer,
}

#[pymethods]
impl DiskServer {
    #[new]
    fn new(py: Python<'_>, config_json: &str) -> PyResult<Self> {
        let config = from_json(config_json)?;
        let server =
            plinth_disk::DiskServer::new(config).map_err(|error| disk_error(py, &error))?;
        Ok(Self { server })
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.server.start())
            .map_err(|error| disk_error(py, &error))
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = timeout(timeout_s)?;
        wait_interruptibly(py, None, |keep_waiting| {
            self.server.wait(timeout, keep_waiting)
        })?
        .map_err(|error| disk_error(py, &error))
    }

    fn stop(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| self.server.stop())
            .map_err(|error| disk_error(py, &error))
    }
}

#[pyfunction]
pub(crate) fn disk_profiles() -> PyResult<String> {
    let predicted = |profile: &'static Profile| Predicted {
        profile,
        depth_one: DepthOne::of(&profile.physics),
    };
    to_json(&PROFILES.iter().map(predicted).collect::<Vec<_>>())
}

#[derive(Serialize)]
struct Predicted {
    #[serde(flatten)]
    profile: &'static Profile,
    depth_one: DepthOne,
}

//! `DiskServer`: the emulated disk; and recordings of one.

use std::path::PathBuf;

use plinth_disk::Recording;
use plinth_disk::model::{DepthOne, PROFILES, Profile};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde::Serialize;

use crate::errors::disk_error;
use crate::interruptible::{timeout, wait_interruptibly};
use crate::json::{from_json, to_json};

/// A disk with custom physics and faults, served over FUSE.
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

/// The properties of a recording as JSON, and the times and kinds of its records as arrays of i8 and u1.
type Recorded<'py> = (String, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pyfunction]
pub(crate) fn read_disk_recording<'py>(
    py: Python<'py>,
    folder: PathBuf,
    verify: bool,
) -> PyResult<Recorded<'py>> {
    let recording = py
        .detach(|| {
            let recording = Recording::open(&folder)?;
            if verify {
                recording.verify()?;
            }
            Ok(recording)
        })
        .map_err(|error| disk_error(py, &error))?;
    let properties = Properties {
        size_bytes: recording.size_bytes(),
        began_ns: recording.began_ns(),
        is_complete: recording.is_complete(),
    };
    let (mut times, mut kinds) = (Vec::new(), Vec::new());
    for (time_ns, kind) in recording.times_and_kinds() {
        times.extend_from_slice(&time_ns.to_ne_bytes());
        kinds.push(kind);
    }
    Ok((
        to_json(&properties)?,
        PyBytes::new(py, &times),
        PyBytes::new(py, &kinds),
    ))
}

#[derive(Serialize)]
struct Properties {
    size_bytes: u64,
    began_ns: u64,
    is_complete: bool,
}

#[derive(Serialize)]
struct Predicted {
    #[serde(flatten)]
    profile: &'static Profile,
    depth_one: DepthOne,
}

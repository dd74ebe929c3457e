//! `NetworkServer`: the emulated network; and round trips through one.

use std::net::Ipv4Addr;
use std::path::PathBuf;

use plinth_network::Pings;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors::network_error;
use crate::interruptible::{timeout, wait_interruptibly};
use crate::json::from_json;

/// Nodes in network namespaces, joined by links with delay, jitter, loss, rate and partitions.
#[pyclass(frozen, module = "plinth._native")]
pub(crate) struct NetworkServer {
    server: plinth_network::NetworkServer,
}

#[pymethods]
impl NetworkServer {
    #[new]
    fn new(py: Python<'_>, config_json: &str) -> PyResult<Self> {
        let config = from_json(config_json)?;
        let server = plinth_network::NetworkServer::new(config)
            .map_err(|error| network_error(py, &error))?;
        Ok(Self { server })
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.server.start())
            .map_err(|error| network_error(py, &error))
    }

    fn wait(&self, py: Python<'_>, timeout_s: f64) -> PyResult<bool> {
        let timeout = timeout(timeout_s)?;
        wait_interruptibly(py, None, |keep_waiting| {
            self.server.wait(timeout, keep_waiting)
        })?
        .map_err(|error| network_error(py, &error))
    }

    fn stop(&self, py: Python<'_>) {
        py.detach(|| self.server.stop());
    }
}

#[pyfunction]
pub(crate) fn network_round_trips(
    py: Python<'_>,
    namespace: PathBuf,
    address: &str,
    count: u16,
    pause_s: f64,
    timeout_s: f64,
) -> PyResult<Vec<Option<u64>>> {
    let address: Ipv4Addr = address
        .parse()
        .map_err(|_| PyValueError::new_err(format!("{address:?} is no address of IPv4")))?;
    let pings = Pings {
        count,
        pause: timeout(pause_s)?,
        timeout: timeout(timeout_s)?,
    };
    py.detach(|| plinth_network::round_trips(&namespace, address, pings))
        .map_err(|error| network_error(py, &error))
}

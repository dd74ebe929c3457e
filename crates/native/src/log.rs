//! `check_log` and `prepare_replay`: what a server's log holds, what of it can be replayed, and the file that is replayed.

use plinth_log::{LogError, Progress, RecordedSession, ReplayFile, check, most_at_once, prepare};
use pyo3::prelude::*;
use serde_json::json;

use crate::errors::log_error;
use crate::json::{from_json, to_json};

#[pyfunction]
#[pyo3(signature = (config_json, progress=None))]
pub(crate) fn check_log(
    py: Python<'_>,
    config_json: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let config = from_json(config_json)?;
    let found = reading(py, progress, |keep_going| check(&config, keep_going))?;
    to_json(&found)
}

#[pyfunction]
#[pyo3(signature = (config_json, progress=None))]
pub(crate) fn prepare_replay(
    py: Python<'_>,
    config_json: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let config = from_json(config_json)?;
    let prepared = reading(py, progress, |keep_going| prepare(&config, keep_going))?;
    to_json(&prepared)
}

/// Reads a log, while `progress` is told how far that is, and may end it with an exception.
fn reading<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    read: impl Send + FnOnce(&mut dyn FnMut(Progress) -> bool) -> Result<T, LogError>,
) -> PyResult<T> {
    let mut raised = None;
    let found = py.detach(|| {
        read(&mut |so_far| {
            let told = Python::attach(|py| {
                py.check_signals()?;
                if let Some(progress) = &progress {
                    progress.call1(py, (so_far.content_bytes, so_far.file, so_far.files))?;
                }
                Ok(())
            });
            told.map_err(|exception| raised = Some(exception)).is_ok()
        })
    });
    match (raised, found) {
        (Some(exception), Err(LogError::Interrupted)) => Err(exception),
        (_, Err(error)) => Err(log_error(py, &error)),
        (_, Ok(found)) => Ok(found),
    }
}

#[pyfunction]
pub(crate) fn replay_facts(
    py: Python<'_>,
    path: std::path::PathBuf,
    classes: usize,
) -> PyResult<String> {
    let opened = py.detach(|| ReplayFile::open(&path));
    let file = opened.map_err(|error| {
        let message = format!("{}: {error}", path.display());
        log_error(py, &LogError::Unusable(message))
    })?;
    let spans = file.sessions.iter().map(|one| (one.first_us, one.last_us));
    let classes: Vec<_> = plinth_load::classes_of(&file, classes)
        .labels
        .into_iter()
        .map(|(name, weight)| json!({"name": name, "weight": weight}))
        .collect();
    to_json(&json!({
        "first_us": file.first_us,
        "span_us": file.span_us,
        "statements": file.statements,
        "sessions": file.sessions.len(),
        "sessions_at_once": most_at_once(spans),
        "classes": classes,
        "databases": names(&file, |one| &one.database),
        "users": names(&file, |one| &one.user),
        "duration_us": file.classes.iter().map(|one| one.duration_us).fold(0, u64::saturating_add),
        "with_duration": file.classes.iter().map(|one| one.with_duration).fold(0, u64::saturating_add),
    }))
}

/// Returns the different names that sessions have, without the empty one.
fn names(file: &ReplayFile, name: impl Fn(&RecordedSession) -> &[u8]) -> Vec<String> {
    let mut names: Vec<&[u8]> = file.sessions.iter().map(name).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !name.is_empty());
    names
        .iter()
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

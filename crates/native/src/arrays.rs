//! Figures as bytes that numpy takes for arrays as they are: numbers of 8 bytes in the machine's own order.

use std::collections::BTreeMap;

use plinth_load::{HistogramResult, SeriesRow};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// A name with numpy's type, and what of a row goes under it.
type Column<T> = (&'static str, fn(&SeriesRow) -> T);

/// The columns of a series.
pub(crate) type Series<'py> = BTreeMap<&'static str, Bound<'py, PyBytes>>;

/// The highest latency of each bucket of a histogram, and its count.
pub(crate) type Buckets<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// By name and numpy's type, `"done:i8"`: the columns of a series. What is not there is NaN.
pub(crate) fn series<'py>(py: Python<'py>, rows: &[SeriesRow]) -> PyResult<Series<'py>> {
    let mut columns = BTreeMap::new();
    let counts: [Column<u64>; 9] = [
        ("second:i8", |row| row.second as u64),
        ("t_ns:i8", |row| row.t_ns),
        ("length_ns:i8", |row| row.length_ns),
        ("done:i8", |row| row.done),
        ("failed:i8", |row| row.failed),
        ("retried:i8", |row| row.retried),
        ("retries:i8", |row| row.retries),
        ("skipped:i8", |row| row.skipped),
        ("late:i8", |row| row.late),
    ];
    for (name, count) in counts {
        let column = bytes(py, rows.len(), |i| count(&rows[i]).to_ne_bytes())?;
        columns.insert(name, column);
    }
    let times: [Column<Option<f64>>; 9] = [
        ("latency_mean_ns:f8", |row| row.latency_mean_ns),
        ("latency_stddev_ns:f8", |row| row.latency_stddev_ns),
        ("latency_p50_ns:f8", |row| float(row.latency_p50_ns)),
        ("latency_p95_ns:f8", |row| float(row.latency_p95_ns)),
        ("latency_p99_ns:f8", |row| float(row.latency_p99_ns)),
        ("latency_max_ns:f8", |row| float(row.latency_max_ns)),
        ("schedule_lag_mean_ns:f8", |row| row.schedule_lag_mean_ns),
        ("schedule_lag_p99_ns:f8", |row| {
            float(row.schedule_lag_p99_ns)
        }),
        ("schedule_lag_max_ns:f8", |row| {
            float(row.schedule_lag_max_ns)
        }),
    ];
    for (name, time) in times {
        let column = bytes(py, rows.len(), |i| {
            time(&rows[i]).unwrap_or(f64::NAN).to_ne_bytes()
        })?;
        columns.insert(name, column);
    }
    Ok(columns)
}

pub(crate) fn buckets<'py>(py: Python<'py>, histogram: &HistogramResult) -> PyResult<Buckets<'py>> {
    let buckets = &histogram.buckets;
    Ok((
        bytes(py, buckets.len(), |i| buckets[i].0.to_ne_bytes())?,
        bytes(py, buckets.len(), |i| buckets[i].1.to_ne_bytes())?,
    ))
}

fn float(value: Option<u64>) -> Option<f64> {
    value.map(|value| value as f64)
}

/// `count` numbers, written where Python keeps them.
fn bytes(
    py: Python<'_>,
    count: usize,
    number: impl Fn(usize) -> [u8; 8],
) -> PyResult<Bound<'_, PyBytes>> {
    PyBytes::new_with(py, count * 8, |buffer| {
        for (i, place) in buffer.chunks_exact_mut(8).enumerate() {
            place.copy_from_slice(&number(i));
        }
        Ok(())
    })
}

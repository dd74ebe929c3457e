//! Times of a configuration, which are in seconds.

/// Seconds as nanoseconds; for times that [`crate::Config::validate`] has seen.
pub(crate) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

//! Times of a configuration, which are in seconds.

/// Longest time that a key takes; keeps every sum of times in nanoseconds far inside 64 bits.
pub(crate) const LONGEST_S: f64 = 366.0 * 86_400.0;

/// Seconds as nanoseconds; for times that [`crate::Config::validate`] has seen.
pub(crate) fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

//! A part of a load that several processes run together, each some of its threads.
//!
//! Threads are dealt in turn: of `of` parts, part `number` has every thread whose number leaves that remainder. Clients, and
//! all seeds, are those that one process with all threads would have, so that they are disjoint. A part connects its clients
//! and waits for [`crate::LoadRun::go`]; it keeps the histograms of each second, since percentiles over all parts can only be
//! taken from merged histograms.

use plinth_config::ConfigError;
use serde::Deserialize;

use crate::latencies::Latencies;

/// Which part this process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// Its number, from 0.
    pub number: usize,
    /// How many parts there are.
    pub of: usize,
}

impl Default for Part {
    /// The whole load.
    fn default() -> Self {
        Self { number: 0, of: 1 }
    }
}

impl Part {
    pub(crate) fn validate(self, threads: usize) -> Result<(), ConfigError> {
        let Self { number, of } = self;
        if number >= of {
            let message = format!("got number {number} of {of}; parts count from 0");
            return Err(ConfigError::new("part", message));
        }
        if of > threads {
            let message = format!(
                "got {of} parts of a load with {threads} threads; every part needs a thread with a client"
            );
            return Err(ConfigError::new("part", message));
        }
        Ok(())
    }
}

/// Appends the histograms of one second, as unsigned little-endian numbers of 8 bytes: the number of its row, then of the
/// latencies and of the schedule lags each: count, sum, shortest and longest, the number of buckets that are not
/// empty, and of each of these its highest latency and its count. The lags of a closed loop are an empty histogram.
pub(crate) fn append_second(
    bytes: &mut Vec<u8>,
    row: usize,
    latencies: &Latencies,
    lags: Option<&Latencies>,
) {
    let mut put = |number: u64| bytes.extend_from_slice(&number.to_le_bytes());
    put(row as u64);
    for histogram in [Some(latencies), lags] {
        let Some((histogram, (min_ns, max_ns))) =
            histogram.and_then(|one| Some((one, one.range_ns()?)))
        else {
            (0..5).for_each(|_| put(0));
            continue;
        };
        let buckets = histogram.buckets();
        let exact = [histogram.count(), histogram.sum_ns(), min_ns, max_ns];
        exact.into_iter().for_each(&mut put);
        put(buckets.len() as u64);
        for (highest_ns, count) in buckets {
            put(highest_ns);
            put(count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_needs_a_thread() {
        assert!(Part { number: 2, of: 3 }.validate(3).is_ok());
        assert!(Part { number: 3, of: 3 }.validate(3).is_err());
        assert!(Part { number: 0, of: 4 }.validate(3).is_err());
        assert!(Part { number: 0, of: 0 }.validate(3).is_err());
    }

    #[test]
    fn a_second_is_written_as_numbers() {
        let mut latencies = Latencies::new();
        for ns in [700, 700, 3_000] {
            latencies.record(ns);
        }
        let mut bytes = Vec::new();
        append_second(&mut bytes, 4, &latencies, None);
        let numbers: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|number| u64::from_le_bytes(number.try_into().unwrap()))
            .collect();
        assert_eq!(
            numbers,
            [
                4, 3, 4_400, 700, 3_000, 2, 1_023, 2, 3_071, 1, 0, 0, 0, 0, 0
            ]
        );
    }
}

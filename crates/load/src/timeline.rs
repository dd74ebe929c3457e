//! Run time cut into the rows of the series: seconds of warm-up, then seconds of measuring, which begin again
//! where the warm-up ends.

use serde::Serialize;

const SECOND_NS: u64 = 1_000_000_000;

/// Part of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// The load runs, and is not measured.
    Warmup,
    /// What counts.
    Measure,
}

/// The rows of a run with a given warm-up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeline {
    /// How long it lasts; at the longest, as long as its end can still be brought forward.
    pub(crate) warmup_ns: u64,
}

impl Timeline {
    /// Rows of the warm-up; the last may be shorter than a second.
    fn warmup_rows(self) -> usize {
        self.warmup_ns.div_ceil(SECOND_NS) as usize
    }

    /// The same rows up to `row`, with which the warm-up ends, though not before `least_ns`. An end that is earlier stays.
    pub(crate) fn ending_with(self, row: usize, least_ns: u64) -> Self {
        let end_ns = (row as u64 + 1) * SECOND_NS;
        Self {
            warmup_ns: end_ns.max(least_ns).min(self.warmup_ns),
        }
    }

    /// The row that holds the time `t_ns` since the start of the run.
    pub(crate) fn row(self, t_ns: u64) -> usize {
        match t_ns.checked_sub(self.warmup_ns) {
            Some(measured_ns) => self.warmup_rows() + (measured_ns / SECOND_NS) as usize,
            None => (t_ns / SECOND_NS) as usize,
        }
    }

    /// Start and end of a row; the end is the start of the next.
    pub(crate) fn bounds_ns(self, row: usize) -> (u64, u64) {
        let start_ns = |row: usize| match row.checked_sub(self.warmup_rows()) {
            Some(measured) => self.warmup_ns + measured as u64 * SECOND_NS,
            None => row as u64 * SECOND_NS,
        };
        (start_ns(row), start_ns(row + 1))
    }

    pub(crate) fn phase(self, row: usize) -> Phase {
        if row < self.warmup_rows() {
            Phase::Warmup
        } else {
            Phase::Measure
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_broken_warmup_ends_with_a_short_row() {
        let timeline = Timeline {
            warmup_ns: 2_500_000_000,
        };
        let rows: Vec<_> = (0..5)
            .map(|row| (timeline.phase(row), timeline.bounds_ns(row)))
            .collect();
        assert_eq!(
            rows,
            [
                (Phase::Warmup, (0, 1_000_000_000)),
                (Phase::Warmup, (1_000_000_000, 2_000_000_000)),
                (Phase::Warmup, (2_000_000_000, 2_500_000_000)),
                (Phase::Measure, (2_500_000_000, 3_500_000_000)),
                (Phase::Measure, (3_500_000_000, 4_500_000_000)),
            ]
        );
    }

    #[test]
    fn an_end_that_is_brought_forward_leaves_the_rows_before_it_as_they_were() {
        let longest = Timeline {
            warmup_ns: 60 * SECOND_NS,
        };
        let ended = longest.ending_with(6, 0);
        assert_eq!(ended.warmup_ns, 7 * SECOND_NS);
        assert_eq!(ended.ending_with(20, 0).warmup_ns, 7 * SECOND_NS);
        for row in 0..7 {
            assert_eq!(ended.phase(row), Phase::Warmup);
            assert_eq!(ended.bounds_ns(row), longest.bounds_ns(row));
        }
        assert_eq!(ended.phase(7), Phase::Measure);
        assert_eq!(ended.bounds_ns(7), (7 * SECOND_NS, 8 * SECOND_NS));
    }

    #[test]
    fn the_warm_up_ends_neither_before_its_least_nor_after_its_longest_time() {
        let longest = Timeline {
            warmup_ns: 9_500_000_000,
        };
        let end_ns = |row, least_ns| longest.ending_with(row, least_ns).warmup_ns;
        assert_eq!(end_ns(0, 2_500_000_000), 2_500_000_000);
        assert_eq!(end_ns(2, 2_500_000_000), 3_000_000_000);
        assert_eq!(end_ns(9, 0), 9_500_000_000);
    }

    proptest! {
        #[test]
        fn every_time_is_inside_its_row(warmup_ns in 0..5 * SECOND_NS, t_ns in 0..20 * SECOND_NS) {
            let timeline = Timeline { warmup_ns };
            let row = timeline.row(t_ns);
            let (start_ns, end_ns) = timeline.bounds_ns(row);
            prop_assert!(start_ns <= t_ns && t_ns < end_ns);
            prop_assert_eq!(timeline.phase(row) == Phase::Measure, t_ns >= warmup_ns);
        }
    }
}

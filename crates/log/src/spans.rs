//! Counts overlapping spans of time.

/// Returns the largest number of spans, each from its first to its last moment, that overlap at any time.
pub fn most_at_once<T: Ord + Copy>(spans: impl Iterator<Item = (T, T)>) -> u64 {
    let mut events: Vec<(T, bool)> = spans
        .flat_map(|(first, last)| [(first, false), (last, true)])
        .collect();
    events.sort_unstable(); // what begins when another ends is there at the same time
    let (mut now, mut most) = (0_u64, 0);
    for (_, is_end) in events {
        if is_end {
            now -= 1;
        } else {
            now += 1;
            most = most.max(now);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_that_touch_overlap() {
        let spans = [(0, 10), (5, 6), (6, 7), (11, 12)];
        assert_eq!(most_at_once(spans.into_iter()), 3);
        assert_eq!(most_at_once(std::iter::empty::<(i64, i64)>()), 0);
    }
}

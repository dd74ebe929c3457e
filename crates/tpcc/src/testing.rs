//! Statistics that tests of distributions share.

/// Chi-squared of drawn counts, as standard deviations from its mean; neighbours are put together until each group is
/// expected often enough.
#[must_use]
pub fn deviations(counts: &[u64], probabilities: &[f64]) -> f64 {
    let drawn: u64 = counts.iter().sum();
    let (mut chi_squared, mut groups, mut count, mut expected) = (0.0, 0, 0.0, 0.0);
    for (&one, probability) in counts.iter().zip(probabilities) {
        count += one as f64;
        expected += probability * drawn as f64;
        if expected >= 10.0 {
            chi_squared += (count - expected).powi(2) / expected;
            groups += 1;
            (count, expected) = (0.0, 0.0);
        }
    }
    let degrees = f64::from(groups - 1);
    (chi_squared - degrees) / (2.0 * degrees).sqrt()
}

/// How far `count` of `all` is from `share`, in standard deviations of a binomial distribution.
#[must_use]
pub fn deviation_of_share(count: usize, all: usize, share: f64) -> f64 {
    let expected = all as f64 * share;
    (count as f64 - expected) / (expected * (1.0 - share)).sqrt()
}

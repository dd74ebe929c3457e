//! The distributions of pgbench's random functions over integer ranges, as in PostgreSQL's
//! `src/bin/pgbench/pgbench.c`. Bounds are inclusive; `max - min + 1` must fit in an `i64`.

use std::hint::black_box;

use crate::prng::Prng;

/// Minimum parameter of `random_gaussian`.
pub const MIN_GAUSSIAN: f64 = 2.0;
/// Minimum and maximum parameter of `random_zipfian`.
pub const ZIPFIAN_RANGE: std::ops::RangeInclusive<f64> = 1.001..=1000.0;

/// `random(min, max)`
pub fn uniform(rng: &mut Prng, min: i64, max: i64) -> i64 {
    min.wrapping_add(rng.next_up_to(max.wrapping_sub(min) as u64) as i64)
}

/// `random_gaussian(min, max, parameter)`: a normal distribution truncated at `parameter` standard deviations on either
/// side and scaled to the range.
pub fn gaussian(rng: &mut Prng, min: i64, max: i64, parameter: f64) -> i64 {
    let deviations = loop {
        let drawn = rng.next_normal();
        if drawn >= -parameter && drawn < parameter {
            break drawn;
        }
    };
    at_fraction(min, max, (deviations + parameter) / (parameter * 2.0))
}

/// `random_exponential(min, max, parameter)`: an exponential distribution truncated where its density is
/// `exp(-parameter)`.
pub fn exponential(rng: &mut Prng, min: i64, max: i64, parameter: f64) -> i64 {
    let cut = (-parameter).exp();
    let uniform = 1.0 - rng.next_double();
    at_fraction(min, max, -(cut + (1.0 - cut) * uniform).ln() / parameter)
}

/// `random_zipfian(min, max, s)`: rank `k` has a probability proportional to `k^-s`. Rejection method of Devroye,
/// "Non-Uniform Random Variate Generation", Springer 1986, pages 550-551.
pub fn zipfian(rng: &mut Prng, min: i64, max: i64, s: f64) -> i64 {
    let n = max - min + 1;
    if n <= 1 {
        return min;
    }
    // A constant base 2 would be compiled to exp2, whose last digit may differ from that of pgbench's pow.
    let b = black_box(2.0_f64).powf(s - 1.0);
    loop {
        let u = rng.next_double();
        let v = rng.next_double();
        let x = u.powf(-1.0 / (s - 1.0)).floor();
        let t = (1.0 + 1.0 / x).powf(s - 1.0);
        if v * x * (t - 1.0) / (b - 1.0) <= t / b && x <= n as f64 {
            return min - 1 + x as i64;
        }
    }
}

/// The integer at `fraction` of the range, with `fraction` in [0, 1).
fn at_fraction(min: i64, max: i64, fraction: f64) -> i64 {
    min.wrapping_add(((max - min + 1) as f64 * fraction) as i64)
}

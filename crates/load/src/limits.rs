//! Defaults and greatest values of a configuration. Made by scripts/generated.py of plinth.model.load_config.

use crate::arrivals::Distribution;

pub(crate) const MOST_CLIENTS: usize = 262_143;
pub(crate) const LONGEST_S: f64 = 31_622_400.0;
pub(crate) const MOST_TPS: f64 = 1_000_000_000.0;
pub(crate) const MOST_FIRST_NUMBER: u64 = 4_503_599_627_370_496;
pub(crate) const MOST_CLASSES: usize = 10_000;
pub(crate) const MOST_SPEED: f64 = 1_000_000.0;

pub(crate) fn max_tries() -> u32 {
    1
}

pub(crate) fn check_variables() -> bool {
    true
}

pub(crate) fn connect_timeout_s() -> f64 {
    10.0
}

pub(crate) fn stop_timeout_s() -> f64 {
    10.0
}

pub(crate) fn weight() -> u32 {
    1
}

pub(crate) fn first_number() -> u64 {
    1
}

pub(crate) fn classes() -> usize {
    100
}

pub(crate) fn arrivals() -> Distribution {
    Distribution::Poisson
}

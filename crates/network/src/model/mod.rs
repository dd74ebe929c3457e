//! The model of a network, without I/O and without a clock: time is an argument, and random numbers come from a seed.

mod link;
mod settings;
mod star;

pub use link::{Counters, Fate, Link};
pub use settings::{Changes, JitterDistribution, LinkSettings, SettingsError};
pub use star::{Arrival, Star};

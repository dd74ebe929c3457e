//! The beginning of a load.

use std::time::{Duration, Instant, SystemTime};

/// When the load began.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Started {
    pub(crate) at: Instant,
    pub(crate) wall_clock: SystemTime,
    pub(crate) connect: Duration,
}

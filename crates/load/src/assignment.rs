//! What a thread of a run is given.

use std::ops::Range;
use std::sync::Arc;

use plinth_connect::Dialer;
use plinth_script::{Prng, ThreadSeeds};

use crate::config::Config;
use crate::control::Control;
use crate::program::Programs;
use crate::seconds::nanoseconds;
use crate::timeline::Timeline;

/// What a thread is to do, and with what.
#[derive(Debug)]
pub(crate) struct Assignment<'a> {
    pub(crate) thread: usize,
    pub(crate) config: &'a Config,
    pub(crate) dialer: &'a Arc<Dialer>,
    pub(crate) programs: &'a Programs,
    pub(crate) control: &'a Control,
    pub(crate) seeds: &'a ThreadSeeds,
    /// By client number.
    pub(crate) client_seeds: &'a [Prng],
}

impl Assignment<'_> {
    /// From when on no transaction begins: the duration after the warm-up, as far as its end is known.
    pub(crate) fn ends_ns(&self, timeline: Timeline) -> u64 {
        let measured_ns = self.config.duration_s.map_or(u64::MAX, nanoseconds);
        measured_ns.saturating_add(timeline.warmup_ns)
    }

    /// Numbers of the thread's clients that are to have a connection before the load begins: of those that get one for
    /// each transaction only the first, to see whether there is one to be had.
    pub(crate) fn numbers_to_connect(&self, all: bool) -> Range<usize> {
        let Range { start, end } = self.seeds.clients.clone();
        let end = if all || !self.config.reconnect {
            end
        } else {
            end.min(start + 1)
        };
        start..end
    }
}

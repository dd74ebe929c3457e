//! What a thread of a run is given.

use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use plinth_connect::Dialer;
use plinth_script::{Prng, ThreadSeeds};

use crate::clock::Clock;
use crate::commit_ledger::{Ledger, NewLedger};
use crate::config::Config;
use crate::control::Control;
use crate::log::{Columns, Log};
use crate::report::unix_ns;
use crate::seconds::nanoseconds;
use crate::started::Started;
use crate::timeline::Timeline;

/// What a thread is to do, and with what.
#[derive(Debug)]
pub(crate) struct Assignment<'a> {
    /// Its number among the threads of this process.
    pub(crate) thread: usize,
    /// Its number among the threads of the load.
    pub(crate) thread_of_load: usize,
    pub(crate) config: &'a Config,
    pub(crate) dialer: &'a Arc<Dialer>,
    pub(crate) control: &'a Control,
    pub(crate) seeds: &'a ThreadSeeds,
    /// Times the arrivals that all parts of a load share.
    pub(crate) shared_throttle: Prng,
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
    /// each transaction, or when a recording says so, only the first, to see whether there is one to be had.
    pub(crate) fn numbers_to_connect(&self, all: bool) -> Range<usize> {
        let Range { start, end } = self.seeds.clients.clone();
        let end = if all || !self.config.connects_later() {
            end
        } else {
            end.min(start + 1)
        };
        start..end
    }

    /// The log of the thread's transactions, into `file`; `None` without one.
    pub(crate) fn log(&self, file: Option<File>, started: Started) -> Option<Log> {
        let (config, file) = (self.config.log.as_ref()?, file?);
        let columns = Columns {
            is_open_loop: self.config.rate.is_some(),
            has_latency_limit: self.config.latency_limit_s.is_some(),
            has_retries: self.config.max_tries != 1,
        };
        let warmup_ns = self.control.timeline().warmup_ns;
        let sample = self.seeds.sample;
        Some(Log::new(
            config,
            columns,
            file,
            unix_ns(started.wall_clock),
            warmup_ns,
            sample,
        ))
    }

    /// The ledger of the thread. `None` also where it cannot be begun, which ends the run.
    pub(crate) fn begin_ledger(
        &self,
        ledger: Option<NewLedger>,
        clock: Clock,
        started: Started,
    ) -> Option<Ledger> {
        let begun = ledger?.begin(clock.started_ns(), unix_ns(started.wall_clock));
        begun.map_err(|error| self.control.fail_ledger(error)).ok()
    }
}

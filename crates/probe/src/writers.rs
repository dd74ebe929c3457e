//! Many writers to one file at once: with a flush for all that wait, or each with its own.

use std::path::Path;
use std::sync::{PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::buffer::Buffer;
use crate::case::{Case, Sharing};
use crate::error::ProbeError;
use crate::figure::{Figure, Latencies};
use crate::log::Log;
use crate::probe::Until;
use crate::target::{Failure, Target};
use crate::{RECORD_BYTES, SEGMENT_BYTES, WAL_BLOCK_BYTES};

/// A writer only waits: it needs no deep stack.
const STACK_BYTES: usize = 256 << 10;

/// Measures a case of many writers on the file at `path`.
pub(crate) fn measure(path: &Path, case: &Case, until: &Until) -> Result<Figure, Failure> {
    let target = Target::open(path, case)?;
    let log = Log::default();
    let writers = case.writers as usize;
    let longest = RECORD_BYTES as usize * writers + 2 * WAL_BLOCK_BYTES as usize;
    let buffer = Buffer::random(longest.max(case.block_bytes as usize), 1);
    let shared = Shared {
        case,
        target: &target,
        buffer: &buffer,
        log: &log,
        until,
        gate: &RwLock::new(()),
    };
    let results = thread::scope(|scope| {
        let closed = shared.gate.write().unwrap_or_else(PoisonError::into_inner);
        let spawned: Vec<_> = (0..writers)
            .map(|writer| {
                thread::Builder::new()
                    .name(format!("probe-{writer}"))
                    .stack_size(STACK_BYTES)
                    .spawn_scoped(scope, move || shared.work(writer as u64))
            })
            .collect();
        drop(closed);
        spawned
            .into_iter()
            .map(|spawned| match spawned {
                Ok(thread) => thread.join().unwrap_or_else(|panic| {
                    std::panic::resume_unwind(panic);
                }),
                Err(error) => Err(ProbeError::io("start a writer on", path)(error).into()),
            })
            .collect::<Result<Vec<_>, Failure>>()
    })?;
    let mut latencies = Latencies::new();
    for (of_one, _) in &results {
        latencies.merge(of_one);
    }
    let elapsed = results
        .iter()
        .map(|(_, elapsed)| *elapsed)
        .max()
        .unwrap_or_default();
    let flushes = match case.sharing {
        Sharing::Group => log.flushes(),
        Sharing::Alone | Sharing::Each => latencies.count(),
    };
    Ok(latencies.figure(flushes, elapsed))
}

#[derive(Clone, Copy)]
struct Shared<'a> {
    case: &'a Case,
    target: &'a Target<'a>,
    buffer: &'a Buffer,
    log: &'a Log,
    until: &'a Until,
    /// Closed until all are there.
    gate: &'a RwLock<()>,
}

impl Shared<'_> {
    fn work(&self, writer: u64) -> Result<(Latencies, Duration), Failure> {
        let mut latencies = Latencies::new();
        drop(self.gate.read().unwrap_or_else(PoisonError::into_inner));
        let began = Instant::now();
        let mut last = began;
        for turn in 0.. {
            if let Err(failure) = self.operate(writer, turn) {
                self.until.end();
                return Err(failure);
            }
            let now = Instant::now();
            latencies.record(now - last);
            last = now;
            if self.until.is_over(now) {
                break;
            }
        }
        Ok((latencies, last - began))
    }

    fn operate(&self, writer: u64, turn: u64) -> Result<(), Failure> {
        if self.case.sharing == Sharing::Group {
            // False when another's flush failed: that one tells, and all end.
            return self
                .log
                .commit(|from, to| self.write_pages(from, to))
                .map(|_| ());
        }
        let block = u64::from(self.case.block_bytes);
        let places = SEGMENT_BYTES / block;
        let place = (turn * u64::from(self.case.writers) + writer) % places;
        self.target
            .write(&self.buffer.bytes()[..block as usize], place * block)?;
        self.target.flush()
    }

    /// Pages of the log, which begins again in the file after each segment.
    fn write_pages(&self, from: u64, to: u64) -> Result<(), Failure> {
        let mut position = from;
        while position < to {
            let offset = position % SEGMENT_BYTES;
            let length = (to - position)
                .min(SEGMENT_BYTES - offset)
                .min(self.buffer.bytes().len() as u64 & !(u64::from(WAL_BLOCK_BYTES) - 1));
            self.target
                .write(&self.buffer.bytes()[..length as usize], offset)?;
            position += length;
        }
        self.target.flush()
    }
}

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
use crate::target::{Failure, Target};
use crate::until::Until;
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
    Ok(figure(case, &log, &results))
}

/// The results of all writers; for a shared log, of the time in which all were running.
fn figure(case: &Case, log: &Log, results: &[Written]) -> Figure {
    let span = log.span();
    let mut latencies = Latencies::new();
    for one in results {
        latencies.merge(&one.latencies);
        for &(record, latency) in &one.at_the_edges {
            if span.is_none_or(|span| span.holds(record)) {
                latencies.record(latency);
            }
        }
    }
    let longest = results.iter().map(|one| one.elapsed).max();
    let elapsed = span.map(|span| span.elapsed).or(longest);
    let flushes = match (case.sharing, span) {
        (Sharing::Group, Some(span)) => span.flushes,
        (Sharing::Group, None) => log.flushes(),
        (Sharing::Alone | Sharing::Each, _) => latencies.count(),
    };
    latencies.figure(flushes, elapsed.unwrap_or_default())
}

/// The results of one writer.
struct Written {
    latencies: Latencies,
    /// The first record of the log that it committed and the last, by where they end, which may not count.
    at_the_edges: Vec<(u64, Duration)>,
    elapsed: Duration,
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
    fn work(&self, writer: u64) -> Result<Written, Failure> {
        let mut latencies = Latencies::new();
        let mut at_the_edges = Vec::with_capacity(2);
        drop(self.gate.read().unwrap_or_else(PoisonError::into_inner));
        let began = Instant::now();
        let mut last = began;
        for turn in 0.. {
            let record = match self.operate(writer, turn) {
                Ok(record) => record,
                Err(failure) => {
                    self.until.end();
                    return Err(failure);
                }
            };
            let now = Instant::now();
            let is_over = self.until.is_over(now);
            match record {
                Some(record) if turn == 0 || is_over => at_the_edges.push((record, now - last)),
                _ => latencies.record(now - last),
            }
            last = now;
            if is_over {
                self.log.leave();
                break;
            }
        }
        Ok(Written {
            latencies,
            at_the_edges,
            elapsed: last - began,
        })
    }

    /// The end of the last record committed to the log; none without a log.
    fn operate(&self, writer: u64, turn: u64) -> Result<Option<u64>, Failure> {
        if self.case.sharing == Sharing::Group {
            // None when another writer's flush failed: that one reports it, and all end.
            return self.log.commit(|from, to| self.write_pages(from, to));
        }
        let block = u64::from(self.case.block_bytes);
        let places = SEGMENT_BYTES / block;
        let place = (turn * u64::from(self.case.writers) + writer) % places;
        self.target
            .write(&self.buffer.bytes()[..block as usize], place * block)?;
        self.target.flush()?;
        Ok(None)
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

//! What changes the content of a disk, or what of it is durable, in order: the steps of [`Volatile`], which a recording
//! keeps and a [`super::Replay`] repeats.

use super::extent::Extent;
use super::faults::{FaultOperation, left_out};
use super::volatile::{Cut, CutReport, Previous, Sequence, Volatile};

/// A step of a disk's history.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event {
    /// A write; its bytes are kept elsewhere.
    Write {
        /// Where.
        extent: Extent,
        /// Bytes of previous content that the cache holds for it.
        old_bytes: u64,
    },
    /// A discard.
    Discard {
        /// Where.
        extent: Extent,
        /// Bytes of previous content that the cache holds for it.
        old_bytes: u64,
    },
    /// A discard of more data than the cache holds: durable at once, with everything before it.
    DiscardAtOnce {
        /// Where.
        extent: Extent,
    },
    /// A write or discard that has to be durable when it is answered, is.
    Durable {
        /// Which.
        sequence: Sequence,
    },
    /// A flush was received; it covers what is before `end`.
    FlushReceived {
        /// The first change that it does not cover.
        end: Sequence,
    },
    /// A flush was answered.
    Flush {
        /// The first change that it does not cover; 0 when it covers nothing, since the disk lies.
        end: Sequence,
        /// The writes that it leaves out, since the disk lies.
        omission: Option<Omission>,
    },
    /// The properties of the disk were set.
    Settings(Settings),
    /// The power was cut.
    Cut(Cut),
    /// The power was restored.
    PowerOn,
    /// A request failed, and did nothing.
    Failed {
        /// What it was to do.
        operation: FaultOperation,
        /// Where.
        extent: Extent,
    },
}

/// The properties on which it depends what a cut leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The capacity of the volatile cache.
    pub capacity_bytes: u64,
    /// A torn write is torn only at a multiple of this.
    pub atomic_write_bytes: u64,
}

/// The writes that a lying flush leaves out: each with this probability, drawn from the seed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Omission {
    /// The seed of the disk.
    pub seed: u64,
    /// The probability.
    pub fraction: f64,
}

impl<P: Previous> Volatile<P> {
    /// Does what the event does to the changes that are not durable. `old` is the content before a write or discard.
    /// Returns what a cut restores.
    pub fn apply(&mut self, event: &Event, old: Vec<P>) -> Option<(Vec<P>, CutReport)> {
        match *event {
            Event::Write { extent, old_bytes } => {
                self.record(extent, false, old_bytes, old);
            }
            Event::Discard { extent, old_bytes } => {
                self.record(extent, true, old_bytes, old);
            }
            Event::DiscardAtOnce { .. } => self.flush(self.next(), |_| false),
            Event::Durable { sequence } => self.make_durable(sequence),
            Event::Flush { end, omission } => self.flush(end, |sequence| {
                omission
                    .is_some_and(|Omission { seed, fraction }| left_out(seed, sequence, fraction))
            }),
            Event::Settings(settings) => self.set_capacity(settings.capacity_bytes),
            Event::Cut(cut) => return Some(self.cut(cut)),
            Event::FlushReceived { .. } | Event::PowerOn | Event::Failed { .. } => {}
        }
        None
    }
}

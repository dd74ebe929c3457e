//! The volatile write cache, as it matters for power cuts: the writes that are not durable yet, in order.
//!
//! The medium is written at once, and the previous content is kept here, so that reads need not search the cache, a
//! flush only discards entries, and a cut restores the content. It models the worst that a disk may do: a write stays
//! volatile until a flush covers it, or until the cache is full and evicts its oldest write. It does not depend on
//! time, so that the same requests in the same order with the same seed lose the same sectors.

use std::collections::VecDeque;

use rangemap::RangeSet;
use serde::{Deserialize, Serialize};

use super::extent::Extent;
use super::rng::DiskRng;

/// The position of a write in the order of all writes.
pub type Sequence = u64;

/// The content of an extent before it was written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Old {
    /// These bytes, at `offset`.
    Bytes {
        /// The offset of the first byte.
        offset: u64,
        /// The bytes.
        bytes: Box<[u8]>,
    },
    /// A hole, which reads as zeros.
    Zeros(Extent),
}

/// Content before a change, which a cut may restore in part.
pub trait Previous {
    /// Where it is.
    fn extent(&self) -> Extent;
    /// The part of it that is at `extent`.
    #[must_use]
    fn part(&self, extent: Extent) -> Self;
}

impl Old {
    /// The bytes that it takes to keep.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Bytes { bytes, .. } => bytes.len() as u64,
            Self::Zeros(_) => 0,
        }
    }
}

impl Previous for Old {
    fn extent(&self) -> Extent {
        match self {
            Self::Bytes { offset, bytes } => Extent {
                offset: *offset,
                length: bytes.len() as u64,
            },
            Self::Zeros(extent) => *extent,
        }
    }

    fn part(&self, extent: Extent) -> Self {
        match self {
            Self::Bytes { offset, bytes } => {
                let (from, to) = (extent.offset - offset, extent.end() - offset);
                Self::Bytes {
                    offset: extent.offset,
                    bytes: bytes[from as usize..to as usize].into(),
                }
            }
            Self::Zeros(_) => Self::Zeros(extent),
        }
    }
}

/// The volatile writes that survive a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CutMode {
    /// None.
    Drop,
    /// Each with probability one half, independently of the others.
    Subset,
    /// All up to a random one, in the order written.
    Prefix,
    /// Like a prefix; of the write after these, only what comes before the beginning of one of its atomic units survives.
    Torn,
}

/// A power cut.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cut {
    /// The writes that survive.
    pub mode: CutMode,
    /// The seed of its random choices.
    pub seed: u64,
    /// A torn write is torn only at a multiple of this, from the beginning of the disk.
    pub atomic_write_bytes: u64,
}

/// The effect of a cut. Only writes and discards that were volatile are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "the names say it")]
pub struct CutReport {
    pub writes_dropped: u64,
    pub writes_kept: u64,
    pub writes_torn: u64,
    pub discards_dropped: u64,
    pub discards_kept: u64,
    pub sectors_dropped: u64,
    pub sectors_kept: u64,
    pub bytes_dropped: u64,
    pub bytes_kept: u64,
    pub torn_write: Option<TornWrite>,
}

/// The write that a cut tore.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TornWrite {
    /// Where it begins on the disk.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// How many of its bytes survive, at its beginning; the rest is as it was before the write.
    pub kept: u64,
}

#[derive(Debug, Clone)]
struct Change<P> {
    extent: Extent,
    discard: bool,
    durable: bool,
    old_bytes: u64,
    old: Vec<P>,
}

impl<P> Change<P> {
    fn cost_bytes(&self) -> u64 {
        BOOKKEEPING_BYTES + self.old_bytes
    }

    fn volatile_bytes(&self) -> u64 {
        if self.durable || self.discard {
            0
        } else {
            self.extent.length
        }
    }
}

/// Counted for each change in addition to its previous content, so that the number of tiny changes is bounded too.
const BOOKKEEPING_BYTES: u64 = 64;

enum Fate {
    Dropped,
    Kept,
    /// Only this many bytes at its beginning.
    Torn(u64),
}

/// The log of changes that are not durable, with what was there before: bytes, or where to find them.
#[derive(Debug, Clone)]
pub struct Volatile<P = Old> {
    capacity_bytes: u64,
    cost_bytes: u64,
    dirty_bytes: u64,
    first: Sequence,
    changes: VecDeque<Change<P>>,
}

impl<P: Previous> Volatile<P> {
    /// An empty cache of this capacity.
    pub fn new(capacity_bytes: u64) -> Self {
        Self::starting_at(0, capacity_bytes)
    }

    /// An empty cache of this capacity, whose next change has the sequence `first`.
    pub fn starting_at(first: Sequence, capacity_bytes: u64) -> Self {
        Self {
            capacity_bytes,
            cost_bytes: 0,
            dirty_bytes: 0,
            first,
            changes: VecDeque::new(),
        }
    }

    /// The sequence that the next change will get.
    pub fn next(&self) -> Sequence {
        self.first + self.changes.len() as u64
    }

    /// Written bytes that a cut may drop.
    pub fn dirty_bytes(&self) -> u64 {
        self.dirty_bytes
    }

    /// Its capacity.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Sets the capacity; the oldest writes that exceed it become durable.
    pub fn set_capacity(&mut self, capacity_bytes: u64) {
        self.capacity_bytes = capacity_bytes;
        self.evict();
    }

    /// Records a write to, or a discard of, `extent`, whose content was `old`; parts that `old` leaves out are
    /// unchanged. `old_bytes` of the capacity are needed to keep it.
    pub fn record(
        &mut self,
        extent: Extent,
        discard: bool,
        old_bytes: u64,
        old: Vec<P>,
    ) -> Sequence {
        let sequence = self.next();
        let change = Change {
            extent,
            discard,
            durable: false,
            old_bytes,
            old,
        };
        self.cost_bytes += change.cost_bytes();
        self.dirty_bytes += change.volatile_bytes();
        self.changes.push_back(change);
        self.evict();
        sequence
    }

    /// Makes the change durable.
    pub fn make_durable(&mut self, sequence: Sequence) {
        self.settle(sequence);
        self.forget();
    }

    /// A flush of the changes before `end`, except those for which `stays` returns true, which it silently leaves out.
    pub fn flush(&mut self, end: Sequence, mut stays: impl FnMut(Sequence) -> bool) {
        for sequence in self.first..end.min(self.next()) {
            if !stays(sequence) {
                self.settle(sequence);
            }
        }
        self.forget();
    }

    /// Cuts the power. Returns what must be written to the medium so that it has the content that survives, in this order:
    /// of two that overlap, the later one counts. Nothing is volatile afterwards.
    pub fn cut(&mut self, cut: Cut) -> (Vec<P>, CutReport) {
        let fates = self.fates(cut);
        let mut report = CutReport::default();
        let mut restores = Vec::new();
        let mut settled = RangeSet::new();
        for (change, fate) in self.changes.iter().zip(fates).rev() {
            let kept_bytes = match fate {
                Fate::Dropped => 0,
                Fate::Kept => change.extent.length,
                Fate::Torn(bytes) => bytes,
            };
            if !change.durable {
                report.count(change, kept_bytes);
            }
            let kept_end = change.extent.offset + kept_bytes;
            for old in &change.old {
                let lost = old.extent().offset.max(kept_end)..old.extent().end();
                if lost.is_empty() {
                    continue;
                }
                for gap in settled.gaps(&lost) {
                    restores.push(old.part(Extent {
                        offset: gap.start,
                        length: gap.end - gap.start,
                    }));
                }
            }
            if kept_bytes > 0 {
                settled.insert(change.extent.offset..kept_end);
            }
        }
        self.first = self.next();
        self.changes.clear();
        self.cost_bytes = 0;
        self.dirty_bytes = 0;
        (restores, report)
    }

    fn fates(&self, cut: Cut) -> Vec<Fate> {
        let mut rng = DiskRng::new(cut.seed, 0);
        let volatile: Vec<usize> = (0..self.changes.len())
            .filter(|&index| !self.changes[index].durable)
            .collect();
        let (kept_before, torn) = match cut.mode {
            CutMode::Drop | CutMode::Subset => (0, None),
            CutMode::Prefix => match rng.below(volatile.len() as u64 + 1) as usize {
                count if count == volatile.len() => (self.changes.len(), None),
                count => (volatile[count], None),
            },
            CutMode::Torn => self.tear(&volatile, cut.atomic_write_bytes, &mut rng),
        };
        let fate = |(index, change): (usize, &Change<P>)| {
            if change.durable || index < kept_before {
                return Fate::Kept;
            }
            match torn {
                Some((at, bytes)) if at == index => Fate::Torn(bytes),
                _ if cut.mode == CutMode::Subset && rng.chance(0.5) => Fate::Kept,
                _ => Fate::Dropped,
            }
        };
        self.changes.iter().enumerate().map(fate).collect()
    }

    /// The write to be torn, of those with the beginning of a unit inside, and how many of its bytes survive.
    fn tear(
        &self,
        volatile: &[usize],
        unit_bytes: u64,
        rng: &mut DiskRng,
    ) -> (usize, Option<(usize, u64)>) {
        let divisible: Vec<usize> = volatile
            .iter()
            .copied()
            .filter(|&index| {
                let change = &self.changes[index];
                !change.discard && change.extent.units(unit_bytes) > 1
            })
            .collect();
        if divisible.is_empty() {
            return (0, None);
        }
        let index = divisible[rng.below(divisible.len() as u64) as usize];
        let extent = self.changes[index].extent;
        let unit = extent.offset / unit_bytes + 1 + rng.below(extent.units(unit_bytes) - 1);
        (index, Some((index, unit * unit_bytes - extent.offset)))
    }

    fn settle(&mut self, sequence: Sequence) {
        // A change that is not in the log any more is durable already.
        let Some(index) = sequence.checked_sub(self.first) else {
            return;
        };
        if let Some(change) = self.changes.get_mut(index as usize) {
            self.dirty_bytes -= change.volatile_bytes();
            self.cost_bytes -= std::mem::take(&mut change.old_bytes);
            change.durable = true;
            change.old = Vec::new(); // never restored
        }
    }

    /// Discards durable changes, beginning with the oldest: those after a volatile one are still needed, since they
    /// limit what it may undo.
    fn forget(&mut self) {
        while self.changes.front().is_some_and(|change| change.durable) {
            self.pop();
        }
    }

    fn evict(&mut self) {
        while self.cost_bytes > self.capacity_bytes && !self.changes.is_empty() {
            self.pop();
        }
        self.forget();
    }

    fn pop(&mut self) {
        if let Some(change) = self.changes.pop_front() {
            self.cost_bytes -= change.cost_bytes();
            self.dirty_bytes -= change.volatile_bytes();
            self.first += 1;
        }
    }
}

impl CutReport {
    fn count<P>(&mut self, change: &Change<P>, kept_bytes: u64) {
        let whole = kept_bytes == change.extent.length;
        if change.discard {
            *(if whole {
                &mut self.discards_kept
            } else {
                &mut self.discards_dropped
            }) += 1;
            return;
        }
        match kept_bytes {
            0 => self.writes_dropped += 1,
            _ if whole => self.writes_kept += 1,
            _ => {
                self.writes_torn += 1;
                self.torn_write = Some(TornWrite {
                    offset: change.extent.offset,
                    length: change.extent.length,
                    kept: kept_bytes,
                });
            }
        }
        let kept = Extent {
            offset: change.extent.offset,
            length: kept_bytes,
        };
        self.bytes_kept += kept_bytes;
        self.bytes_dropped += change.extent.length - kept_bytes;
        self.sectors_kept += kept.sectors();
        self.sectors_dropped += change.extent.sectors() - kept.sectors();
    }
}

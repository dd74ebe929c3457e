//! The history of a disk, repeated without its bytes: where each byte of the content comes from.

use rangemap::RangeMap;

use super::event::{Event, Settings};
use super::extent::Extent;
use super::volatile::{Cut, CutMode, CutReport, Previous, Sequence, Volatile};

/// The source of the content of a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The content at the beginning of the history, at the same offset.
    Base,
    /// Zeros.
    Zeros,
    /// The bytes of the writes, one after the other: at the offset plus this, which wraps around. So the parts of a range
    /// have the value of the whole.
    Written(u64),
}

/// A range and where its content comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    extent: Extent,
    source: Source,
}

impl Previous for Piece {
    fn extent(&self) -> Extent {
        self.extent
    }

    fn part(&self, extent: Extent) -> Self {
        Self {
            extent,
            source: self.source,
        }
    }
}

/// The content of a disk, by where it comes from. Covers the whole disk.
pub type Content = RangeMap<u64, Source>;

/// A disk that repeats a history.
#[derive(Debug, Clone)]
pub struct Replay {
    content: Content,
    volatile: Volatile<Piece>,
    atomic_write_bytes: u64,
}

impl Replay {
    /// A disk at the beginning of a history, when everything is durable. Its next change has the sequence `first`.
    pub fn new(size_bytes: u64, settings: Settings, first: Sequence) -> Self {
        let mut content = RangeMap::new();
        if size_bytes > 0 {
            content.insert(0..size_bytes, Source::Base);
        }
        Self {
            content,
            volatile: Volatile::starting_at(first, settings.capacity_bytes),
            atomic_write_bytes: settings.atomic_write_bytes,
        }
    }

    /// Repeats one event; the bytes of a write are at `position` of those of all writes.
    pub fn apply(&mut self, event: &Event, position: u64) {
        let (extent, source) = match *event {
            Event::Write { extent, .. } => (
                extent,
                Source::Written(position.wrapping_sub(extent.offset)),
            ),
            Event::Discard { extent, .. } | Event::DiscardAtOnce { extent } => {
                (extent, Source::Zeros)
            }
            Event::Settings(settings) => {
                self.atomic_write_bytes = settings.atomic_write_bytes;
                (NOTHING, Source::Zeros)
            }
            _ => (NOTHING, Source::Zeros),
        };
        let old = self.pieces(extent);
        if let Some((restores, _)) = self.volatile.apply(event, old) {
            self.restore(&restores);
        }
        self.set(extent, source);
    }

    /// The content after a power cut at this point. A torn write is torn at a multiple of `tear_bytes`, where that is
    /// more than the atomic unit of the disk.
    pub fn cut(mut self, mode: CutMode, seed: u64, tear_bytes: u64) -> (Content, CutReport) {
        let (restores, report) = self.volatile.cut(Cut {
            mode,
            seed,
            atomic_write_bytes: self.atomic_write_bytes.max(tear_bytes),
        });
        self.restore(&restores);
        (self.content, report)
    }

    fn pieces(&self, extent: Extent) -> Vec<Piece> {
        let range = extent.offset..extent.end();
        if range.is_empty() {
            return Vec::new();
        }
        self.content
            .overlapping(&range)
            .map(|(found, &source)| {
                let start = found.start.max(range.start);
                let length = found.end.min(range.end) - start;
                let extent = Extent {
                    offset: start,
                    length,
                };
                Piece { extent, source }
            })
            .collect()
    }

    fn restore(&mut self, restores: &[Piece]) {
        for piece in restores {
            self.set(piece.extent, piece.source);
        }
    }

    fn set(&mut self, extent: Extent, source: Source) {
        if extent.length > 0 {
            self.content.insert(extent.offset..extent.end(), source);
        }
    }
}

const NOTHING: Extent = Extent {
    offset: 0,
    length: 0,
};

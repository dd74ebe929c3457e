//! A range of the disk, in bytes.

/// The smallest sector of a disk, and the unit in which reports count.
pub const SECTOR_BYTES: u64 = 512;

/// A number of bytes at `offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

impl Extent {
    /// Its end: the offset after its last byte.
    pub fn end(self) -> u64 {
        self.offset + self.length
    }

    /// Whether the two overlap.
    pub fn overlaps(self, other: Self) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }

    /// The sectors that it overlaps.
    pub fn sectors(self) -> u64 {
        self.units(SECTOR_BYTES)
    }

    /// The aligned units of `unit_bytes` that it overlaps.
    pub fn units(self, unit_bytes: u64) -> u64 {
        if self.length == 0 {
            return 0;
        }
        self.end().div_ceil(unit_bytes) - self.offset / unit_bytes
    }
}

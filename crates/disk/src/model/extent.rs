//! A piece of the disk, in bytes.

/// The least that a disk writes whole.
pub const SECTOR_BYTES: u64 = 512;

/// Bytes from `offset` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub length: u64,
}

impl Extent {
    /// Where it ends: the offset after its last byte.
    pub fn end(self) -> u64 {
        self.offset + self.length
    }

    /// Whether they have a byte in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }

    /// Sectors that it touches.
    pub fn sectors(self) -> u64 {
        if self.length == 0 {
            return 0;
        }
        self.end().div_ceil(SECTOR_BYTES) - self.offset / SECTOR_BYTES
    }
}

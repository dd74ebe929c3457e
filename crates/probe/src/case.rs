//! Cases of the probe: each repeats one kind of operation.

use serde::{Deserialize, Serialize};

/// The method that makes a write durable, by the names of PostgreSQL's `wal_sync_method`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The file is open with `O_DSYNC`.
    OpenDatasync,
    /// fdatasync(2) after the writes. The default on Linux.
    Fdatasync,
    /// fsync(2) after the writes.
    Fsync,
    /// `F_FULLFSYNC` of macOS, or its like on Windows.
    FsyncWritethrough,
    /// The file is open with `O_SYNC`.
    OpenSync,
    /// Not at all.
    None,
}

impl Method {
    /// The methods of `wal_sync_method`, in PostgreSQL's order of preference.
    pub const ALL: [Self; 5] = [
        Self::OpenDatasync,
        Self::Fdatasync,
        Self::Fsync,
        Self::FsyncWritethrough,
        Self::OpenSync,
    ];

    /// The name in `postgresql.conf`.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenDatasync => "open_datasync",
            Self::Fdatasync => "fdatasync",
            Self::Fsync => "fsync",
            Self::FsyncWritethrough => "fsync_writethrough",
            Self::OpenSync => "open_sync",
            Self::None => "none",
        }
    }

    /// Whether a flag of open(2) does it, so that each write waits.
    pub fn is_of_open(self) -> bool {
        matches!(self, Self::OpenDatasync | Self::OpenSync)
    }
}

/// The group of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// `pg_test_fsync`: one write of a WAL block.
    OneBlock,
    /// `pg_test_fsync`: two writes of a WAL block.
    TwoBlocks,
    /// `pg_test_fsync`: 16 kB by `open_sync`, in writes of 16 to 1 kB.
    Ladder,
    /// `pg_test_fsync`: does fsync honour what another descriptor wrote?
    OtherDescriptor,
    /// `pg_test_fsync`: a write of a WAL block that is not made durable.
    Unsynced,
    /// Onward through a segment that is there, as PostgreSQL writes a recycled one.
    Preallocated,
    /// Onward through a segment that grows.
    Extending,
    /// Writes of 4 to 64 kB, onward through a segment that is there.
    Sizes,
    /// Many committers, one flush for all that wait: as PostgreSQL does.
    GroupCommit,
    /// Many writers, each with a flush of its own.
    Independent,
}

impl Group {
    /// All of them, in the order in which they are reported.
    pub const ALL: [Self; 10] = [
        Self::OneBlock,
        Self::TwoBlocks,
        Self::Ladder,
        Self::OtherDescriptor,
        Self::Unsynced,
        Self::Preallocated,
        Self::Extending,
        Self::Sizes,
        Self::GroupCommit,
        Self::Independent,
    ];
}

/// The position in the file that an operation writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// Always its beginning.
    Beginning,
    /// Behind the operation before; after the last block the first again.
    Onward,
    /// Behind its end; emptied again when it is a segment long, which is not timed.
    BeyondEnd,
}

/// The descriptor that is flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Descriptor {
    /// One, open all the time.
    Kept,
    /// Opened for each operation, flushed and closed; then opened and closed once more, for a like number of calls.
    Own,
    /// Opened for each operation, written and closed; another one is opened and flushed.
    Another,
}

/// The writers of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sharing {
    /// A single writer.
    Alone,
    /// Each writer appends a record to one log; one that finds no flush under way writes and flushes for all, the others wait.
    Group,
    /// Each writer writes blocks of its own, and flushes.
    Each,
}

/// One kind of operation. Its latency is that of `writes` durable writes of `block_bytes`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The group of the case.
    pub group: Group,
    /// The label of the case within its group.
    pub label: String,
    /// The method that makes a write durable.
    pub method: Method,
    /// Past the page cache (`O_DIRECT`).
    pub direct: bool,
    /// Length of one write.
    pub block_bytes: u32,
    /// Writes in one operation.
    pub writes: u32,
    /// The position of the writes.
    pub place: Place,
    /// The descriptor that is flushed.
    pub descriptor: Descriptor,
    /// Threads that write.
    pub writers: u32,
    /// The writers.
    pub sharing: Sharing,
}

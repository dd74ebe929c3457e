//! The files of a recording, as docs/internals/disk-recording.md describes them: header and records of 64 bytes, and the
//! bytes of the writes in a file of their own.

use crate::model::{Cut, CutMode, Event, Extent, FaultOperation, Omission, Sequence, Settings};

/// The disk's content when the recording began.
pub(crate) const BASE: &str = "base";
/// The header and the records.
pub(crate) const RECORDS: &str = "records";
/// The bytes of the writes, in order.
pub(crate) const DATA: &str = "data";

/// The length of the header and of each record.
pub(crate) const RECORD_BYTES: usize = 64;
/// The largest disk, so that no sum of its offsets overflows.
const MAX_SIZE_BYTES: u64 = 1 << 60;

const MAGIC: &[u8; 8] = b"PLNTHDSK";
const VERSION: u32 = 1;

/// The start of a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) size_bytes: u64,
    pub(crate) first: Sequence,
    pub(crate) settings: Settings,
    /// CLOCK_MONOTONIC, as all times.
    pub(crate) began_ns: u64,
}

/// The reason why the first bytes are not a readable header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeaderError {
    NoRecording,
    Damaged,
    Version(u32),
}

/// A step of the disk's history, or the end of the recording.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Step {
    Event(Event),
    /// The recording was stopped: nothing is missing.
    End,
}

/// A record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Record {
    pub(crate) time_ns: u64,
    pub(crate) step: Step,
    /// Where the bytes of a write begin in the data; of another record, how many there are before it.
    pub(crate) position: u64,
    /// The checksum of the bytes of a write.
    pub(crate) data_crc: u32,
}

/// The bytes of a record or header, filled from its beginning; the first four are the checksum of the rest.
struct Fields {
    bytes: [u8; RECORD_BYTES],
    at: usize,
}

impl Fields {
    fn put<const N: usize>(&mut self, bytes: [u8; N]) {
        self.bytes[self.at..self.at + N].copy_from_slice(&bytes);
        self.at += N;
    }

    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        taken.copy_from_slice(&self.bytes[self.at..self.at + N]);
        self.at += N;
        taken
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn new() -> Self {
        Self {
            bytes: [0; RECORD_BYTES],
            at: 4,
        }
    }

    fn sealed(mut self) -> [u8; RECORD_BYTES] {
        let crc = crc32fast::hash(&self.bytes[4..]);
        self.bytes[..4].copy_from_slice(&crc.to_le_bytes());
        self.bytes
    }

    fn checked(bytes: [u8; RECORD_BYTES]) -> Option<Self> {
        let mut fields = Self { bytes, at: 0 };
        (fields.u32() == crc32fast::hash(&bytes[4..])).then_some(fields)
    }
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; RECORD_BYTES] {
        let mut fields = Fields::new();
        fields.put(VERSION.to_le_bytes());
        fields.put(*MAGIC);
        for number in [
            self.size_bytes,
            self.first,
            self.settings.capacity_bytes,
            self.settings.atomic_write_bytes,
            self.began_ns,
        ] {
            fields.put(number.to_le_bytes());
        }
        fields.sealed()
    }

    pub(crate) fn decode(bytes: [u8; RECORD_BYTES]) -> Result<Self, HeaderError> {
        let mut plain = Fields { bytes, at: 4 };
        let version = plain.u32();
        if plain.take() != *MAGIC {
            return Err(HeaderError::NoRecording);
        }
        if version != VERSION {
            return Err(HeaderError::Version(version));
        }
        let mut fields = Fields::checked(bytes).ok_or(HeaderError::Damaged)?;
        fields.at = 16;
        let header = Self {
            size_bytes: fields.u64(),
            first: fields.u64(),
            settings: Settings {
                capacity_bytes: fields.u64(),
                atomic_write_bytes: fields.u64(),
            },
            began_ns: fields.u64(),
        };
        let valid = header.size_bytes <= MAX_SIZE_BYTES
            && header.first <= MAX_SIZE_BYTES
            && header.settings.atomic_write_bytes > 0;
        if valid {
            Ok(header)
        } else {
            Err(HeaderError::Damaged)
        }
    }
}

impl Record {
    /// The record number `number`.
    pub(crate) fn encode(&self, number: u64) -> [u8; RECORD_BYTES] {
        let (kind, detail, numbers) = self.step.encode();
        let mut fields = Fields::new();
        fields.put([kind, detail, 0, 0]);
        fields.put(number.to_le_bytes());
        fields.put(self.time_ns.to_le_bytes());
        for number in numbers {
            fields.put(number.to_le_bytes());
        }
        fields.put(self.position.to_le_bytes());
        fields.put(self.data_crc.to_le_bytes());
        fields.sealed()
    }

    /// The record number `number` of a disk of this size; `None` when the bytes are not that.
    pub(crate) fn decode(bytes: [u8; RECORD_BYTES], number: u64, size_bytes: u64) -> Option<Self> {
        let mut fields = Fields::checked(bytes)?;
        let [kind, detail, _, _] = fields.take();
        if fields.u64() != number {
            return None;
        }
        let time_ns = fields.u64();
        let numbers = [fields.u64(), fields.u64(), fields.u64()];
        Some(Self {
            time_ns,
            step: Step::decode(kind, detail, numbers, size_bytes)?,
            position: fields.u64(),
            data_crc: fields.u32(),
        })
    }

    /// Bytes of the data that belong to it.
    pub(crate) fn data_bytes(&self) -> u64 {
        match self.step {
            Step::Event(Event::Write { extent, .. }) => extent.length,
            _ => 0,
        }
    }
}

/// The kinds of records, as they are numbered in the file.
#[allow(missing_docs, reason = "the names say it")]
pub(crate) mod kind {
    pub(crate) const END: u8 = 0;
    pub(crate) const WRITE: u8 = 1;
    pub(crate) const DISCARD: u8 = 2;
    pub(crate) const DISCARD_AT_ONCE: u8 = 3;
    pub(crate) const DURABLE: u8 = 4;
    pub(crate) const FLUSH_RECEIVED: u8 = 5;
    pub(crate) const FLUSH: u8 = 6;
    pub(crate) const SETTINGS: u8 = 7;
    pub(crate) const CUT: u8 = 8;
    pub(crate) const POWER_ON: u8 = 9;
    pub(crate) const FAILED: u8 = 10;
}

impl Step {
    /// The number of its kind.
    pub(crate) fn kind(&self) -> u8 {
        self.encode().0
    }

    fn encode(&self) -> (u8, u8, [u64; 3]) {
        let Self::Event(event) = *self else {
            return (kind::END, 0, [0; 3]);
        };
        let of = |extent: Extent, more| [extent.offset, extent.length, more];
        match event {
            Event::Write { extent, old_bytes } => (kind::WRITE, 0, of(extent, old_bytes)),
            Event::Discard { extent, old_bytes } => (kind::DISCARD, 0, of(extent, old_bytes)),
            Event::DiscardAtOnce { extent } => (kind::DISCARD_AT_ONCE, 0, of(extent, 0)),
            Event::Durable { sequence } => (kind::DURABLE, 0, [sequence, 0, 0]),
            Event::FlushReceived { end } => (kind::FLUSH_RECEIVED, 0, [end, 0, 0]),
            Event::Flush {
                end,
                omission: None,
            } => (kind::FLUSH, 0, [end, 0, 0]),
            Event::Flush {
                end,
                omission: Some(Omission { seed, fraction }),
            } => (kind::FLUSH, 1, [end, seed, fraction.to_bits()]),
            Event::Settings(Settings {
                capacity_bytes,
                atomic_write_bytes,
            }) => (kind::SETTINGS, 0, [capacity_bytes, atomic_write_bytes, 0]),
            Event::Cut(Cut {
                mode,
                seed,
                atomic_write_bytes,
            }) => (
                kind::CUT,
                index_of(&MODES, mode),
                [seed, atomic_write_bytes, 0],
            ),
            Event::PowerOn => (kind::POWER_ON, 0, [0; 3]),
            Event::Failed { operation, extent } => (
                kind::FAILED,
                index_of(&OPERATIONS, operation),
                of(extent, 0),
            ),
        }
    }

    fn decode(kind: u8, detail: u8, numbers: [u64; 3], size_bytes: u64) -> Option<Self> {
        let [first, second, third] = numbers;
        let extent = Extent {
            offset: first,
            length: second,
        };
        let fits = |extent: Extent| {
            let end = extent.offset.checked_add(extent.length);
            end.is_some_and(|end| end <= size_bytes)
        };
        let changes = fits(extent) && extent.length > 0 && third <= extent.length;
        let event = match kind {
            kind::END => return Some(Self::End),
            kind::WRITE if changes => Event::Write {
                extent,
                old_bytes: third,
            },
            kind::DISCARD if changes => Event::Discard {
                extent,
                old_bytes: third,
            },
            kind::DISCARD_AT_ONCE if changes => Event::DiscardAtOnce { extent },
            kind::DURABLE => Event::Durable { sequence: first },
            kind::FLUSH_RECEIVED => Event::FlushReceived { end: first },
            kind::FLUSH => Event::Flush {
                end: first,
                omission: (detail == 1).then(|| Omission {
                    seed: second,
                    fraction: f64::from_bits(third),
                }),
            },
            kind::SETTINGS if second > 0 => Event::Settings(Settings {
                capacity_bytes: first,
                atomic_write_bytes: second,
            }),
            kind::CUT if second > 0 => Event::Cut(Cut {
                mode: *MODES.get(usize::from(detail))?,
                seed: first,
                atomic_write_bytes: second,
            }),
            kind::POWER_ON => Event::PowerOn,
            kind::FAILED if fits(extent) => Event::Failed {
                operation: *OPERATIONS.get(usize::from(detail))?,
                extent,
            },
            _ => return None,
        };
        Some(Self::Event(event))
    }
}

const MODES: [CutMode; 4] = [
    CutMode::Drop,
    CutMode::Subset,
    CutMode::Prefix,
    CutMode::Torn,
];
const OPERATIONS: [FaultOperation; 3] = [
    FaultOperation::Read,
    FaultOperation::Write,
    FaultOperation::Flush,
];

fn index_of<T: PartialEq>(all: &[T], one: T) -> u8 {
    all.iter().position(|other| *other == one).unwrap_or(0) as u8
}

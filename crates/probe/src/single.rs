//! Measures one writer that runs one operation after the other.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::SEGMENT_BYTES;
use crate::buffer::Buffer;
use crate::case::{Case, Descriptor, Place};
use crate::figure::{Figure, Latencies};
use crate::target::{Failure, Target};
use crate::until::Until;

/// Measures a case of one writer on the file at `path`.
pub(crate) fn measure(path: &Path, case: &Case, until: &Until) -> Result<Figure, Failure> {
    let buffer = Buffer::random((case.block_bytes * case.writes) as usize, 1);
    let mut writer = Writer {
        case,
        path,
        kept: None,
        buffer: &buffer,
        offset: 0,
    };
    if case.descriptor == Descriptor::Kept {
        writer.kept = Some(writer.opened()?);
    }
    writer.make_room()?;
    let mut latencies = Latencies::new();
    // Each operation is timed alone: to write a latency down takes a tenth of what an unsynced write does.
    let mut timed = Duration::ZERO;
    loop {
        let began = Instant::now();
        writer.operate()?;
        let ended = Instant::now();
        latencies.record(ended - began);
        timed += ended - began;
        if until.is_over(ended) {
            break;
        }
        if writer.is_full() {
            writer.make_room()?;
        }
    }
    let flushes = latencies.count();
    Ok(latencies.figure(flushes, timed))
}

struct Writer<'a> {
    case: &'a Case,
    path: &'a Path,
    /// None where each operation opens its own, as `pg_test_fsync` does: a last close does more than another.
    kept: Option<Target<'a>>,
    buffer: &'a Buffer,
    offset: u64,
}

impl<'a> Writer<'a> {
    fn operate(&mut self) -> Result<(), Failure> {
        match (&self.kept, self.case.descriptor) {
            (Some(target), _) => {
                self.write(target)?;
                target.flush()?;
            }
            (None, Descriptor::Kept | Descriptor::Own) => {
                let target = self.opened()?;
                self.write(&target)?;
                target.flush()?;
                drop(target);
                self.opened()?;
            }
            (None, Descriptor::Another) => {
                self.write(&self.opened()?)?;
                self.opened()?.flush()?;
            }
        }
        self.advance();
        Ok(())
    }

    fn opened(&self) -> Result<Target<'a>, Failure> {
        Target::open(self.path, self.case)
    }

    fn write(&self, target: &Target<'_>) -> Result<(), Failure> {
        let blocks = self.buffer.bytes().chunks(self.case.block_bytes as usize);
        let mut offset = self.offset;
        for block in blocks {
            target.write(block, offset)?;
            offset += block.len() as u64;
        }
        Ok(())
    }

    fn advance(&mut self) {
        let length = self.buffer.bytes().len() as u64;
        match self.case.place {
            Place::Beginning => {}
            Place::Onward => {
                self.offset += length;
                if self.offset + length > SEGMENT_BYTES {
                    self.offset = 0;
                }
            }
            Place::BeyondEnd => self.offset += length,
        }
    }

    fn is_full(&self) -> bool {
        self.case.place == Place::BeyondEnd
            && self.offset + self.buffer.bytes().len() as u64 > SEGMENT_BYTES
    }

    /// An empty file, for a case that grows one.
    fn make_room(&mut self) -> Result<(), Failure> {
        if let (Place::BeyondEnd, Some(target)) = (self.case.place, &self.kept) {
            self.offset = 0;
            target.empty()?;
        }
        Ok(())
    }
}

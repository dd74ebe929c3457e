//! One writer, one operation after the other.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::SEGMENT_BYTES;
use crate::buffer::Buffer;
use crate::case::{Case, Descriptor, Place};
use crate::figure::{Figure, Latencies};
use crate::probe::Until;
use crate::target::{Failure, Target};

/// Measures a case of one writer on the file at `path`.
pub(crate) fn measure(path: &Path, case: &Case, until: &Until) -> Result<Figure, Failure> {
    let buffer = Buffer::random((case.block_bytes * case.writes) as usize, 1);
    let mut writer = Writer {
        case,
        path,
        target: Target::open(path, case)?,
        buffer: &buffer,
        offset: 0,
    };
    writer.make_room()?;
    let mut latencies = Latencies::new();
    let mut untimed = Duration::ZERO;
    let began = Instant::now();
    let mut last = began;
    loop {
        writer.operate()?;
        let now = Instant::now();
        latencies.record(now - last);
        last = now;
        if until.is_over(now) {
            break;
        }
        if writer.is_full() {
            writer.make_room()?;
            last = Instant::now();
            untimed += last - now;
        }
    }
    let flushes = latencies.count();
    Ok(latencies.figure(flushes, last - began - untimed))
}

struct Writer<'a> {
    case: &'a Case,
    path: &'a Path,
    target: Target<'a>,
    buffer: &'a Buffer,
    offset: u64,
}

impl Writer<'_> {
    fn operate(&mut self) -> Result<(), Failure> {
        match self.case.descriptor {
            Descriptor::Kept => {
                self.write(&self.target)?;
                self.target.flush()?;
            }
            Descriptor::Own => {
                let target = self.opened()?;
                self.write(&target)?;
                target.flush()?;
                drop(target);
                self.opened()?;
            }
            Descriptor::Another => {
                self.write(&self.opened()?)?;
                self.opened()?.flush()?;
            }
        }
        self.advance();
        Ok(())
    }

    fn opened(&self) -> Result<Target<'_>, Failure> {
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
        if self.case.place == Place::BeyondEnd {
            self.offset = 0;
            self.target.empty()?;
        }
        Ok(())
    }
}

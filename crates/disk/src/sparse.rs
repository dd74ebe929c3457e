//! Finds the parts of a sparse file that hold data.

use std::fs::File;
use std::io;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use crate::model::Extent;

/// The parts of `extent` in which the file has data; the rest are holes.
pub(crate) fn data_in(file: &File, extent: Extent) -> io::Result<Vec<Extent>> {
    let mut found = Vec::new();
    let mut from = extent.offset;
    while from < extent.end() {
        let start = match seek(file, SeekFrom::Data(from)) {
            Ok(start) if start < extent.end() => start,
            Ok(_) | Err(Errno::NXIO) => break,
            Err(errno) => return Err(errno.into()),
        };
        let end = seek(file, SeekFrom::Hole(start))?.min(extent.end());
        found.push(Extent {
            offset: start,
            length: end - start,
        });
        from = end;
    }
    Ok(found)
}

//! The sparse file that holds the disk's data.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::buffer::spare_capacity;
use rustix::fs::{FallocateFlags, FlockOperation, fallocate, flock, ioctl_ficlone};
use rustix::io::{Errno, pread};

use crate::error::DiskError;
use crate::image::Below;
use crate::model::{Extent, Old};
use crate::recording::Image;
use crate::sparse::data_in;
use serde::Serialize;

/// The whole disk is a multiple of this.
pub(crate) const BLOCK_BYTES: u64 = 4096;

/// The granularity of the map of regions that were ever written.
const REGION_BYTES: u64 = 64 * 1024;

/// The size of a copied chunk.
const COPY_BYTES: u64 = 1 << 20;

#[derive(Debug)]
pub(crate) struct Backing {
    file: File,
    size_bytes: u64,
    /// Of an image: what the file does not hold. The file is its overlay.
    below: Option<Below>,
}

/// The way a backing was copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CopiedBy {
    /// The file system shares the blocks of the two files.
    Reflink,
    /// All data was read and written.
    Copy,
}

impl Backing {
    /// Opens the file at `path`, or creates it. Locks it, so that no other daemon serves it.
    pub(crate) fn open(path: &Path, size_bytes: u64) -> Result<Self, DiskError> {
        if size_bytes == 0 || !size_bytes.is_multiple_of(BLOCK_BYTES) {
            return Err(DiskError::Size(size_bytes));
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(DiskError::io("open the backing file", path))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(DiskError::BackingTaken(path.into())),
            Err(errno) => return Err(DiskError::io("lock the backing file", path)(errno.into())),
        }
        let metadata = file
            .metadata()
            .map_err(DiskError::io("look at the backing file", path))?;
        if !metadata.is_file() {
            return Err(DiskError::BackingKind(path.into()));
        }
        if metadata.len() == 0 {
            file.set_len(size_bytes)
                .map_err(DiskError::io("set the size of the backing file", path))?;
        } else if metadata.len() != size_bytes {
            return Err(DiskError::BackingSize {
                path: path.into(),
                found: metadata.len(),
                asked: size_bytes,
            });
        }
        Ok(Self {
            file,
            size_bytes,
            below: None,
        })
    }

    /// Opens the overlay at `path`, which has to be empty, of an image.
    pub(crate) fn of_image(path: &Path, size_bytes: u64, image: Image) -> Result<Self, DiskError> {
        let mut backing = Self::open(path, size_bytes)?;
        let whole = backing.whole();
        let data = data_in(&backing.file, whole)
            .map_err(DiskError::io("look through the overlay", path))?;
        if !data.is_empty() {
            return Err(DiskError::OverlayUsed(path.into()));
        }
        backing.below = Some(Below::new(image));
        Ok(backing)
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn whole(&self) -> Extent {
        Extent {
            offset: 0,
            length: self.size_bytes,
        }
    }

    pub(crate) fn read(&self, extent: Extent) -> io::Result<Vec<u8>> {
        if let Some(below) = &self.below {
            return below.read(&self.file, extent);
        }
        let mut bytes = Vec::with_capacity(extent.length as usize);
        while (bytes.len() as u64) < extent.length {
            let offset = extent.offset + bytes.len() as u64;
            match pread(&self.file, spare_capacity(&mut bytes), offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        bytes.truncate(extent.length as usize); // the allocator may have given more
        Ok(bytes)
    }

    pub(crate) fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)?;
        self.cover(Extent {
            offset,
            length: bytes.len() as u64,
        });
        Ok(())
    }

    /// From now on the file holds this.
    fn cover(&self, extent: Extent) {
        if let Some(below) = &self.below {
            below.cover(extent);
        }
    }

    /// Makes `extent` read as zeros, and frees its space.
    pub(crate) fn zero(&self, extent: Extent) -> io::Result<()> {
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, mode, extent.offset, extent.length)?;
        self.cover(extent);
        Ok(())
    }

    /// The parts of `extent` that hold data. The rest reads as zeros.
    pub(crate) fn data_in(&self, extent: Extent) -> io::Result<Vec<Extent>> {
        match &self.below {
            None => data_in(&self.file, extent),
            Some(below) => below.data_in(&self.file, extent),
        }
    }

    /// Copies the content to a new file. Where the file system can, the two share their blocks.
    pub(crate) fn copy_to(&self, file: &File) -> io::Result<(CopiedBy, u64)> {
        let data = self.data_in(self.whole())?;
        let data_bytes = data.iter().map(|extent| extent.length).sum();
        if self.below.is_none() && ioctl_ficlone(file, &self.file).is_ok() {
            return Ok((CopiedBy::Reflink, data_bytes));
        }
        file.set_len(self.size_bytes)?;
        for extent in data {
            for offset in (extent.offset..extent.end()).step_by(COPY_BYTES as usize) {
                let length = COPY_BYTES.min(extent.end() - offset);
                file.write_all_at(&self.read(Extent { offset, length })?, offset)?;
            }
        }
        Ok((CopiedBy::Copy, data_bytes))
    }

    /// The data of `extents`.
    pub(crate) fn save(&self, extents: &[Extent]) -> io::Result<Vec<Old>> {
        let save = |&extent: &Extent| {
            Ok(Old::Bytes {
                offset: extent.offset,
                bytes: self.read(extent)?.into_boxed_slice(),
            })
        };
        extents.iter().map(save).collect()
    }

    /// Restores the data that a power cut undoes.
    pub(crate) fn restore(&self, old: &Old) -> io::Result<()> {
        match old {
            Old::Bytes { offset, bytes } => self.write(*offset, bytes),
            Old::Zeros(extent) => self.zero(*extent),
        }
    }
}

/// The regions that may hold data. A region that was never written need not be read before it is overwritten.
#[derive(Debug)]
pub(crate) struct Written(Vec<bool>);

impl Written {
    pub(crate) fn of(backing: &Backing) -> io::Result<Self> {
        let regions = backing.size_bytes.div_ceil(REGION_BYTES) as usize;
        if backing.below.is_some() {
            return Ok(Self(vec![true; regions])); // to look for its holes would delay the start
        }
        let mut written = Self(vec![false; regions]);
        for extent in backing.data_in(backing.whole())? {
            written.add(extent);
        }
        Ok(written)
    }

    pub(crate) fn add(&mut self, extent: Extent) {
        self.0[Self::regions(extent)].fill(true);
    }

    pub(crate) fn any_in(&self, extent: Extent) -> bool {
        self.0[Self::regions(extent)].contains(&true)
    }

    fn regions(extent: Extent) -> std::ops::Range<usize> {
        let first = extent.offset / REGION_BYTES;
        first as usize..extent.end().div_ceil(REGION_BYTES).max(first) as usize
    }
}

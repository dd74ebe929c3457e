//! The image that a disk serves, and the read-only base and data of a recording below its overlay.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use crate::model::{Content, Extent, Source};
use crate::recording::Image;
use crate::sparse::data_in;

/// The content that the overlay does not hold.
#[derive(Debug)]
pub(crate) struct Below {
    /// Ranges that are not in here are in the overlay.
    content: RwLock<Content>,
    base: File,
    data: File,
}

impl Below {
    pub(crate) fn new(image: Image) -> Self {
        Self {
            content: RwLock::new(image.content),
            base: image.base,
            data: image.data,
        }
    }

    /// The bytes of `extent`, from here and the overlay.
    pub(crate) fn read(&self, overlay: &File, extent: Extent) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; extent.length as usize];
        let mut fill = |part: Extent, file: &File, position: u64| {
            let start = (part.offset - extent.offset) as usize;
            file.read_exact_at(&mut bytes[start..start + part.length as usize], position)
        };
        let (in_overlay, below) = self.parts(extent);
        for part in in_overlay {
            fill(part, overlay, part.offset)?;
        }
        for (part, source) in below {
            match source {
                Source::Base => fill(part, &self.base, part.offset)?,
                Source::Written(shift) => fill(part, &self.data, part.offset.wrapping_add(shift))?,
                Source::Zeros => {}
            }
        }
        Ok(bytes)
    }

    /// The parts of `extent` that hold data.
    pub(crate) fn data_in(&self, overlay: &File, extent: Extent) -> io::Result<Vec<Extent>> {
        let mut found = Vec::new();
        let (in_overlay, below) = self.parts(extent);
        for part in in_overlay {
            found.append(&mut data_in(overlay, part)?);
        }
        for (part, source) in below {
            match source {
                Source::Base => found.append(&mut data_in(&self.base, part)?),
                Source::Written(_) => found.push(part),
                Source::Zeros => {}
            }
        }
        Ok(found)
    }

    /// The overlay holds this from now on.
    pub(crate) fn cover(&self, extent: Extent) {
        if extent.length > 0 {
            let mut content = self.content.write().unwrap_or_else(PoisonError::into_inner);
            content.remove(extent.offset..extent.end());
        }
    }

    /// The parts of `extent` that are in the overlay, and those that are below it.
    fn parts(&self, extent: Extent) -> (Vec<Extent>, Vec<(Extent, Source)>) {
        let range = extent.offset..extent.end();
        if range.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let part = |start: u64, end: u64| Extent {
            offset: start,
            length: end - start,
        };
        let content: RwLockReadGuard<'_, Content> =
            self.content.read().unwrap_or_else(PoisonError::into_inner);
        let in_overlay = content.gaps(&range).map(|gap| part(gap.start, gap.end));
        let below = content.overlapping(&range).map(|(found, &source)| {
            let (start, end) = (found.start.max(range.start), found.end.min(range.end));
            (part(start, end), source)
        });
        (in_overlay.collect(), below.collect())
    }
}

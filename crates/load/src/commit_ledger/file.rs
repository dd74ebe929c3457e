//! A file of slots of one size, appended to through a mapping.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::LedgerError;

/// Bytes of a slot.
pub(super) const SLOT_BYTES: usize = 32;

/// What is allocated and mapped at once. A multiple of every page size.
const CHUNK_BYTES: usize = 1 << 20;
const SLOTS: u64 = (CHUNK_BYTES / SLOT_BYTES) as u64;

/// A file of slots. Its space is allocated before it is mapped, so that a store never finds its disk full.
#[derive(Debug)]
pub(super) struct RecordFile {
    path: PathBuf,
    file: File,
    /// The slot that is written next.
    next: u64,
    /// Chunks that have been allocated.
    chunks: u64,
    /// The chunk that is filled, and the one before it, whose slots may still be changed; older ones are changed by a system
    /// call.
    current: Option<Mapping>,
    previous: Option<Mapping>,
    /// The number of the chunk that `current` is.
    current_chunk: u64,
}

impl RecordFile {
    /// Makes the file, with the space of its first chunk.
    pub(super) fn make(path: PathBuf) -> Result<Self, LedgerError> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path);
        let file = match file {
            Ok(file) => file,
            Err(source) => {
                return Err(LedgerError {
                    path,
                    what: "make",
                    source,
                });
            }
        };
        let mut made = Self {
            path,
            file,
            next: 0,
            chunks: 0,
            current: None,
            previous: None,
            current_chunk: 0,
        };
        made.allocate()?;
        Ok(made)
    }

    /// Fills the next slot; its number.
    #[inline]
    pub(super) fn append(&mut self, bytes: &[u8; SLOT_BYTES]) -> Result<u64, LedgerError> {
        let slot = self.next;
        if slot.is_multiple_of(SLOTS) {
            self.map_next()?;
        }
        self.write(slot, 0, bytes)?;
        self.next += 1;
        Ok(slot)
    }

    /// Changes bytes of a slot, from `at` of it on.
    #[inline]
    pub(super) fn write(&mut self, slot: u64, at: usize, bytes: &[u8]) -> Result<(), LedgerError> {
        let from = (slot % SLOTS) as usize * SLOT_BYTES + at;
        let mapping = match self.current_chunk.checked_sub(slot / SLOTS) {
            Some(0) => &mut self.current,
            Some(1) => &mut self.previous,
            _ => &mut None,
        };
        if let Some(mapping) = mapping {
            mapping.bytes()[from..from + bytes.len()].copy_from_slice(bytes);
            return Ok(());
        }
        self.write_unmapped(slot, at, bytes)
    }

    #[cold]
    fn write_unmapped(&self, slot: u64, at: usize, bytes: &[u8]) -> Result<(), LedgerError> {
        let offset = slot * SLOT_BYTES as u64 + at as u64;
        let written = self.file.write_all_at(bytes, offset);
        written.map_err(|source| self.error("write", source))
    }

    /// Cuts off the slots that were not used, and sets the byte at `ended_at` of the file.
    pub(super) fn finish(mut self, ended_at: u64) -> Result<(), LedgerError> {
        (self.current, self.previous) = (None, None);
        self.file
            .set_len(self.next * SLOT_BYTES as u64)
            .and_then(|()| self.file.write_all_at(&[1], ended_at))
            .map_err(|source| self.error("end", source))
    }

    #[cold]
    fn map_next(&mut self) -> Result<(), LedgerError> {
        let chunk = self.next / SLOTS;
        if chunk == self.chunks {
            self.allocate()?;
        }
        let mapping = Mapping::new(&self.file, chunk * CHUNK_BYTES as u64);
        let mapping = mapping.map_err(|source| self.error("map", source))?;
        self.previous = self.current.replace(mapping);
        self.current_chunk = chunk;
        Ok(())
    }

    /// Allocates a further chunk. A file system that cannot allocate gets zeros to write.
    fn allocate(&mut self) -> Result<(), LedgerError> {
        let offset = self.chunks * CHUNK_BYTES as u64;
        let flags = FallocateFlags::empty();
        let allocated = match fallocate(&self.file, flags, offset, CHUNK_BYTES as u64) {
            Err(Errno::OPNOTSUPP) => self.file.write_all_at(&vec![0; CHUNK_BYTES], offset),
            other => other.map_err(io::Error::from),
        };
        allocated.map_err(|source| self.error("extend", source))?;
        self.chunks += 1;
        Ok(())
    }

    #[cold]
    fn error(&self, what: &'static str, source: io::Error) -> LedgerError {
        LedgerError {
            path: self.path.clone(),
            what,
            source,
        }
    }
}

/// A chunk of a file in memory.
#[derive(Debug)]
struct Mapping {
    address: *mut u8,
}

#[allow(
    unsafe_code,
    reason = "memory of the process, not of a thread; nobody else has the mapping"
)]
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps a chunk that has been allocated.
    fn new(file: &File, offset: u64) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        #[allow(
            unsafe_code,
            reason = "no safe binding; a new mapping at an address that the kernel chooses"
        )]
        let address = unsafe {
            mmap(
                std::ptr::null_mut(),
                CHUNK_BYTES,
                protection,
                MapFlags::SHARED,
                file,
                offset,
            )
        }?;
        Ok(Self {
            address: address.cast(),
        })
    }

    #[inline]
    fn bytes(&mut self) -> &mut [u8] {
        #[allow(
            unsafe_code,
            reason = "the mapping has this length, lives as long as this value, and nobody else in this process has it"
        )]
        unsafe {
            std::slice::from_raw_parts_mut(self.address, CHUNK_BYTES)
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        #[allow(
            unsafe_code,
            reason = "the mapping is ours, and no borrow of it outlives this value"
        )]
        let unmapped = unsafe { munmap(self.address.cast(), CHUNK_BYTES) };
        debug_assert!(unmapped.is_ok(), "it was mapped");
    }
}
